"""Option tables: parsing stops where the command starts, mistakes are named with the nearest spelling."""

from __future__ import annotations

import pytest

from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, help_text, parse

OPTIONS = (
    Option("allow", "a rule", "RULE", repeat=True),
    Option("json", "one document"),
    Option("cd", "where", "DIR", short="C"),
    Option("sandbox", "mode", "MODE", short="s", choices=("read-only", "workspace-write")),
    Option("quiet", "less", short="q"),
)


def test_parsing_stops_at_the_command_and_leaves_its_options_alone() -> None:
    parsed = parse(
        "run", OPTIONS, ["--allow", "a.test", "--allow=b.test", "-C", "/x", "ls", "--json", "-l"], stop_at_word=True
    )
    assert parsed.all("allow") == ("a.test", "b.test")
    assert parsed.last("cd") == "/x"
    assert not parsed.has("json")
    assert parsed.words == ("ls", "--json", "-l")


def test_two_dashes_end_the_options() -> None:
    assert parse("run", OPTIONS, ["--json", "--", "--allow"], stop_at_word=True).words == ("--allow",)


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"did you mean --allow\?"):
        parse("run", OPTIONS, ["--alow", "x"])


@pytest.mark.parametrize(
    "args",
    [["--cd"], ["-C"], ["--sandbox", "loose"], ["--cd", "a", "--cd", "b"], ["--json=1"], ["--all", "x"], ["-x"]],
)
def test_a_wrong_use_is_a_usage_error(args: list[str]) -> None:
    with pytest.raises(UsageError):
        parse("run", OPTIONS, args)


def test_short_options_cluster_and_take_what_is_attached() -> None:
    parsed = parse("run", OPTIONS, ["-qC/x", "-sread-only", "word", "-", "-q"])
    assert (parsed.last("cd"), parsed.last("sandbox")) == ("/x", "read-only")
    assert parsed.all("quiet") == ("", "")
    assert parsed.words == ("word", "-")


def test_a_value_may_be_empty_or_look_like_an_option() -> None:
    assert parse("run", OPTIONS, ["--cd="]).last("cd", "default") == ""
    assert parse("run", OPTIONS, ["--cd", "--json"]).last("cd") == "--json"


@pytest.mark.parametrize("flag", ["-h", "--help", "-qh"])
def test_help_is_asked_for(flag: str) -> None:
    with pytest.raises(HelpWanted):
        parse("run", OPTIONS, [flag])


def test_help_text_leads_with_an_example_and_names_every_option() -> None:
    text = help_text("doorward run [options] CMD", "Run a command.", OPTIONS, ["doorward run -- true"])
    assert text.splitlines()[2].strip() == "doorward run -- true"
    for option in OPTIONS:
        assert f"--{option.name}" in text

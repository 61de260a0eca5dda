"""`doorward allowlist`: rules shown with where they are from, asked about, and changed in their files."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from doorward.allowlists.addresses import IPAddress
from doorward.commands import allowlist, allowlist_question
from doorward.commands.dispatch import guarded

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """$DOORWARD_HOME, not made yet; the working folder is a project beside it."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit status, stdout, stderr."""

    def call(*args: str) -> tuple[int, str, str]:
        status = guarded(allowlist.main, list(args))
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def network(path: Path) -> Any:
    return tomllib.loads(path.read_text())["network"]


# --- add ---------------------------------------------------------------------------------------------------------


def test_add_makes_the_file_private(run: Run, home: Path) -> None:
    status, out, err = run("add", "a.test", "*.b.test:8443")
    config = home / "config.toml"
    assert (status, err) == (0, "")
    assert out == f"added to network.allow of {config}: a.test\nadded to network.allow of {config}: *.b.test:8443\n"
    assert network(config) == {"allow": ["a.test", "*.b.test:8443"]}
    assert stat.S_IMODE(config.stat().st_mode) == 0o600 and stat.S_IMODE(home.stat().st_mode) == 0o700


def test_add_keeps_comments_and_order(run: Run, home: Path) -> None:
    text = '# mine\n[network]\nallow = [\n  "b.test",  # for work\n  "a.test",\n]\n# end\n'
    config = write(home / "config.toml", text)
    assert run("add", "c.test")[0] == 0
    assert config.read_text() == text.replace('  "a.test",\n', '  "a.test",\n  "c.test",\n')


def test_add_takes_tables_presets_and_unicode(run: Run, home: Path) -> None:
    """P-PP-03, P-DM-11: they are kept as they were written."""
    table = '{host = "db.corp:5432", addresses = ["10.0.0.0/8"]}'
    assert run("add", table, "@pip", "bücher.test")[0] == 0
    allow = [{"host": "db.corp:5432", "addresses": ["10.0.0.0/8"]}, "@pip", "bücher.test"]
    assert network(home / "config.toml") == {"allow": allow}


def test_a_rule_names_a_credential_that_is_there_and_goes_there(run: Run, home: Path) -> None:
    text = '[credentials.forge]\nenv = "T"\nhosts = ["a.test"]\n[credentials.other]\nenv = "T"\n'
    file = write(home / "config.toml", text)
    file.chmod(0o600)
    for entry, said in (
        ('{host = "a.test", credential = "forg"}', 'did you mean "forge"?'),
        ('{host = "b.test", credential = "forge"}', "beyond the hosts of credentials.forge"),
    ):
        status, _, err = run("add", entry)
        assert (status, said in err) == (2, True), err
        assert file.read_text() == text
    for entry in ('{host = "a.test", credential = "forge"}', '{host = "b.test", credential = "other"}'):
        assert run("add", entry)[0] == 0
    assert len(network(file)["allow"]) == 2


def test_what_is_there_already_is_said_and_is_no_error(run: Run, home: Path) -> None:
    """By meaning, not by spelling."""
    config = write(home / "config.toml", '[network]\nallow = ["a.test",\n {host = "b.test"}, "xn--bcher-kva.test"]\n')
    before = config.read_bytes()
    status, out, _ = run("add", "A.Test.", "b.test", "bücher.test")
    assert status == 0 and config.read_bytes() == before
    assert out.splitlines() == [
        f"there already ({config}:2): A.Test.",
        f"there already ({config}:3): b.test",
        f"there already ({config}:3): bücher.test",
    ]
    assert run("add", "a.test", "c.test", "C.test")[1].count("c.test") == 1
    assert network(config)["allow"][-1] == "c.test"


def test_a_deny_goes_to_its_own_array(run: Run, home: Path) -> None:
    run("add", "a.test")
    status, out, err = run("add", "--deny", "ads.test", "a.test")
    assert status == 0 and "network.deny" in out
    assert network(home / "config.toml") == {"allow": ["a.test"], "deny": ["ads.test", "a.test"]}
    assert "a.test (config.toml:3) never applies" in err


def test_a_wide_rule_is_said_aloud(run: Run) -> None:
    """P-DM-07."""
    assert "EVERY" in run("add", "*")[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ok.test", "https://*.allowed.test", "allowed.test/path"], ["entry 2", "'*.allowed.test'", "entry 3"]),
        (["*.com"], ["'*.NAME.com'"]),
        (["@pipp"], ["'@pip'"]),
        (["@"], ["no such preset; there are @pip"]),
        (["--deny", "@pip"], ["only an allow takes a preset"]),
        (["--deny", '{host = "a.test", methods = ["GET"]}'], ["'a.test'"]),
        (['{host = "a.test", methods = ["get"]}'], ['methods = ["GET"]']),
        ([""], ["empty"]),
        (["\x1b[31m"], ["\\x1b"]),
        ([], ["name at least one rule"]),
    ],
)
def test_nothing_is_written_when_anything_is_bad(run: Run, home: Path, words: list[str], said: list[str]) -> None:
    """P-DM-08."""
    status, out, err = run("add", *words)
    assert (status, out) == (2, "") and not home.exists()
    for part in said:
        assert part in err
    assert "\x1b" not in err


def test_rules_that_do_not_go_together_are_not_written(run: Run, home: Path) -> None:
    config = write(home / "config.toml", '[network]\nallow = ["a.test"]\n')
    before = config.read_bytes()
    status, _, err = run("add", "--deny", "*")
    assert status == 2 and "dead" in err and config.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "[network\n",
        "[network]\nallow = 5\n",
        '[network]\nalow = ["a.test"]\n',
        '[network]\nallow = ["*.com"]\n',
        'sandbox_mode = "read-only"\n',
        '[network]\nmode = "full"\n',
        '[network]\nmode = "off"\n',
    ],
)
def test_a_file_that_no_run_would_take_is_not_written(run: Run, home: Path, text: str) -> None:
    config = write(home / "config.toml", text)
    status, out, err = run("add", "b.test")
    assert (status, out) == (2, "") and "config.toml" in err
    assert config.read_text() == text


def test_a_profile_and_a_project_have_their_own_files(run: Run, home: Path) -> None:
    assert run("add", "--profile", "ci", "ci.test")[0] == 0
    assert network(home / "profiles" / "ci.toml") == {"allow": ["ci.test"]}
    write(home / "config.toml", f'[projects."{os.getcwd()}"]\ntrust_level = "trusted"\n')
    os.mkdir("below")
    status, _, err = run("add", "--project", "-C", "below", "p.test")
    assert (status, err) == (0, "")
    assert network(Path(".doorward/config.toml")) == {"allow": ["p.test"]}
    rows = json.loads(run("show", "--json", "--profile", "ci")[1])
    assert [(row["rule"], row["where"]) for row in rows if row["effect"] == "allow"] == [
        ("p.test", ".doorward/config.toml:3"),
        ("ci.test", "profiles/ci.toml:3"),
    ]


def test_a_project_file_that_is_not_read_is_said_to_be_so(run: Run) -> None:
    os.mkdir(".git")
    os.mkdir("below")
    status, _, err = run("add", "--project", "-C", "below", "p.test")
    assert status == 0 and "not trusted" in err and f"`doorward trust {os.getcwd()}`" in err
    assert network(Path(".doorward/config.toml")) == {"allow": ["p.test"]}


def test_a_layer_above_the_file_does_not_stop_an_add(run: Run, home: Path) -> None:
    """A project's file is held against the layers below it, not against the defaults."""
    write(home / "config.toml", f'approval_policy = "never"\n[projects."{os.getcwd()}"]\ntrust_level = "trusted"\n')
    write(Path(".doorward/config.toml"), 'approval_policy = "on-failure"\n')
    assert run("add", "--project", "p.test")[0] == 0


def test_which_file_is_meant_must_be_clear(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("add", "--project", "--profile", "ci", "a.test")[0] == 2
    assert run("add", "--profile", "../config", "a.test")[0] == 2
    assert run("add", "-C", "/", "a.test")[0] == 2
    monkeypatch.setenv("DOORWARD_HOME", f"{os.getcwd()}/.doorward")
    status, _, err = run("add", "--project", "a.test")
    assert status == 2 and "leave out --project" in err
    assert os.listdir() == []


def test_a_linked_project_file_is_not_followed(run: Run, home: Path) -> None:
    """A repository could lead the edit to a file outside it."""
    other = write(home / "other.toml", "x = 1\n")
    os.mkdir(".doorward")
    os.symlink(other, ".doorward/config.toml")
    assert run("add", "--project", "a.test")[0] == 2
    assert other.read_text() == "x = 1\n"


def test_add_as_json(run: Run, home: Path) -> None:
    run("add", "a.test")
    assert json.loads(run("add", "--json", "a.test", "b.test")[1]) == {
        "file": str(home / "config.toml"),
        "key": "network.allow",
        "added": ["b.test"],
        "already": ["a.test"],
    }


# --- remove ------------------------------------------------------------------------------------------------------


def test_remove_takes_out_every_spelling_and_its_comment(run: Run, home: Path) -> None:
    config = write(
        home / "config.toml",
        '[network]\nallow = [\n  "A.test", # main\n  "b.test", # stays\n  {host = "a.test"},\n]\ndeny = ["a.test"]\n',
    )
    status, out, err = run("remove", "a.test")
    assert (status, out, err) == (0, f"removed from network.allow of {config}: a.test\n", "")
    assert config.read_text() == '[network]\nallow = [\n  "b.test", # stays\n]\ndeny = ["a.test"]\n'
    assert run("remove", "--deny", "a.test")[0] == 0
    assert network(config) == {"allow": ["b.test"], "deny": []}


def test_remove_of_what_is_not_there_names_the_nearest(run: Run, home: Path) -> None:
    config = write(home / "config.toml", '[network]\nallow = ["allowed.test", "b.test"]\ndeny = ["d.test"]\n')
    before = config.read_bytes()
    status, out, err = run("remove", "b.test", "alowed.test", "d.test")
    assert (status, out) == (1, "") and config.read_bytes() == before
    assert "no alowed.test; the nearest there is allowed.test" in err
    assert "no d.test; it is in network.deny: add --deny" in err
    assert "nothing was removed" in err
    assert json.loads(run("remove", "--json", "nope")[1])["missing"] == ["nope"]


def test_remove_says_in_which_other_file_a_rule_is(run: Run, home: Path) -> None:
    run("add", "a.test")
    status, _, err = run("remove", "--project", "a.test")
    assert status == 1 and "a.test is in config.toml:3 (doorward allowlist remove)" in err
    assert not Path(".doorward").exists()


def test_remove_mends_a_file_that_no_run_takes(run: Run, home: Path) -> None:
    """A bad entry is named by its text."""
    config = write(home / "config.toml", 'sandbox_mode = "read-only"\n[network]\nallow = ["*.com", "a.test"]\n')
    assert run("remove", "*.com", "a.test")[0] == 0
    assert network(config) == {"allow": []}


def test_a_refusal_names_a_command_that_works(run: Run, home: Path) -> None:
    """The hint of a deny from a file."""
    write(home / "config.toml", '[network]\ndeny = ["*.evil.test"]\n')
    hint = json.loads(run("test", "--json", "x.evil.test")[1])["hint"]
    assert hint == "doorward allowlist remove --deny '*.evil.test'"
    import shlex

    assert run(*shlex.split(hint)[2:])[0] == 0
    assert network(home / "config.toml") == {"deny": []}


# --- test --------------------------------------------------------------------------------------------------------


def test_the_exit_status_is_the_answer(run: Run) -> None:
    assert run("test", "--allow", "a.test", "a.test")[0] == 0
    assert run("test", "--allow", "a.test", "b.test")[0] == 20
    assert run("test", "127.1")[0] == 2
    assert run("test")[0] == 2
    status, _, err = run("test", "https://a.test/x")
    assert status == 2 and "not a URL" in err and "'a.test'" in err


def test_a_place_may_be_unicode(run: Run) -> None:
    """P-DM-11."""
    status, out, _ = run("test", "--allow", "bücher.test", "BÜCHER.test:443")
    assert status == 0 and "xn--bcher-kva.test:443 is allowed" in out


def test_the_rule_and_its_origin_are_shown(run: Run, home: Path) -> None:
    write(home / "config.toml", '[network]\nallow = ["*.a.test"]\n')
    _, out, _ = run("test", "x.a.test")
    assert "rule: *.a.test, from config.toml:2" in out
    document = json.loads(run("test", "--json", "x.a.test")[1])
    assert document["rule"] == "*.a.test"
    assert document["origin"] == {"source": "file", "where": "config.toml:2"}


@pytest.mark.parametrize("able", [False, True])
def test_methods_are_judged_as_a_client_would_ask(run: Run, monkeypatch: pytest.MonkeyPatch, able: bool) -> None:
    """P-PP-03: a tunnel, but for port 80; one that a run would look into, if it could here."""
    from doorward import inspection_settings
    from doorward.errors import UsageError

    def interpreter(named: str | None) -> str:
        if able:
            return "/usr/bin/python3"
        raise UsageError("doorward: there is no mitmproxy; install it")

    monkeypatch.setattr(inspection_settings, "interpreter", interpreter)
    allow = ("--allow", '{host = "ro.test", methods = ["GET"]}')
    assert run("test", *allow, "ro.test:80")[0] == 0
    assert run("test", *allow, "ro.test:80", "--method", "POST")[0] == 20
    assert run("test", *allow, "ro.test:443", "--method", "GET")[0] == 0
    status, out, err = run("test", *allow, "ro.test", "--json")
    if able:
        assert status == 0 and json.loads(out)["inspected"] is True
        return
    assert "there is no mitmproxy; install it" in err
    assert json.loads(out)["inspected"] is False
    assert status == 20 and json.loads(out)["reason"] == "mitm_required" and json.loads(out)["method"] == "CONNECT"


class Names:
    """A resolver that knows a few names, and keeps what it was asked."""

    def __init__(self, **known: str) -> None:
        self.known = known
        self.asked: list[str] = []

    def __call__(self, name: str) -> tuple[IPAddress, ...]:
        self.asked.append(name)
        found = self.known.get(name.partition(".")[0])
        if found is None:
            raise OSError("does not resolve: nobody knows it")
        return tuple(ip_address(text) for text in found.split())


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    def call(names: Names, *args: str) -> tuple[int, Any]:
        status = allowlist_question.test([*args, "--resolve", "--json"], names)
        return status, json.loads(capsys.readouterr().out)

    return call


def test_resolve_says_of_each_address_whether_it_may_be_dialled(ask: Callable[..., tuple[int, Any]]) -> None:
    """P-DN-03."""
    names = Names(a="93.184.216.34 10.0.0.5 169.254.169.254 93.184.216.35 93.184.216.34")
    status, document = ask(names, "--allow", "a.test", "--deny", "93.184.216.35", "a.test")
    assert status == 0 and document["decision"] == "allow" and document["found_by"] == "resolver"
    assert [(row["address"], row["class"], row["dialled"]) for row in document["addresses"]] == [
        ("93.184.216.34", "global", True),
        ("10.0.0.5", "private", False),
        ("169.254.169.254", "metadata", False),
        ("93.184.216.35", "global", False),
    ]
    assert "private" in document["addresses"][1]["why_not"]
    assert document["addresses"][3]["why_not"] == "denied by the rule 93.184.216.35 (--deny)"
    assert names.asked == ["a.test"]


def test_resolve_is_a_deny_when_no_address_is_left(ask: Callable[..., tuple[int, Any]]) -> None:
    status, document = ask(Names(a="10.0.0.5"), "--allow", "a.test", "a.test")
    assert status == 20 and document["reason"] == "not_allowed_local" and "10.0.0.5" in document["hint"]


def test_a_refused_name_is_not_looked_up(ask: Callable[..., tuple[int, Any]]) -> None:
    """DESIGN invariant 5, here too."""
    names = Names(a="93.184.216.34")
    status, document = ask(names, "a.test")
    assert (status, names.asked, document["addresses"]) == (20, [], [])
    assert "refused by name" in document["not_resolved"]


def test_what_needs_no_look_up_is_not_looked_up(ask: Callable[..., tuple[int, Any]]) -> None:
    names = Names()
    _, pinned = ask(names, "--allow", "db.test", "-c", 'network.hosts."db.test"=127.0.0.1', "db.test")
    assert pinned["found_by"] == "pin" and pinned["addresses"][0]["dialled"]
    assert ask(names, "--allow", "10.0.0.7", "10.0.0.7")[1]["found_by"] == "literal"
    assert ask(names, "--allow", "localhost", "localhost")[1]["found_by"] == "localhost"
    corp = ("-c", "network.upstream_proxy=http://proxy.test:3128", "-c", 'network.upstream_resolves=["corp.test"]')
    _, handed = ask(names, "--allow", "a.corp.test", *corp, "a.corp.test")
    assert "upstream proxy" in handed["not_resolved"]
    assert names.asked == []


def test_a_name_that_does_not_resolve_is_no_matter_of_policy(ask: Callable[..., tuple[int, Any]]) -> None:
    status, document = ask(Names(), "--allow", "a.test", "a.test")
    assert (status, document["decision"], document["addresses"]) == (0, "allow", [])
    assert document["not_resolved"] == "does not resolve: nobody knows it"


def test_addresses_for_a_person(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--resolve", "--allow", "a.test", "a.test"]
    assert allowlist_question.test(args, Names(a="93.184.216.34 10.0.0.5")) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "addresses: looked up once",
        "  93.184.216.34  global  may be dialled",
        "  10.0.0.5  private  may not be dialled: a private address, and no rule for it opens that",
    ]


def test_the_machines_resolver_is_asked_in_absolute_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """P-DN-01: no search suffix."""
    import socket

    asked: list[object] = []

    def answer(host: object, *rest: object, **more: object) -> list[Any]:
        asked.append(host)
        return [(2, 1, 6, "", ("93.184.216.34", 0)), (2, 1, 6, "", ("93.184.216.34", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    assert allowlist_question.system_look_up("a-name-in-no-hosts-file.test") == (ip_address("93.184.216.34"),)
    assert asked == [b"a-name-in-no-hosts-file.test."]

    def unknown(host: object, *rest: object, **more: object) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(OSError, match="does not resolve: name or service not known"):
        allowlist_question.system_look_up("a-name-in-no-hosts-file.test")


# --- show and presets --------------------------------------------------------------------------------------------


def test_show_tells_where_every_rule_is_from(run: Run, home: Path) -> None:
    write(
        home / "config.toml",
        '[network]\nallow = ["a.test",\n  {host = "b.test", methods = ["GET"]}]\ndeny = ["c.test"]\n'
        '[network.hosts]\n"a.test" = "127.0.0.1"\n',
    )
    status, out, _ = run("show", "--allow", "d.test:8443", "-c", 'network.deny=["e.test"]')
    assert status == 0
    assert [line.split(maxsplit=1)[0] for line in out.splitlines()] == [*["deny"] * 2, *["allow"] * 3, "pin", "deny"]
    for part in ("config.toml:2", "config.toml:3", "config.toml:4", "--allow", "-c network.deny", "network.hosts"):
        assert part in out
    assert out.splitlines()[-1].endswith("built-in: whatever no rule allows")
    rows = json.loads(run("show", "--json")[1])
    assert {row["source"] for row in rows} == {"file", "builtin"}
    (limited,) = [row for row in rows if row.get("methods")]
    assert limited["methods"] == ["GET"] and limited["ports"] == [[80, 80], [443, 443]]


def test_show_shows_what_a_preset_adds(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from doorward import preset_store

    preset = preset_store.PinnedPreset((("mirror.test:8443", "the index"),), {"mirror.test": ("10.0.0.7",)}, ())
    monkeypatch.setattr(preset_store, "pinned", lambda *rest: preset)
    rows = json.loads(run("show", "--json", "--allow", "@pip")[1])
    assert [(row["effect"], row["rule"], row["source"]) for row in rows] == [
        ("allow", "mirror.test:8443", "preset"),
        ("pin", "mirror.test = 10.0.0.7", "preset"),
        ("deny", "*", "builtin"),
    ]
    assert rows[0]["where"] == "@pip (the index; --allow)"


def test_presets_are_listed_and_expanded_only_when_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from doorward import preset_store
    from doorward.errors import UsageError

    def never(*rest: object) -> Any:
        raise AssertionError("not asked for")

    monkeypatch.setattr(preset_store, "pinned", never)
    assert "@pip" in run("presets")[1]
    assert json.loads(run("presets", "--json", "@pip")[1])[0].keys() == {"name", "what"}

    def unavailable(*rest: object) -> Any:
        raise UsageError("doorward: @pip: pip is not there; install it")

    monkeypatch.setattr(preset_store, "pinned", unavailable)
    status, out, _ = run("presets", "--expand")
    assert status == 0 and "  @pip: pip is not there; install it" in out

    preset = preset_store.PinnedPreset((("mirror.test:8443", "the index"),), {"mirror.test": ("10.0.0.7",)}, ("mind",))
    monkeypatch.setattr(preset_store, "pinned", lambda *rest: preset)
    _, out, err = run("presets", "--expand", "pip")
    assert "  mirror.test:8443  the index" in out and "pinned to 10.0.0.7" in out and "mind" in err
    assert run("presets", "@nope")[0] == 2


# --- help --------------------------------------------------------------------------------------------------------


def test_help_leads_with_examples(run: Run) -> None:
    for action in allowlist.ACTIONS:
        status, out, err = run(action, "--help")
        assert (status, err) == (0, "") and "usage: doorward allowlist" in out and len(out.splitlines()) < 25
    assert run("--help")[0] == 0 and run()[0] == 2
    status, _, err = run("shwo")
    assert status == 2 and "did you mean show?" in err


def test_an_ordinary_question_does_not_pay_for_the_editor(home: Path) -> None:
    """tomlkit costs 65 ms."""
    import subprocess
    import sys

    code = "import sys; from doorward.commands import allowlist; allowlist.main(['test', 'a.test'])"
    code += "; print([name for name in ('tomlkit', 'doorward.toml_edit', 'asyncio') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.splitlines()[-1] == "[]"


def test_datagrams_are_asked_about_with_their_prefix(run: Run) -> None:
    assert run("test", "--allow", "udp:ntp.test:123", "udp:ntp.test:123")[0] == 0
    assert run("test", "--allow", "udp:ntp.test:123", "ntp.test:123")[0] == 20
    status, out, _ = run("test", "--allow", "ntp.test:123", "udp:ntp.test:123")
    assert status == 20 and "to allow it: --allow udp:ntp.test:123" in out
    assert run("test", "--allow", "udp:443", "udp:443")[0] == 0  # a host of that name

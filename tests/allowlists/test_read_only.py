"""Presets that read: what git, pip and npm send to fetch is let through, what they send to publish is not."""

import json
from collections.abc import Sequence

import pytest

from doorward.allowlists.conditions import Request
from doorward.allowlists.host import parse_host_port
from doorward.allowlists.presets import Page, PresetUnavailable, expand
from doorward.allowlists.read_only import git_fetch, reading_from
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet

UPLOAD = (("content-type", "application/x-git-upload-pack-request"),)


def passes(tables: Sequence[object], place: str, request: Request) -> bool:
    rules = RuleSet.build([parse_rule(each, "allow", Origin("preset", "@x")) for each in tables], [])  # type: ignore[arg-type]
    decision = rules.decide(*parse_host_port(place))
    return rules.judge_request(decision, request, visible=True).effect == "allow"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (Request("GET", "/team/project/info/refs?service=git-upload-pack"), True),
        (Request("GET", "/team/project.git/info/refs?service=git-upload-pack"), True),
        (Request("POST", "/team/project/git-upload-pack", UPLOAD), True),
        (Request("POST", "/team/project/git-upload-pack"), False),
        (Request("GET", "/team/project/info/refs?service=git-receive-pack"), False),
        (Request("GET", "/team/project/info/refs?service=git-upload-pack&service=git-receive-pack"), False),
        (Request("GET", "/team/project/info/refs"), False),
        (Request("POST", "/team/project/git-receive-pack", UPLOAD), False),
        (Request("GET", "/team/other/info/refs?service=git-upload-pack"), False),
        (Request("GET", "/team/project/../other/info/refs?service=git-upload-pack"), False),
        (Request("POST", "/api/v3/gists"), False),
    ],
)
def test_git_fetch(request_: Request, expected: bool) -> None:
    tables = [table for table, _ in git_fetch("git.test:8443/team/project.git")]
    assert passes(tables, "git.test:8443", request_) is expected


@pytest.mark.parametrize("argument", ["", "git.test", "git.test/", "/team/project", "git.test/a/../b", "git test/a"])
def test_what_names_no_repository(argument: str) -> None:
    with pytest.raises(PresetUnavailable, match="@git-fetch:"):
        git_fetch(argument)


class Npm:
    """npm, which answers for its settings."""

    def __init__(self, settings: object) -> None:
        self.settings = settings

    def run(self, argv: Sequence[str]) -> str | None:
        assert list(argv) == ["npm", "config", "list", "--json"]
        return None if self.settings is None else json.dumps(self.settings)

    def fetch(self, url: str, *, ca_file: str | None = None, verify: bool = True) -> Page:
        raise AssertionError("npm's registries are not asked")


def test_npm_reads_and_does_not_publish() -> None:
    tools = Npm({"registry": "https://npm.test/", "@team:registry": "https://own.test:8443/npm/", "cache": "/x"})
    hosts = expand("npm", tools).hosts
    assert [each.entry for each in hosts] == ["npm.test:443", "own.test:8443"]
    tables = [table for table, _ in reading_from("npm-install", hosts)]
    for place in ("npm.test:443", "own.test:8443"):
        assert passes(tables, place, Request("GET", "/left-pad"))
        assert passes(tables, place, Request("POST", "/-/npm/v1/security/advisories/bulk"))
        assert not passes(tables, place, Request("PUT", "/left-pad"))
        assert not passes(tables, place, Request("POST", "/-/user/org.couchdb.user:me"))


@pytest.mark.parametrize("settings", [None, {}, [], {"registry": "file:///x"}, {"registry": "http://169.254.169.254/"}])
def test_npm_without_a_registry(settings: object) -> None:
    with pytest.raises(PresetUnavailable):
        expand("npm", Npm(settings))

"""Tools seen from a project's files, and the configuration that is proposed."""

import tomllib

import pytest

from doorward.allowlists.presets import PRESETS
from doorward.project_tools import _SIGNS, fetch_preset, proposal, secrets_of, tools_of


def test_tools_are_found_by_their_files() -> None:
    found = tools_of(["package.json", "requirements-dev.txt", "pyproject.toml", "main.tf", "README.md", "x.csproj"])
    assert [(tool.preset, tool.because) for tool in found] == [
        ("npm", ("package.json",)),
        ("pip", ("pyproject.toml", "requirements-dev.txt")),
        ("nuget", ("x.csproj",)),
        ("terraform", ("main.tf",)),
    ]
    assert tools_of(["README.md"]) == []


def test_every_proposed_preset_is_one() -> None:
    assert {preset for preset, _ in _SIGNS} <= PRESETS.keys()


def test_secrets_and_their_examples_are_told_apart() -> None:
    assert secrets_of([".env", ".env.example", ".env.local", "server.key", "key.py", ".npmrc"]) == [
        ".env", ".env.local", ".npmrc", "server.key"]  # fmt: skip


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("https://git.test/team/app.git", "git-fetch:git.test/team/app"),
        ("https://user:secret@git.test:8443/team/app", "git-fetch:git.test:8443/team/app"),
        ("git@git.test:team/app.git", None),
        ("ssh://git.test/team/app", None),
        ("https://git.test/", None),
        ("https://git.test:x/a", None),
        ("", None),
    ],
)
def test_only_https_remotes_can_be_fetched_by_rule(remote: str, expected: str | None) -> None:
    assert fetch_preset(remote) == expected


def test_the_proposal_is_toml_a_project_may_have() -> None:
    text = proposal(tools_of(["Cargo.toml"]), [".env"], "git-fetch:git.test/team/app")
    assert tomllib.loads(text) == {
        "network": {"allow": ["@cargo"], "deny": []}, "filesystem": {"deny_read": [".env"], "read_only": []},
    }  # fmt: skip
    assert "Cargo.toml" in text and "@git-fetch:git.test/team/app" in text
    assert tomllib.loads(proposal([], [], None))["network"]["allow"] == []

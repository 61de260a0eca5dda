"""The dated list, and how it goes together with what tools say."""

import datetime
import json
from collections.abc import Mapping, Sequence

import pytest

from doorward.allowlists.preset_configured import ASKING
from doorward.allowlists.preset_listed import expand, listed
from doorward.allowlists.presets import PRESETS, Page, PresetUnavailable
from doorward.allowlists.presets import expand as expand_any
from doorward.allowlists.rule import Origin, parse_rule


class Machine:
    def __init__(self, says: Mapping[str, str] = {}, files: Mapping[str, str] = {}) -> None:
        self.says = says
        self.files = files

    def run(self, argv: Sequence[str]) -> str | None:
        return next((text for words, text in self.says.items() if " ".join(argv).startswith(words)), None)

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def fetch(self, url: str, *, ca_file: str | None = None, verify: bool = True) -> Page:
        raise OSError("nothing is fetched for these")


def entries(name: str, machine: Machine) -> list[str]:
    return [host.entry for host in expand(name, machine).hosts]


@pytest.mark.parametrize("name", sorted(listed()))
def test_every_table_is_dated_sourced_and_made_of_exact_rules(name: str) -> None:
    table = listed()[name]
    assert datetime.date.fromisoformat(table.checked) and table.source.startswith("https://")
    assert name in PRESETS and not table.hosts.keys() & table.shared.keys()
    for entry, why in {**table.hosts, **table.shared}.items():
        assert "*" not in parse_rule(entry, "allow", Origin("preset", name)).text
        assert why and not why.endswith(".")


def test_every_preset_is_listed_or_asked() -> None:
    own = {"pip", "pip-install", "npm", "npm-install", "git-fetch"}
    assert set(PRESETS) - own == listed().keys() | ASKING.keys()


def test_without_the_tool_the_list_serves_and_says_when_it_was_made() -> None:
    expansion = expand("cargo", Machine())
    assert [host.entry for host in expansion.hosts] == [f"{host}:443" for host in listed()["cargo"].hosts]
    assert all(listed()["cargo"].checked in host.why for host in expansion.hosts)


def test_shared_hosts_are_left_out_named_and_opened_when_asked_for() -> None:
    left = expand("docker", Machine())
    shared = listed()["docker"].shared
    assert not {host.entry for host in left.hosts} & {f"{each}:443" for each in shared}
    assert "@docker+shared opens them too" in left.notices[0] and all(each in left.notices[0] for each in shared)
    assert {f"{each}:443" for each in shared} < set(entries("docker+shared", Machine()))


def test_a_mirror_takes_the_place_of_the_list() -> None:
    machine = Machine({"go env": json.dumps({"GOPROXY": "https://m.test:8443", "GOSUMDB": "off"})})
    assert entries("go", machine) == ["m.test:8443"]


def test_what_is_configured_besides_comes_to_the_list() -> None:
    machine = Machine(files={"~/.cargo/config.toml": '[registries.corp]\nindex = "sparse+https://corp.test/"'})
    assert entries("cargo", machine)[0] == "corp.test:443" and len(entries("cargo", machine)) == 4


def test_an_address_that_no_preset_opens_is_named_without_its_credential() -> None:
    expansion = expand("rubygems", Machine({"gem sources": "https://user:hunter2@169.254.169.254/\n"}))
    assert any("169.254.169.254" in notice for notice in expansion.notices)
    assert "hunter2" not in repr(expansion)


def test_a_credential_in_a_mirrors_address_goes_nowhere() -> None:
    machine = Machine({"gem sources": "https://user:hunter2@gems.test/\n"})
    assert "gems.test:443" in entries("rubygems", machine) and "hunter2" not in repr(expand("rubygems", machine))


@pytest.mark.parametrize(("name", "remedy"), [("git", "@git-fetch:"), ("apt", "--allow"), ("dnf", "--allow")])
def test_nothing_to_open_is_said_with_a_remedy(name: str, remedy: str) -> None:
    with pytest.raises(PresetUnavailable) as caught:
        expand_any(name, Machine())
    assert remedy in caught.value.remedy


def test_git_opens_the_persons_own_hosts_and_forges_only_when_asked_for() -> None:
    machine = Machine({"git config": "url.https://git.corp.test/.insteadof\n"})
    assert entries("git", machine) == ["git.corp.test:443"]
    assert "github.com:443" in entries("git+shared", Machine())

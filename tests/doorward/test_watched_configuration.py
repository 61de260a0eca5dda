"""The rules of the door alone: read from every layer, and watched."""

from __future__ import annotations

from pathlib import Path

import pytest

from doorward.errors import UsageError
from doorward.watched_configuration import WatchedConfiguration


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


def watched(home: Path, *allow: str, profile: str | None = None) -> WatchedConfiguration:
    options = {"flags": {"network.allow": list(allow)}, "profile": profile}
    return WatchedConfiguration(options, {"DOORWARD_HOME": str(home), "HOME": str(home)})


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


def test_every_layer_counts_whatever_mode_commands_run_in(home: Path) -> None:
    write(home / "config.toml", 'sandbox_mode = "danger-full-access"\n[network]\nallow = ["a.test"]\nmode = "off"\n')
    write(home / "profiles" / "p.toml", '[network]\ndeny = ["b.test"]\n')
    loaded = watched(home, "c.test", profile="p").load()
    assert [rule.text for rule in loaded.policy.rules.allow] == ["a.test", "c.test"]
    assert [rule.text for rule in loaded.policy.rules.deny] == ["b.test"]
    assert loaded.notices == ()


def test_nothing_allowed_is_said(home: Path) -> None:
    assert "everything is refused" in watched(home).load().notices[-1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[network]\nallow = 1\n", "config.toml:2: network.allow"),
        ('[network]\nallow = ["http://a.test"]\n', "config.toml:2"),
        ('[network]\nupstream_resolves = ["corp.test"]\n', "upstream_proxy"),
        ('[network]\nupstream_proxy = "http://"\n', "network.upstream_proxy"),
    ],
)
def test_what_is_wrong_is_a_usage_error(home: Path, text: str, told: str) -> None:
    write(home / "config.toml", text)
    with pytest.raises(UsageError, match=told):
        watched(home).load()


def test_a_change_counts_once_it_has_settled(home: Path) -> None:
    configuration = watched(home, "a.test")
    configuration.load()
    assert not configuration.changed()
    write(home / "config.toml", "[network")
    assert not configuration.changed(), "somebody may still be writing"
    write(home / "config.toml", "[network]\n")
    assert not configuration.changed()
    assert configuration.changed()
    configuration.load()
    assert not configuration.changed()


def test_a_wrong_file_is_told_once(home: Path) -> None:
    configuration = watched(home, "a.test")
    configuration.load()
    write(home / "config.toml", "wrong")
    configuration.changed()
    assert configuration.changed()
    with pytest.raises(UsageError):
        configuration.load()
    assert not configuration.changed()
    assert not configuration.changed()


def test_files_that_come_go_and_move_are_changes(home: Path) -> None:
    configuration = watched(home, "a.test")
    configuration.load()
    write(home / "one", "[network]\n")
    write(home / "two", "[network]\n")
    for change in (
        lambda: (home / "config.toml").symlink_to(home / "one"),
        lambda: ((home / "config.toml").unlink(), (home / "config.toml").symlink_to(home / "two")),
        (home / "config.toml").unlink,
        lambda: write(home.parent / ".doorward" / "config.toml", "[network]\n"),
    ):
        change()
        configuration.changed()
        assert configuration.changed()
        configuration.load()
        assert not configuration.changed()


def test_a_user_without_a_home_is_told_what_to_set(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a uid no password database knows."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(UsageError, match="set DOORWARD_HOME"):
        WatchedConfiguration({}, {}).load()

"""Rules files as a run reads them: evaluated in bounds, kept by content, one bad file stopping everything."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from doorward import policy_loading, policy_worker
from doorward.configuration import load
from doorward.errors import UsageError
from doorward.policy_files import rule_files, rule_folders
from doorward.policy_loading import load_policy, network_rows, policy_from, refuse_unheld
from doorward.sessions.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home" / "rules").mkdir(parents=True)
    return Home(str(tmp_path / "home"))


def write(home: Home, name: str, text: str) -> Path:
    path = Path(home.path) / "rules" / name
    path.write_text(text)
    return path


def loaded(home: Home) -> dict[str, list[str]]:
    policy = load_policy([f"{home.path}/rules"], home)
    assert policy is not None
    return {name: [rule.where for rule in policy.rules_for(name)] for name in policy.programs}


def cached(home: Home) -> list[Path]:
    return sorted(Path(home.cache).glob("policy-*.json"))


def test_all_files_of_a_folder_by_name(home: Home) -> None:
    second = write(home, "b.rules", 'prefix_rule(pattern=["x"])')
    first = write(home, "a.rules", '\nprefix_rule(pattern=["x"])')
    write(home, "c.txt", "nothing to see")
    write(home, ".a.rules.swp", "an editor's")
    assert loaded(home) == {"x": [f"{first}:2", f"{second}:1"]}


def test_no_file_is_no_policy(home: Home) -> None:
    assert load_policy([f"{home.path}/rules", f"{home.path}/missing"], home) is None


def test_one_bad_file_stops_the_load(home: Home) -> None:
    write(home, "a.rules", 'prefix_rule(pattern=["x"])')
    bad = write(home, "b.rules", '\n\nprefix_rule(pattern="x")')
    with pytest.raises(UsageError, match=rf"^doorward: {bad}:3: "):
        load_policy([f"{home.path}/rules"], home)
    assert cached(home) == []


def test_what_is_kept_is_kept_by_content(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    host = 'network_rule(host="a.test", protocol="http", decision="deny")'
    file = write(home, "a.rules", f'prefix_rule(pattern=["x"])\n{host}')
    before = loaded(home)
    (kept,) = cached(home)
    assert kept.stat().st_mode & 0o777 == 0o600
    json.loads(kept.read_text())

    def never(sources: object) -> dict[str, object]:
        raise AssertionError("it was evaluated again")

    with monkeypatch.context() as patch:
        patch.setattr(policy_worker, "evaluate_bounded", never)
        assert loaded(home) == before
    file.write_text('prefix_rule(pattern=["y"])')
    assert list(loaded(home)) == ["y"]


@pytest.mark.parametrize("spoil", ["damage", "mode", "link", "shape"])
def test_a_kept_file_that_is_not_ours_is_not_believed(home: Home, tmp_path: Path, spoil: str) -> None:
    write(home, "a.rules", 'prefix_rule(pattern=["x"], decision="forbidden")')
    loaded(home)
    (kept,) = cached(home)
    empty = json.dumps({"programs": {}, "host_executables": {}, "network": []})
    if spoil == "damage":
        kept.write_text("{")
    elif spoil == "mode":
        kept.write_text(empty)
        kept.chmod(0o666)
    elif spoil == "shape":
        kept.write_text("[]")
    else:
        kept.unlink()
        (tmp_path / "other").write_text(empty)
        kept.symlink_to(tmp_path / "other")
    assert list(loaded(home)) == ["x"]
    assert os.path.isfile(kept) and not kept.is_symlink() and kept.stat().st_mode & 0o777 == 0o600


def test_only_so_many_are_kept(home: Home) -> None:
    for number in range(12):
        write(home, "a.rules", f'prefix_rule(pattern=["x{number}"])')
        loaded(home)
    assert len(cached(home)) == policy_loading._KEPT


def test_a_home_that_cannot_be_written_costs_only_time(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, "a.rules", 'prefix_rule(pattern=["x"])')
    Path(home.cache).write_text("no folder")
    assert list(loaded(home)) == ["x"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = [0] * 2000000000", "took more than 512 MiB"),
        ('def f():\n  x = "a"\n  for i in range(60):\n    x = x + x\nf()', "took more than 512 MiB"),
        ("x = " + "[" * 3000 + "]" * 3000, "a.rules"),
        ("x = 1 << 100000000000", "a.rules:1: "),
    ],
)
def test_a_huge_value_is_bounded(home: Home, text: str, told: str) -> None:
    file = write(home, "a.rules", text)
    with pytest.raises(UsageError) as raised:
        policy_from([str(file)], None)
    assert told in str(raised.value)
    assert str(file) in str(raised.value)


def test_a_loop_without_an_end_is_bounded(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_worker, "SECONDS", 0.2)
    file = write(home, "a.rules", "\ndef f():\n  for i in range(1 << 30):\n    pass\nf()")
    with pytest.raises(UsageError, match=rf"^doorward: {file}:3: it is not done after 0.2 s"):
        policy_from([str(file)], None)


def test_what_never_comes_back_is_ended(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """An allocation that fails can leave the evaluation waiting for ever; the kernel ends it."""
    monkeypatch.setattr(policy_worker, "SECONDS", 0.1)
    monkeypatch.setattr(policy_worker, "_GRACE", 1)
    monkeypatch.setattr(policy_worker, "_document", lambda sources: os.read(os.pipe()[0], 1))
    file = write(home, "a.rules", "")
    with pytest.raises(UsageError, match=r"or 1.1 s and was ended"):
        policy_from([str(file)], None)


@pytest.mark.parametrize("spoil", ["bytes", "large", "open", "missing", "fifo"])
def test_a_file_that_cannot_be_read_is_named(home: Home, spoil: str) -> None:
    file = write(home, "a.rules", "")
    if spoil == "bytes":
        file.write_bytes(b"\n\n# \xff\n")
    elif spoil == "large":
        file.write_text("#" * (1 << 20) + "\n")
    elif spoil == "open":
        file.chmod(0o666)
    else:
        file.unlink()
        if spoil == "fifo":
            os.mkfifo(file)
    with pytest.raises(UsageError, match=rf"^doorward: {file}(:3)?:? ") as raised:
        policy_from([str(file)], None)
    assert (f"{file}:3:" in str(raised.value)) == (spoil == "bytes")


def test_which_folders_count(home: Home, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".doorward").mkdir(parents=True)
    env = {"HOME": "/home/u"}

    def folders(*overrides: str, environment: dict[str, str] = env) -> tuple[str, ...]:
        configuration = load(home.path, str(project), environment, overrides=overrides, system=str(tmp_path / "none"))
        return rule_folders(configuration, home, environment)

    assert folders() == (f"{home.path}/rules",)
    assert folders("policy.import_codex=true") == (f"{home.path}/rules", "/home/u/.codex/rules")
    elsewhere = {"HOME": "/home/u", "CODEX_HOME": "/c"}
    assert folders("policy.import_codex=true", environment=elsewhere)[-1] == "/c/rules"
    Path(home.config).write_text(f'projects."{project}".trust_level = "trusted"\n')
    assert folders() == (f"{home.path}/rules", f"{project}/.doorward/rules")
    assert folders("policy.import_codex=true")[-1] == f"{project}/.codex/rules"


def test_files_are_listed_folder_by_folder(tmp_path: Path) -> None:
    for name in ("b/1.rules", "a/2.rules", "a/1.rules", "a/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = rule_files((str(tmp_path / "b"), str(tmp_path / "gone"), str(tmp_path / "a")))
    assert [path.removeprefix(f"{tmp_path}/") for path in found] == ["b/1.rules", "a/1.rules", "a/2.rules"]


def test_rules_for_hosts_become_rows_of_the_proxy(home: Home) -> None:
    file = write(
        home,
        "a.rules",
        'network_rule(host="a.test", protocol="https", decision="allow")\n'
        'network_rule(host="a.test", protocol="http", decision="deny")\n'
        'network_rule(host="b.test", protocol="socks5_tcp", decision="allow")\n'
        'network_rule(host="2001:db8::1", protocol="https", decision="allow")\n'
        'network_rule(host="c.test", protocol="socks5_udp", decision="deny")\n'
        'network_rule(host="d.test", protocol="http", decision="prompt")\n'
        'network_rule(host="d.test", protocol="https", decision="allow")\n',
    )
    policy = policy_from([str(file)], None)
    assert network_rows(policy) == {
        "prompt": [{"rule": "d.test", "source": "policy", "where": f"{file}:6"}],
        "deny": [
            {"rule": "a.test", "source": "policy", "where": f"{file}:2"},
            {"rule": "udp:c.test", "source": "policy", "where": f"{file}:5"},
        ],
        "allow": [
            {"rule": "b.test", "source": "policy", "where": f"{file}:3"},
            {"rule": "[2001:db8::1]", "source": "policy", "where": f"{file}:4"},
        ],
    }
    with pytest.raises(UsageError, match=rf"^doorward: {file}:2: the network_rule for a.test would not hold"):
        refuse_unheld(policy)

"""`doorward summary` and `doorward allowlist learn`: from rollouts to what a person pastes."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.commands import allowlist, summary
from doorward.commands.dispatch import guarded
from doorward.sessions.home import Home
from doorward.sessions.rollout import Rollout

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*args: str, command: Callable[[list[str]], int] = summary.main) -> tuple[int, str, str]:
        status = guarded(command, list(args))
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


def learn(run: Run, *args: str) -> tuple[int, str, str]:
    return run("learn", *args, command=allowlist.main)


def record(home: Path, name: str, *connections: tuple[str, int, str]) -> None:
    """A session with one network record for each (host, port, reason)."""
    store = Home(str(home))
    store.ensure()
    with Rollout.create(store, cwd="/srv", name=name) as rollout:
        for host, port, reason in connections:
            record = {"host": host, "port": port, "decision": "allow" if reason == "allowed" else "deny"}
            rollout.append("network", {"turn": 1, **record, "reason": reason, "rule": None, "bytes_down": 10})


def test_several_sessions_make_one_summary(run: Run, home: Path) -> None:
    record(home, "one", ("a.test", 443, "allowed"), ("b.test", 443, "not_allowed"))
    record(home, "two", ("b.test", 443, "not_allowed"))
    status, out, _ = run("--json", "one", "two", "one")
    document = json.loads(out)
    assert status == 0 and len(document["sessions"]) == 2
    assert [(row["host"], row["connections"]) for row in document["refused"]] == [("b.test", 2)]
    assert run("one")[1].startswith("## doorward: refused 1 time\n")


def test_github_gets_its_summary_at_the_end_of_its_file_and_its_commands_on_stdout(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(home, "one", ("b.test", 443, "not_allowed"))
    file = tmp_path / "step.md"
    file.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    status, out, err = run("--format", "github", "one")
    assert (status, err) == (0, "") and out.startswith("::error title=doorward refused b.test%3A443::")
    assert file.read_text().startswith("before\n## doorward: refused 1 time")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "file"))
    assert run("--format", "github", "one")[0] == 125


@pytest.mark.parametrize("args", [(), ("nobody",), ("--format", "html", "one")])
def test_summary_of_nothing_is_a_mistake(run: Run, home: Path, args: tuple[str, ...]) -> None:
    record(home, "one")
    assert run(*args)[0] == 2


def test_learned_rules_are_toml_with_their_provenance_and_the_difference_is_told(run: Run, home: Path) -> None:
    record(home, "one", ("a.test", 443, "allowed"), ("c.test", 22, "allowed"), ("b.test", 443, "not_allowed"))
    status, out, err = learn(run, "--allow", "c.test:22", "one")
    assert status == 0 and tomllib.loads(out) == {"network": {"allow": ["a.test:443", "c.test:22"]}}
    assert "1 connection, in 1 session" in out and time.strftime("%Y-", time.gmtime()) in out
    assert "doorward: 1 of 2 rules is new; to keep them for this project: doorward allowlist learn --write " in err
    assert "+ a.test:443\n" in err and "  c.test:22  (covered by c.test:22)\n" in err and "b.test" not in err


def test_what_was_refused_is_learned_only_when_asked_for(run: Run, home: Path) -> None:
    record(home, "one", ("b.test", 443, "not_allowed"), ("d.test", 443, "denied"))
    assert tomllib.loads(learn(run, "one")[1]) == {"network": {"allow": []}}
    assert tomllib.loads(learn(run, "--refused", "one")[1]) == {"network": {"allow": ["b.test:443"]}}


def test_rules_no_recording_used_are_listed(run: Run, home: Path) -> None:
    record(home, "one", ("a.test", 443, "allowed"))
    _, out, err = learn(run, "--prune", "--json", "--allow", "a.test", "--allow", "old.test", "one")
    document = json.loads(out)
    assert document["unused"] == ["old.test"] and document["rules"][0]["covered_by"] == "a.test" and err == ""


def test_a_lock_file_is_written_anew_and_checked(run: Run, home: Path, tmp_path: Path) -> None:
    record(home, "one", ("a.test", 443, "allowed"))
    record(home, "two", ("b.test", 443, "allowed"))
    lock = tmp_path / "allowlist.lock.toml"
    assert learn(run, "--write", str(lock), "one")[0] == 0
    assert learn(run, "--check", str(lock), "one") == (0, "", "")
    assert learn(run, "--check", str(lock), "one", "two")[:2] == (1, "missing: b.test:443\n")
    assert learn(run, "--check", str(lock), "two")[1] == "missing: b.test:443\nunused: a.test:443\n"
    learn(run, "--write", str(lock), "two")
    assert tomllib.loads(lock.read_text()) == {"network": {"allow": ["b.test:443"]}}


def test_a_persons_file_keeps_what_it_has(run: Run, home: Path, tmp_path: Path) -> None:
    record(home, "one", ("a.test", 443, "allowed"))
    file = tmp_path / "config.toml"
    file.write_text('# mine\n[network]\nallow = ["b.test"]  # why\n')
    learn(run, "--write", str(file), "one")
    assert file.read_text().startswith("# mine\n") and "# why" in file.read_text()
    assert tomllib.loads(file.read_text()) == {"network": {"allow": ["b.test", "a.test:443"]}}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "name the recorded sessions"),
        (("--write", "a", "--check", "b", "one"), "exclude each other"),
        (("--wildcards", "1", "one"), "from 2 on"),
        (("--check", "nowhere.toml", "one"), "cannot read nowhere.toml"),
    ],
)
def test_mistakes_have_a_sentence(run: Run, home: Path, args: tuple[str, ...], said: str) -> None:
    record(home, "one", ("a.test", 443, "allowed"))
    status, out, err = learn(run, *args)
    assert (status, out) == (2, "") and said in err


@pytest.mark.parametrize("text", ["= no", "[network]\n", '[network]\nallow = ["https://x"]\n'])
def test_a_lock_file_that_is_none(run: Run, home: Path, tmp_path: Path, text: str) -> None:
    record(home, "one", ("a.test", 443, "allowed"))
    (tmp_path / "lock.toml").write_text(text)
    status, out, err = learn(run, "--check", str(tmp_path / "lock.toml"), "one")
    assert (status, out) == (2, "") and "lock.toml" in err


def test_recordings_of_an_older_format_are_read_for_what_they_hold(run: Run, home: Path) -> None:
    """Records without the keys that came later, with other types in them, and ones that nobody knows any more: places
    count, and nothing is made up."""
    store = Home(str(home))
    store.ensure()
    with Rollout.create(store, cwd="/srv", name="old") as rollout:
        rollout.append("network", {"host": "a.test", "port": 443, "decision": "allow", "reason": "allowed"})
        rollout.append("network", {"host": "b.test", "port": 80, "decision": "deny", "reason": "not_allowed"})
        rollout.append("network", {"host": "c.test", "port": "443", "decision": "allow"})
        rollout.append("network", {"destination": "d.test:443", "verdict": "allow"})
        odd = {"bytes_up": None, "bytes_down": "9", "process": "curl", "method": 3, "path": {}, "requests": []}
        rollout.append("network", {"host": "e.test", "port": 443, "decision": "allow", "reason": "allowed", **odd})
        rollout.append("refusal", {"host": "b.test"})
        rollout.append("verdict_v0", {"decision": "allow"})
        rollout.append("observation", {"exit_code": "0", "hints": "none", "duration_s": "1"})
        rollout.append("exec", {"enforcement": "kernel"})
    status, out, err = learn(run, "--json", "old")
    assert (status, err) == (0, "")
    assert [each["rule"] for each in json.loads(out)["rules"]] == ["a.test:443", "e.test:443"]
    document = json.loads(run("--json", "old")[1])
    assert [row["host"] for row in document["refused"]] == ["b.test"] and document["hints"] == []
    assert [(row["host"], row["bytes_down"]) for row in document["reached"]] == [("a.test", 0), ("e.test", 0)]
    status, out, err = run("old")
    assert (status, err) == (0, "") and "`b.test:80`" in out


def test_a_place_that_could_not_be_reached_is_named_and_gets_no_rule(run: Run, home: Path) -> None:
    store = Home(str(home))
    store.ensure()
    with Rollout.create(store, cwd="/srv", name="lost") as rollout:
        lost = {"host": "a.test", "port": 443, "decision": "allow", "reason": "not_allowed", "error": "dns-failed"}
        rollout.append("network", {"turn": 1, **lost})
    status, out, err = learn(run, "lost")
    assert status == 0 and tomllib.loads(out) == {"network": {"allow": []}}
    assert "no rule for what was let through and could not be reached: a.test:443\n" in err

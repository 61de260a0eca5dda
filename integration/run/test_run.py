"""`doorward run`, from its words to its exit status, with real bubblewrap and real clients."""

from __future__ import annotations

import json
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest

BODY_KEYS = ["status", "host", "port", "protocol", "method", "decision", "reason", "source", "rule", "message", "hint"]
CURL = ("curl", "-sS", "--max-time", "20")


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 1", 1), ("exit 7", 7), ("exit 255", 255), ("exit 2", 2), ("exit 125", 125)],
)
def test_the_exit_status_is_the_commands_own(doorward: Any, script: str, status: int) -> None:
    """P-TT-01."""
    assert doorward("run", "--", "sh", "-c", script).status == status


@pytest.mark.parametrize(
    ("name", "number"), [("TERM", 15), ("KILL", 9), ("ABRT", 6), ("SEGV", 11), ("INT", 2), ("PIPE", 13)]
)
def test_death_by_signal_is_128_and_its_number(doorward: Any, name: str, number: int) -> None:
    """P-TT-02."""
    seen = doorward("run", "--json", "--", "sh", "-c", f"kill -{name} $$")
    assert seen.status == 128 + number
    assert seen.document["exit_code"] == 128 + number


def test_a_missing_program_is_127_and_named(doorward: Any) -> None:
    seen = doorward("run", "--", "no-such-program-here")
    assert seen.status == 127
    assert "no-such-program-here" in seen.err


def test_a_file_that_is_not_executable_is_126(doorward: Any) -> None:
    (doorward.workspace / "data").write_text("no program")
    seen = doorward("run", "--", "./data")
    assert seen.status == 126
    assert "data" in seen.err


def test_both_streams_pass_through_unchanged(doorward: Any) -> None:
    seen = doorward("run", "--", "sh", "-c", r"printf 'a\000\377\r\n'; printf 'e\376' >&2")
    assert seen.out == b"a\x00\xff\r\n"
    assert seen.err == "e\\xfe"


def test_standard_input_reaches_the_command(doorward: Any) -> None:
    assert doorward("run", "--", "cat", input=b"\x00\xffabc").out == b"\x00\xffabc"


def test_a_write_outside_fails_and_the_status_is_kept(doorward: Any, tmp_path: Path) -> None:
    """The issue's own words: exits 7 and the file does not exist."""
    outside = tmp_path / "outside"
    outside.mkdir()
    seen = doorward("run", "--", "sh", "-c", f"touch {outside}/x; touch /etc/doorward-test-x; exit 7")
    assert seen.status == 7
    assert not (outside / "x").exists()
    assert not Path("/etc/doorward-test-x").exists()


def test_a_write_in_the_workspace_lands(doorward: Any) -> None:
    assert doorward("run", "--", "sh", "-c", "echo hi > made").status == 0
    assert (doorward.workspace / "made").read_text() == "hi\n"


def test_add_dir_and_read_only(doorward: Any, tmp_path: Path) -> None:
    added = tmp_path / "added"
    added.mkdir()
    assert doorward("run", "--add-dir", str(added), "--", "sh", "-c", f"touch {added}/x").status == 0
    assert (added / "x").exists()
    (doorward.workspace / "kept").mkdir()
    assert doorward("run", "--read-only", "kept", "--", "sh", "-c", "touch kept/x").status != 0
    assert not (doorward.workspace / "kept" / "x").exists()


def test_read_only_mode_writes_nothing(doorward: Any) -> None:
    assert doorward("run", "-s", "read-only", "--", "sh", "-c", "echo x > made").status != 0
    assert not (doorward.workspace / "made").exists()


def test_an_allowed_host_answers(doorward: Any, origin: Any) -> None:
    seen = doorward("run", *origin.reach(), "--", *CURL, origin.url())
    assert (seen.status, seen.out, seen.err) == (0, b"hello\n", "")
    assert len(origin.requests) == 1


def test_a_refused_host_is_told_and_summed_up(doorward: Any, origin: Any) -> None:
    seen = doorward("run", *origin.reach(), "--", *CURL, "-i", "http://b.test/", "http://b.test/")
    assert seen.status == 0
    phrase = b"403 Blocked (not_allowed): b.test:80 is in no allow rule - to allow it: --allow b.test"
    assert b"HTTP/1.1 " + phrase in seen.out
    assert b"x-proxy-error: blocked-by-allowlist" in seen.out
    assert "refused 2 times" in seen.err
    assert "b.test:80  2x" in seen.err
    assert "--allow b.test" in seen.err
    assert origin.requests == []


def test_json_is_one_document_with_every_key(doorward: Any) -> None:
    """The issue's own words: one observation whose first refusal has every key, and the rollout holds the same."""
    seen = doorward("run", "--json", "--allow", "a.test", "--", *CURL, "http://b.test/")
    observation = seen.document
    assert observation["success"] is True
    assert observation["exit_code"] == 0
    refusal = observation["refusals"][0]
    assert list(refusal)[: len(BODY_KEYS)] == BODY_KEYS
    assert refusal["host"] == "b.test"
    assert json.loads(observation["output"]) == {key: refusal[key] for key in BODY_KEYS}
    lines = doorward.lines(observation["session"])
    kinds = [line["type"] for line in lines]
    recorded = lines[kinds.index("refusal")]["payload"]
    assert {key: recorded[key] for key in BODY_KEYS} == {key: refusal[key] for key in BODY_KEYS}
    assert kinds.index("verdict") < kinds.index("exec") < kinds.index("refusal") < kinds.index("observation")


def test_json_carries_the_output_with_bad_bytes_escaped(doorward: Any) -> None:
    """P-TT-11."""
    seen = doorward("run", "--json", "--", "sh", "-c", r"printf 'a\377'; printf b >&2")
    assert seen.document["output"] == "a\udcffb"


def test_the_options_that_would_allow_it_do_allow_it(doorward: Any, origin: Any) -> None:
    """P-DM-12: the advice in a denial round-trips."""
    hosts = ("-c", 'network.hosts={"a.test" = "127.0.0.1"}')
    first = doorward("run", "--json", *hosts, "--", *CURL, origin.url())
    hint = first.document["refusals"][0]["hint"].split()
    second = doorward("run", *hosts, *hint, "--", *CURL, origin.url())
    assert second.out == b"hello\n"


@pytest.mark.parametrize("name", ["gateway", "localhost"])
def test_the_advice_about_a_name_without_a_dot_is_one_that_can_be_taken(doorward: Any, origin: Any, name: str) -> None:
    """P-DM-12: accepted when explicit, and what a refusal says passes the validator."""
    pins = ("-c", 'network.hosts={"gateway" = "127.0.0.1"}')
    curl = (*CURL, "--noproxy", "", origin.url(name))
    refused = doorward("run", "--json", *pins, "--", *curl)
    (refusal,) = refused.document["refusals"]
    assert origin.requests == []
    hint = shlex.split(refusal["hint"])
    assert hint == ["--allow", f"{name}:{origin.port}"]
    assert doorward("run", *pins, *hint, "--", *curl).out == b"hello\n"


def test_a_rule_without_a_port_opens_no_other_port(doorward: Any, origin: Any) -> None:
    """P-PP-15: tunnels and plain requests, to where a server waits and to the ports of databases, mail and ssh."""
    pins = ("--allow", "a.test", "-c", 'network.hosts={"a.test" = "127.0.0.1"}')
    ports = (origin.port, 22, 25, 3306, 5432, 6379)
    curl = shlex.join(CURL)
    script = "\n".join(f"{curl} {how} http://a.test:{port}/; echo" for port in ports for how in ("", "--proxytunnel"))
    seen = doorward("run", "--json", *pins, "--", "sh", "-c", script)
    told = [(each["port"], each["reason"], each["hint"]) for each in seen.document["refusals"]]
    assert told == [(port, "port_not_allowed", f"--allow a.test:{port}") for port in ports for _ in range(2)]
    assert f"not port {origin.port}" in seen.document["output"]
    assert origin.requests == []
    again = doorward("run", *pins, *told[0][2].split(), "--", *CURL, "--proxytunnel", origin.url())
    assert again.out == b"hello\n" and len(origin.requests) == 1


def test_fail_on_deny(doorward: Any) -> None:
    assert doorward("run", "--fail-on-deny", "--", *CURL, "http://b.test/").status == 121
    assert doorward("run", "--fail-on-deny", "--", "sh", "-c", "curl -sS http://b.test/; exit 3").status == 3
    assert doorward("run", "--fail-on-deny", "--", "true").status == 0


def test_timeout_ends_it_and_says_so(doorward: Any) -> None:
    seen = doorward("run", "--timeout", "0.3", "--", "sleep", "600")
    assert seen.status == 124
    assert "time limit" in seen.err


def test_timeout_kills_what_ignores_term(doorward: Any) -> None:
    seen = doorward("run", "--timeout", "0.2", "--", "sh", "-c", "trap '' TERM; sleep 600 & wait; sleep 600")
    assert seen.status == 124


def test_a_denied_command_is_an_observation(doorward: Any) -> None:
    seen = doorward("run", "--json", "--", "rm", "-rf", "build")
    observation = seen.document
    assert seen.status == observation["exit_code"] == 126
    assert observation["success"] is True
    assert len(observation["refusals"]) == 1
    kinds = [line["type"] for line in doorward.lines(observation["session"])]
    assert "exec" not in kinds
    events = [line["payload"]["type"] for line in doorward.lines(observation["session"]) if line["type"] == "event_msg"]
    assert events[0] == "task_started"
    assert events[-1] == "task_complete"
    assert [kind for kind in kinds if kind in ("verdict", "refusal", "observation")] == [
        "verdict",
        "refusal",
        "observation",
    ]


def test_a_session_goes_on(doorward: Any) -> None:
    first = doorward("run", "--json", "--name", "nightly", "--", "true").document
    second = doorward("run", "--json", "--session", "nightly", "--", "true").document
    third = doorward("run", "--json", "--session", first["session"], "--", "true").document
    assert [each["turn"] for each in (first, second, third)] == [1, 2, 3]
    assert {each["session"] for each in (first, second, third)} == {first["session"]}
    assert len(doorward.rollouts()) == 1


def test_everything_kept_is_private(doorward: Any) -> None:
    doorward("run", "--", "true")
    for path in [doorward.home, *doorward.home.rglob("*")]:
        mode = stat.S_IMODE(path.lstat().st_mode)
        # what stands for something hidden is empty: a folder, or a file that nobody may read
        folder = 0o555 if path.name == "hidden-directory" else 0o700
        assert mode in ((folder,) if path.is_dir() else (0o600, 0)), path


def test_the_environment_inside(doorward: Any) -> None:
    """P-EV-01, P-EV-15, and no secret in any environment or argument list inside."""
    secret = "hunter2-7f3a"
    seen = doorward(
        *("run", "--", "sh", "-c", "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'"),
        env={"GITHUB_TOKEN": secret, "HTTP_PROXY": "http://stale.test:1", "no_proxy": "*", "KEPT": "yes"},
    )
    text = seen.out.decode()
    assert secret not in text
    assert "KEPT=yes" in text
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert values["HTTP_PROXY"] == values["http_proxy"] == "http://127.0.0.1:3128"
    assert values["no_proxy"] == values["NO_PROXY"] == "localhost,127.0.0.1,::1"
    (line,) = [line for path in doorward.rollouts() for line in [path.read_text()]]
    assert secret not in line
    assert "GITHUB_TOKEN" not in [name["name"] for name in _environment(doorward)]


def _environment(doorward: Any) -> list[dict[str, Any]]:
    session = doorward.rollouts()[0].stem[-36:]
    (record,) = [line["payload"]["environment"] for line in doorward.lines(session) if line["type"] == "exec"]
    environment: list[dict[str, Any]] = record
    return environment


def test_pass_env_hands_one_over_and_its_value_stays_out_of_the_log(doorward: Any) -> None:
    secret = "hunter2-8c1d"
    seen = doorward("run", "--pass-env", "MY_TOKEN", "--", "sh", "-c", "echo ${MY_TOKEN}", env={"MY_TOKEN": secret})
    assert seen.out.decode().strip() == secret
    (entry,) = [each for each in _environment(doorward) if each["name"] == "MY_TOKEN"]
    assert entry["length"] == len(secret)
    assert "value" not in entry


def test_show_tells_the_story(doorward: Any) -> None:
    observation = doorward("run", "--json", "--", "sh", "-c", "echo out; curl -sS http://b.test/; exit 3").document
    shown = doorward("show", observation["session"])
    text = shown.out.decode()
    assert shown.status == 0
    for part in ("echo out", "b.test", "--allow b.test", "3"):
        assert part in text


def test_the_command_is_not_in_the_callers_process_group_and_has_no_descriptor_of_ours(doorward: Any) -> None:
    seen = doorward("run", "--", "sh", "-c", "ls /proc/self/fd | wc -l")
    assert seen.out.strip() == b"4"  # 0, 1, 2 and the one `ls` reads the folder with


def test_arguments_that_are_not_utf8(doorward: Any) -> None:
    """P-TT-11."""
    folder = doorward.workspace / "caf\udce9"
    folder.mkdir()
    (folder / "a\udcff").write_text("x")
    seen = doorward(
        *("run", "-C", str(folder), "--", "sh", "-c", 'printf %s "$1"; printf %s "$BAD"; ls', "sh", b"\xff\xfe"),
        env={"BAD": b"\xff", "LANG": "C"},
    )
    assert seen.out == b"\xff\xfe\xffa\xff\n"
    raw = doorward.rollouts()[0].read_bytes()
    assert raw.isascii()
    for line in raw.splitlines():
        json.loads(line)


def test_a_reader_that_leaves_ends_the_command(doorward: Any) -> None:
    """`doorward run -- yes | head -1` ends."""
    process = doorward.start("run", "--", "yes")
    assert process.stdout.read(2) == b"y\n"
    process.stdout.close()
    assert process.wait(20) == 128 + 13
    process.stderr.close()

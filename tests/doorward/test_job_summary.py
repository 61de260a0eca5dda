"""A CI job's summary: what a person reads, and what GitHub's runner reads."""

from typing import Any

from doorward import job_summary
from doorward.sessions.line import Line
from doorward.sessions.traffic import Report, report


def seen(*records: dict[str, Any]) -> Report:
    lines = [Line(record.pop("type", "network"), record, "2026-01-02T03:04:05Z") for record in records]
    return report([("0192f0c1-2345-7abc-8def-0123456789ab", lines)])


REFUSED = {"host": "no.test", "port": 443, "decision": "deny", "reason": "not_allowed", "rule": None}
REACHED = {"host": "ok.test", "port": 443, "decision": "allow", "reason": "allowed", "rule": "*.test", "bytes_up": 1500,
           "bytes_down": 2_500_000}  # fmt: skip


def test_refused_reached_and_the_lines_to_paste() -> None:
    text = job_summary.markdown(seen({**REFUSED}, {**REFUSED}, {**REACHED}))
    assert "refused 2 times" in text and "| `no.test:443` | 2 | is in no allow rule |" in text
    assert "| `ok.test:443` | 1 | 1.5 kB | 2.5 MB | `*.test` |" in text
    assert '  "no.test:443",' in text


def test_nothing_refused_is_said_and_nothing_is_to_paste() -> None:
    text = job_summary.markdown(seen({**REACHED}))
    assert "nothing was refused" in text and "toml" not in text


def test_weaker_enforcement_stands_at_the_top() -> None:
    exec_line = {"type": "exec", "enforcement": {"network": "env-only", "filesystem": "kernel"}}
    assert "network env-only" in job_summary.markdown(seen(exec_line, {**REACHED})).split("###")[0]


def test_what_a_watched_run_let_through_and_what_it_refused_are_two_things() -> None:
    """A deny rule holds while observing too."""
    watched = {**REFUSED, "decision": "allow", "bytes_down": 3000}
    denied = {**REFUSED, "host": "bad.test", "reason": "denied", "rule": "bad.test"}
    text = job_summary.markdown(seen(watched, denied))
    assert text.startswith("## doorward: refused 1 time; only observed: 1 connection would be refused\n")
    refused, through = text.split("### Let through, since this run only observed")
    assert "| `bad.test:443` | 1 | is denied by the rule bad.test |" in refused and "no.test" not in refused
    assert "| `no.test:443` | 1 | 0 B | 3.0 kB | is in no allow rule |" in through and '"no.test:443"' in through
    commands = job_summary.workflow_commands(seen({**watched}, {**denied})).splitlines()
    error, warning = sorted(commands)
    assert error.startswith("::error title=doorward refused bad.test%3A443::")
    assert warning.startswith("::warning title=doorward would refuse no.test%3A443::")
    assert warning.endswith("to allow it: --allow no.test:443")


def test_what_ran_and_how_it_ended_stands_at_the_top() -> None:
    ended = {"type": "observation", "exit_code": 7, "duration_s": 61.2}
    held = {"type": "exec", "enforcement": dict.fromkeys(("filesystem", "network", "process", "syscalls"), "kernel")}
    top = job_summary.markdown(seen({**held}, {**REACHED}, {**REACHED}, {**ended})).splitlines()[2]
    assert top == (
        "One command, exit status 7, 1 min 1 s. 1 place reached, 3.0 kB sent, 5.0 MB received. "
        "Held in by the kernel: files, network, processes, system calls."
    )
    two = job_summary.markdown(seen({**held}, {**ended}, {**ended, "exit_code": 0, "duration_s": 1.04})).splitlines()[2]
    assert two.startswith("2 commands, 1 of them failed, 1 min 2 s together. Nothing was reached.")
    nothing = job_summary.markdown(seen()).splitlines()[2]
    assert nothing == "No command has ended. Nothing was reached. Nothing was started."


def test_why_a_command_may_have_failed_is_told_once() -> None:
    hint = {"cause": "loopback", "message": "nothing listens there <here>", "remedy": "--allow-loopback 80"}
    ended = {"type": "observation", "exit_code": 1, "hints": [hint, {"odd": 1}, 3]}
    report = seen({**ended}, {**ended})
    assert job_summary.markdown(report).count("- nothing listens there &lt;here>\n") == 1
    assert job_summary.data(report)["hints"] == [hint["message"]]


def test_what_is_not_to_paste_says_how_it_is_allowed() -> None:
    """A local address, a path: the option stands beside it."""
    local = {**REFUSED, "host": "db.test", "reason": "not_allowed_local"}
    option = "--allow '{host = \"db.test\", addresses = [\"10.0.0.7\"]}'"
    refusal = {"type": "refusal", "host": "db.test", "port": 443, "hint": option}
    path = {"type": "refusal", "reason": "outside_path", "path": "/srv/x", "message": "m", "hint": "--add-dir /srv"}
    text = job_summary.markdown(seen(local, refusal, path))
    assert f"is a local address that no rule opens; to allow it: `{option}` |" in text
    assert "| `/srv/x` | 1 | m; to allow it: `--add-dir /srv` |" in text and "toml" not in text


def test_a_long_list_of_what_was_reached_is_folded_away() -> None:
    many = [{**REACHED, "host": f"h{number}.test"} for number in range(20)]
    text = job_summary.markdown(seen(*many))
    assert "<summary>Reached: 20 places</summary>\n\n| host |" in text and text.rstrip().endswith("</details>")
    assert "<details>" not in job_summary.markdown(seen({**REACHED}))


def test_a_deny_is_not_among_the_lines_to_paste() -> None:
    assert job_summary.wanted(seen({**REFUSED, "reason": "denied", "rule": "no.test"})) == []


def test_names_cannot_break_out_of_a_table_or_a_workflow_command() -> None:
    evil = {**REFUSED, "host": "a|b`<i>\n::error::x", "hint": "100%"}
    text = job_summary.markdown(seen({**evil}))
    assert "\n::error" not in text and "<i>" not in text and "a\\|b" in text
    commands = job_summary.workflow_commands(seen({**evil}))
    assert commands.count("\n") == 1


def test_as_data() -> None:
    by_policy = {"type": "refusal", "gate": "policy", "reason": "forbidden"}
    document = job_summary.data(seen({**REFUSED}, {**REACHED}, by_policy))
    assert (document["refused"][0]["host"], document["reached"][0]["bytes_down"]) == ("no.test", 2_500_000)
    assert document["rules"] == ["no.test:443"] and document["other"][0]["count"] == 1


def test_what_was_let_through_and_never_answered_is_no_place_that_was_reached() -> None:
    lost = {**REFUSED, "decision": "allow", "error": "dns-failed"}
    text = job_summary.markdown(seen({**lost}))
    assert "Nothing was reached." in text and "is in no allow rule; it could not be reached |" in text
    assert "toml" not in text

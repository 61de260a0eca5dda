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


def test_a_watched_run_says_that_nothing_was_enforced() -> None:
    watched = {**REFUSED, "decision": "allow"}
    text = job_summary.markdown(seen(watched))
    assert "Observed, not enforced" in text and "Would be refused" in text and '"no.test:443"' in text
    command = job_summary.workflow_commands(seen({**watched}))
    assert command.startswith("::warning title=doorward refused no.test%3A443::")


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

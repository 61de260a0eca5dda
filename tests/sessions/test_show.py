"""What a person sees of a session."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.sessions import items
from doorward.sessions.damage import Damage, DamageKind
from doorward.sessions.line import Line
from doorward.sessions.show import render

SESSION = "019ad1d2-0000-7000-8000-000000000001"
ARGV = ["sh", "-c", "curl http://b.test/"]
REASONS = [
    {"gate": "sandbox", "switch": "sandbox", "effect": "left-to-kernel", "sentence": "writes are held by the kernel"},
    {"gate": "approval", "switch": "", "effect": "allow", "sentence": "nothing risky is known"},
]
REFUSAL = {
    "status": "blocked",
    "host": "b.test",
    "port": 80,
    "protocol": "http",
    "method": "GET",
    "decision": "deny",
    "reason": "not_allowed",
    "source": "baseline_policy",
    "rule": None,
    "message": "b.test:80 is in no allow rule",
    "hint": "--allow b.test",
}


def session(*records: items.Item) -> list[Line]:
    first = items.session_meta(
        SESSION, timestamp="2025-11-29T23:41:00.123Z", cwd="/w", name="mine", meta={"cli_version": "0.1"}
    )
    return [Line(type, payload, "2025-11-29T23:41:01.000Z") for type, payload in [first, *records]]


def start(turn: int = 1, **options: object) -> tuple[items.Item, ...]:
    return items.turn_start(
        SESSION, turn, argv=ARGV, cwd="/w", approval_policy="never", sandbox_policy={"type": "read-only"}
    )


def output(head: str, tail: str = "", omitted: int = 0, stderr: int = 0) -> dict[str, object]:
    return {"head": head, "tail": tail, "omitted": omitted, "stdout": len(head), "stderr": stderr, "blob": None}


WHOLE = session(
    *start(),
    items.verdict(1, {"verdict": "allow", "gate": "approval", "reasons": REASONS}, argv=ARGV, cwd="/w"),
    items.exec(
        1,
        argv=ARGV,
        cwd="/w",
        policy_digest="",
        enforcement={"filesystem": "kernel", "network": "none"},
        environment=[{"name": "A", "fingerprint": "x", "length": 1}, {"name": "TZ", "value": "UTC"}],
        fingerprint_key="ab",
    ),
    *[
        items.network(1, {"decision": "deny", "host": "b.test", "port": 80, "reason": "not_allowed", "requests": 1})
        for _ in range(3)
    ],
    items.network(
        1,
        {
            "decision": "allow",
            "host": "::1",
            "port": 443,
            "protocol": "https_connect",
            "rule": "a.test",
            "bytes_up": 900,
            "bytes_down": 1_234_567,
            "requests": 2,
        },
    ),
    *[items.refusal(1, REFUSAL)] * 3,
    items.observation(1, exit_code=22, duration_s=1.2345, output=output("one\ntwo\n", stderr=3), notes=["it was slow"]),
    items.turn_end(SESSION, 1),
)


def test_a_whole_turn() -> None:
    assert (
        render(WHOLE)
        == f"""\
session {SESSION}  mine
  2025-11-29 23:41:00 UTC in /w
  by doorward 0.1

turn 1  sh -c 'curl http://b.test/'
  2025-11-29 23:41:01 UTC, exit 22, 1.23 s
  note      it was slow
  verdict   allow (gate approval)
    sandbox    left-to-kernel writes are held by the kernel  [sandbox]
    approval   allow          nothing risky is known
  enforced  filesystem kernel, network none
  variables 2, 1 of them as fingerprints
  network
    deny   b.test:80  3 connections  not_allowed
    allow  [::1]:443 (https_connect)  2 requests  900 B up, 1.23 MB down  rule a.test
  refused
    b.test:80 (http)  3x  b.test:80 is in no allow rule
      to allow it: --allow b.test
  output    8 B stdout, 3 B stderr
    | one
    | two
"""
    )


def test_colour_only_when_asked() -> None:
    assert "\x1b" not in render(WHOLE)
    coloured = render(WHOLE, colour=True)
    assert "\x1b[32mallow\x1b[0m" in coloured
    assert "\x1b[33mfilesystem kernel, network none\x1b[0m" in coloured
    assert coloured.replace("\x1b[", "\x00").count("\x00") % 2 == 0


def test_a_denied_run_has_no_exec() -> None:
    verdict = {"verdict": "deny", "gate": "policy", "reasons": []}
    text = render(
        session(
            *start(),
            items.verdict(1, verdict, argv=["rm", "-rf", "/"], cwd="/"),
            items.refusal(1, {"host": None, "message": "a rule forbids it", "hint": None, "gate": "policy"}),
            items.observation(1, exit_code=126),
            items.turn_end(SESSION, 1),
        )
    )
    assert "turn 1  rm -rf /\n" in text
    assert "    policy  a rule forbids it\n" in text
    assert "output" not in text
    assert "to allow" not in text


def test_an_open_turn_runs_or_was_cut_off() -> None:
    """P-RS-14: never "working" for ever."""
    lines = session(*start())
    assert "has no end: its writer is gone" in render(lines)
    assert ", running\n" in render(lines, live=True)
    marked = session(*start(), items.turn_interrupted(SESSION, 1))
    assert "interrupted: its writer was gone before it ended" in render(marked, live=True)


def test_damage_stands_where_it_is() -> None:
    damage = Damage(DamageKind.NOT_JSON, 3, 70, 9, "not JSON")
    text = render([WHOLE[0], damage, *WHOLE[1:]])
    assert "! line 3 (byte 70, 9 bytes) is skipped: not JSON\n\nturn 1" in text


def test_long_output_is_cut_and_says_so() -> None:
    lines = session(*start(), items.observation(1, exit_code=0, output=output("x\n" * 30, "end\n", 7)))
    text = render(lines)
    assert text.count("    | x\n") == 20
    assert text.endswith("    | …\n")
    whole = render(lines, output_lines=None)
    assert whole.count("    | x\n") == 30
    assert whole.endswith("    | [… 7 bytes left out …]\n    | end\n")


def test_output_that_was_not_recorded() -> None:
    exec = items.exec(
        1,
        argv=["a"],
        cwd="/",
        policy_digest="",
        enforcement={},
        environment=[],
        fingerprint_key=None,
        output="not-recorded",
    )
    assert "  output    not recorded\n" in render(session(*start(), exec, items.observation(1, exit_code=0)))


@pytest.mark.parametrize(
    "field", ["message", "hint", "host", "protocol", "reason"], ids=lambda field: f"in a refusal's {field}"
)
def test_no_record_can_drive_the_terminal(field: str) -> None:
    attack = "\x1b]0;owned\x07\r\u202e\udcff\nturn 9  fake"
    refusal = items.refusal(1, {**REFUSAL, field: attack})
    network = items.network(1, {"decision": "deny", "host": "h", "port": 1, field: attack})
    said = ("event_msg", {"type": "agent_message", "message": attack})
    observed = items.observation(1, exit_code=1, output=output(attack), notes=[attack])
    text = render(session(*start(), network, refusal, said, observed, items.renamed(SESSION, attack)))
    assert not set(text) & {"\x1b", "\x07", "\r", "\u202e", "\udcff"}
    assert "\nturn 9" not in text
    assert "\n    | turn 9  fake" in text
    text.encode()


def test_many_places_are_cut() -> None:
    refusals = [items.refusal(1, {**REFUSAL, "host": f"h{number}.test"}) for number in range(25)]
    text = render(session(*start(), *refusals))
    assert text.count("to allow it") == 20
    assert "    and 5 more\n" in text


def test_a_record_too_long_to_load() -> None:
    line = Line("observation", {"omitted_bytes": 99}, whole=False)
    assert "1 records were too long to load" in render([*session(*start()), line])


def test_a_session_of_another_program() -> None:
    first = {"id": SESSION, "timestamp": "2025-11-29T10:00:00Z", "cwd": "/w", "originator": "codex"}
    meta = Line("session_meta", first)
    events = [("task_started", ""), ("user_message", "fix it"), ("agent_message", "done"), ("task_complete", "")]
    lines = [Line("event_msg", {"type": kind, "message": text}) for kind, text in events]
    text = render([meta, Line("response_item", {"type": "message", "role": "user"}), *lines])
    assert (
        text
        == f"""\
session {SESSION}
  2025-11-29 10:00:00 UTC in /w
  by codex

turn 1  fix it
  no outcome is recorded
  agent: done
"""
    )


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.tuples(st.sampled_from([*items.RECORDS]), st.integers(0, 30), _JSON), max_size=6))
def test_any_shape_is_shown_somehow(records: list[tuple[str, int, object]]) -> None:
    """P-RS-16: a key of another version with any value in it."""
    more = "reasons output enforcement environment notes duration_s exit_code head argv action type signal name"
    keys = sorted({*REFUSAL, *more.split()})
    lines = [Line(type, {keys[at % len(keys)]: value}) for type, at, value in records]
    render([*session(*start()), *lines]).encode()


def test_answers_reviews_and_hooks_stand_under_the_verdict() -> None:
    shown = render(
        session(
            *start(),
            items.event(1, {"type": "review", "by": "guardian.command", "status": "failed", "reason": "exit\x1b 1"}),
            items.event(1, {"type": "approval_answered", "answer": "yes", "scope": "session", "channel": "q"}),
            items.event(1, {"type": "hook_ended", "event": "before_exec", "argv": ["./x", "a b"], "exit_code": 0}),
            items.event(1, {"type": "hook_refused", "event": "after_exec", "argv": ["./y"]}),
            items.event(1, {"type": "hook_ended", "event": 1, "argv": "nonsense"}),
            items.verdict(1, {"verdict": "allow", "gate": "approval", "reasons": REASONS}, argv=ARGV, cwd="/w"),
        )
    )
    assert "    asked      answered yes (session, q)\n" in shown
    assert "    review     guardian.command failed: exit" in shown and "\x1b" not in shown
    assert "    hook       before_exec ./x 'a b' exit 0\n" in shown
    assert "    hook       after_exec ./y was not run\n" in shown

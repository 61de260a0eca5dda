"""Lines folded into turns."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from doorward.sessions import items
from doorward.sessions.damage import Damage, DamageKind
from doorward.sessions.line import Line
from doorward.sessions.turns import Renamed, Turn, parts

SESSION = "019ad1d2-0000-7000-8000-000000000001"


def lines(*records: items.Item) -> list[Line]:
    return [Line(type, payload, f"t{at}") for at, (type, payload) in enumerate(records)]


def start(turn: int) -> tuple[items.Item, ...]:
    return items.turn_start(
        SESSION, turn, argv=["a"], cwd="/", approval_policy="never", sandbox_policy={"type": "read-only"}
    )


def turns(given: list[Line]) -> list[Turn]:
    return [part for part in parts(given) if isinstance(part, Turn)]


def test_a_turn_holds_what_was_recorded_of_it() -> None:
    (turn,) = turns(
        lines(
            *start(1),
            items.verdict(1, {"verdict": "allow"}, argv=["a"], cwd="/"),
            items.network(1, {"host": "a.test", "port": 1, "decision": "allow", "bytes_up": 2, "requests": 3}),
            items.network(1, {"host": "a.test", "port": 1, "decision": "allow", "bytes_up": 2, "requests": 3}),
            items.network(1, {"host": "a.test", "port": 2, "decision": "allow", "error": "reset"}),
            items.refusal(1, {"host": "b.test", "message": "no"}),
            items.observation(1, exit_code=4),
            items.turn_end(SESSION, 1),
        )
    )
    assert (turn.number, turn.started_at, turn.ended_at, turn.ending) == (1, "t0", "t9", "complete")
    assert (turn.message, turn.argv) == ("a", ["a"])
    assert turn.verdict is not None
    assert turn.observation is not None
    first, second = turn.traffic.values()
    assert (first.connections, first.requests, first.bytes_up, first.bytes_down) == (2, 6, 4, 0)
    assert second.errors == {"reset": 1}
    assert [refused.count for refused in turn.refused.values()] == [1]


def test_a_million_requests_stay_small() -> None:
    (turn,) = turns(lines(*start(1), *[items.refusal(1, {"host": "b.test", "message": "no"})] * 1000))
    assert [refused.count for refused in turn.refused.values()] == [1000]


def test_an_open_turn_and_an_interrupted_one() -> None:
    """P-RS-14."""
    first, second = turns(lines(*start(1), items.turn_interrupted(SESSION, 1), *start(2)))
    assert (first.ending, second.ending) == ("interrupted", None)


def test_a_turn_that_was_never_ended_ends_where_the_next_begins() -> None:
    assert [turn.number for turn in turns(lines(*start(1), *start(2)))] == [1, 2]


def test_turns_of_another_program_are_counted() -> None:
    event: Any = lambda kind: ("event_msg", {"type": kind})  # noqa: E731
    found = turns(lines(event("turn_started"), event("turn_complete"), event("task_started")))
    assert [(turn.number, turn.ending) for turn in found] == [(1, "complete"), (2, None)]


def test_connections_without_an_end() -> None:
    (turn,) = turns(
        lines(
            *start(1),
            items.event(1, {"type": "connection_opened", "connection": "a"}),
            items.event(1, {"type": "connection_opened", "connection": "b"}),
            items.network(1, {"connection": "a"}),
        )
    )
    assert [record["connection"] for record in turn.unfinished.values()] == ["b"]


def test_the_order_of_parts() -> None:
    damage = Damage(DamageKind.TORN, 3, 0, 1, "")
    meta = lines(items.session_meta(SESSION, timestamp="", cwd="/"))
    found = list(parts([*meta, *lines(*start(1)), damage, *lines(items.renamed(SESSION, "x"), *start(2))]))
    assert [type(part) for part in found] == [Line, Damage, Turn, Renamed, Turn]


def test_a_conversation_is_kept_short() -> None:
    (turn,) = turns(
        lines(
            *start(1),
            ("event_msg", {"type": "agent_message", "message": "x" * 5000}),
            ("event_msg", {"type": "user_message", "message": "more"}),
        )
    )
    assert turn.said == [("agent", "x" * 2000), ("user", "more")]


_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["type", "turn", "host", "port", "connection", "requests", "bytes_up", "output", "reasons", "argv", "action"]
FOREIGN: Any = st.tuples(
    st.sampled_from([*items.RECORDS, "of_the_future"]),
    st.dictionaries(st.sampled_from(KEYS), _JSON | st.sampled_from([*items.EVENTS]), max_size=6),
).map(lambda record: Line(*record))


@given(st.lists(FOREIGN, max_size=8))
def test_any_shape_of_payload(given: list[Line]) -> None:
    """P-RS-16: shapes of other versions neither stop nor confuse the fold."""
    list(parts(given))

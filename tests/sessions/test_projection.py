"""What the model sees is what the log says, no more: compaction, roll-back, forks, and reading on."""

import json
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorward.sessions import items
from doorward.sessions.fork import fork
from doorward.sessions.home import Home
from doorward.sessions.line import Line
from doorward.sessions.lookup import find_session
from doorward.sessions.projection import Projection, SessionProjection, derive_messages
from doorward.sessions.rollout import Rollout


def started(turn: int) -> items.Item:
    return "event_msg", {"type": "task_started", "turn": turn}


def ended() -> items.Item:
    return "event_msg", {"type": "task_complete"}


def rolled_back(turns: object) -> items.Item:
    return "event_msg", {"type": "thread_rolled_back", "num_turns": turns}


def texts(messages: list[Any]) -> list[str]:
    return [message["content"][0]["text"] for message in messages]


def seen(*log: items.Item) -> list[str]:
    projection = Projection()
    for item in log:
        projection.feed(Line(*item))
    return texts(projection.messages)


def said(*words: str) -> list[items.Item]:
    """A turn: what the user said, and the answers."""
    answers = [items.message("assistant", word) for word in words[1:]]
    return [started(0), items.message("user", words[0]), *answers, ended()]


def test_messages_in_order_and_nothing_else() -> None:
    log = [*said("a", "b"), ("verdict", {"verdict": "allow"}), ("event_msg", {"type": "user_message", "message": "x"})]
    assert seen(*log) == ["a", "b"]
    assert seen(("response_item", {"type": "ghost_snapshot"})) == []


def test_a_call_and_its_output_are_visible_as_they_stand() -> None:
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "1"}
    output = {"type": "function_call_output", "call_id": "1", "output": "ok"}
    projection = Projection()
    for payload in (call, output):
        projection.feed(Line("response_item", payload))
    assert projection.messages == [call, output]


def test_compacted() -> None:
    before = [*said("a", "b"), *said("c", "d")]
    replacement = [items.message("user", text)[1] for text in ("kept", "summary")]
    assert seen(*before, items.compacted("summary", replacement), *said("e")) == ["kept", "summary", "e"]
    assert seen(*before, items.compacted("summary")) == ["summary"]
    assert seen(*before, items.compacted("")) == []


def test_rolled_back() -> None:
    log = [*said("a", "b"), *said("c", "d"), *said("e")]
    assert seen(*log, rolled_back(1)) == ["a", "b", "c", "d"]
    assert seen(*log, rolled_back(2), *said("f")) == ["a", "b", "f"]
    assert seen(*log, rolled_back(1), rolled_back(1)) == ["a", "b"]
    assert seen(*log, rolled_back(99)) == []
    for nonsense in (0, -1, None, "1", True):
        assert seen(*log, rolled_back(nonsense)) == ["a", "b", "c", "d", "e"]


def test_turns_in_which_nothing_was_said_are_not_counted() -> None:
    """A command that doorward ran on its own is no turn of the conversation."""
    log = [*said("a"), *said("b"), started(3), ("exec", {"argv": ["true"]}), ended()]
    assert seen(*log, rolled_back(1)) == ["a"]


def test_a_log_without_turns_goes_by_the_users_messages() -> None:
    log = [items.message("user", "a"), items.message("assistant", "b"), items.message("user", "c")]
    assert seen(*log, rolled_back(1)) == ["a", "b"]


def test_a_compaction_is_taken_back_with_its_turn() -> None:
    compacting = [started(0), items.message("user", "c"), items.compacted("summary"), ended()]
    assert seen(*said("a"), *said("b"), *compacting, *said("d")) == ["summary", "d"]
    assert seen(*said("a"), *said("b"), *compacting, *said("d"), rolled_back(2)) == ["a", "b"]


_WORDS = st.text("abc", min_size=1, max_size=3)
_TURN = st.tuples(st.just("turn"), st.lists(_WORDS, min_size=1, max_size=3))
_COMPACT = st.tuples(st.just("compact"), st.one_of(st.none(), st.lists(_WORDS, max_size=3)))
_BACK = st.tuples(st.just("back"), st.integers(-1, 4))
_NOISE = st.tuples(st.just("noise"), _WORDS)


@settings(deadline=None)
@given(story=st.lists(st.one_of(_TURN, _COMPACT, _BACK, _NOISE), max_size=12))
def test_nothing_is_visible_that_is_not_logged(story: list[Any]) -> None:
    """Against a plain model, message by message; and each visible one stands in the log."""
    log: list[items.Item] = []
    model: list[str] = []
    starts: list[list[str]] = []
    for serial, (kind, what) in enumerate(story):
        if kind == "turn":
            starts.append(model)
            words = [f"{word}{serial}.{number}" for number, word in enumerate(what)]
            log += said(*words)
            model = [*model, *words]
        elif kind == "compact":
            starts.append(model)
            words = [f"s{serial}"] if what is None else [f"{word}{serial}" for word in what]
            replacement = None if what is None else [items.message("user", word)[1] for word in words]
            log += [started(0), items.compacted(f"s{serial}", replacement), ended()]
            model = words
        elif kind == "back":
            log.append(rolled_back(what))
            if what > 0 and starts:
                model = starts[-min(what, len(starts))]
                del starts[-min(what, len(starts)) :]
        else:
            log += [started(0), ("exec", {"argv": [what]}), ended()]
    projection = Projection()
    for number, item in enumerate(log, 1):
        projection.feed(Line(*item))
        visible = json.loads(json.dumps(projection.messages))
        logged = json.dumps(log[:number])
        assert all(json.dumps(message["content"][0]["text"]) in logged for message in visible)
    assert texts(projection.messages) == model


def test_across_forks(home: Home) -> None:
    with Rollout.create(home, cwd="/work", name="first") as rollout:
        for turn, text in enumerate(("a", "b", "c"), 1):
            for item in (started(turn), items.message("user", text), ended()):
                rollout.append(*item)
    second = fork(home, find_session(home, "first"), at=3, name="second")
    with Rollout.open(home, second.path) as rollout:
        for item in (started(3), items.message("user", "other"), ended()):
            rollout.append(*item)
    assert texts(derive_messages("first", home)) == ["a", "b", "c"]
    assert texts(derive_messages("second", home)) == ["a", "b", "other"]
    with Rollout.open(home, second.path) as rollout:
        rollout.append(*rolled_back(2))
    assert texts(derive_messages(second.id, home)) == ["a"]


def test_what_was_read_is_not_read_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent loop asks after each turn: it costs what was appended, not the whole session."""
    with Rollout.create(home, cwd="/work") as rollout:
        for number in range(100):
            rollout.append(*items.message("user", f"{number} " + "x" * 20_000))
        projection = SessionProjection(home, find_session(home, rollout.id))
        assert len(projection.messages()) == 100
        rollout.append(*items.message("assistant", "new"))
        read = 0
        pread = os.pread

        def counted(descriptor: int, count: int, offset: int) -> bytes:
            nonlocal read
            data = pread(descriptor, count, offset)
            read += len(data)
            return data

        monkeypatch.setattr(os, "pread", counted)
        assert texts(projection.messages())[-1] == "new"
        assert read < 10_000


def test_a_line_that_is_still_being_written_is_taken_when_it_is_whole(home: Home) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        rollout.append(*items.message("user", "a"))
    whole = b'{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"b"}]}}\n'
    projection = SessionProjection(home, find_session(home, rollout.id))
    for part, expected in ((whole[:40], ["a"]), (whole[40:-1], ["a"]), (b"\n", ["a", "b"])):
        with open(rollout.path, "ab") as file:
            file.write(part)
        assert texts(projection.messages()) == expected
    assert projection.problems == []

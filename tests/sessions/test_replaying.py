"""A session again, scene by scene."""

from __future__ import annotations

from typing import Any

import pytest

from doorward.sessions import items
from doorward.sessions.damage import Damage, DamageKind
from doorward.sessions.home import Home
from doorward.sessions.line import Line
from doorward.sessions.output import OutputRecorder
from doorward.sessions.replaying import Scene, scenes, whole_output


def recorded(home: Home, data: bytes) -> dict[str, Any]:
    recorder = OutputRecorder(home)
    recorder.feed("stdout", data)
    return recorder.finish().to_json()


def at(second: float, item: items.Item) -> Line:
    return Line(*item, timestamp=f"2026-01-02T03:04:{second:06.3f}Z")


def shown(home: Home, *lines: Line | Damage, turn: int | None = None) -> list[Scene]:
    return list(scenes(home, lines, turn=turn))


def test_scenes_and_the_time_between_them(home: Home) -> None:
    verdict = items.verdict(1, {"verdict": "allow", "gate": "approval"}, argv=["echo", "a b"], cwd="/")
    found = shown(
        home,
        at(0, ("event_msg", {"type": "task_started", "turn": 1})),
        at(1, verdict),
        at(1.5, items.refusal(1, {"host": "b.test", "port": 80, "message": "in no rule", "hint": "--allow b.test"})),
        at(4, items.observation(1, exit_code=3, output=recorded(home, b"out\x1b[31m"))),
        at(3, items.observation(1, exit_code=0)),
    )
    assert [scene.after_s for scene in found] == [None, 0.5, 2.5, 0.0]
    assert "[1] $ echo 'a b'" in found[0].text
    assert "REFUSED b.test:80  in no rule\n    to allow it: --allow b.test\n" in found[1].text
    assert found[2].text == "out\\x1b[31m\n  exit 3\n"


def test_one_turn_of_them(home: Home) -> None:
    turns = [
        at(number, item)
        for number in (1, 2)
        for item in (
            ("event_msg", {"type": "task_started", "turn": number}),
            items.observation(number, exit_code=number),
        )
    ]
    assert [scene.text for scene in shown(home, *turns, turn=2)] == ["  exit 2\n"]


def test_damage_and_conversations_are_shown(home: Home) -> None:
    found = shown(
        home,
        Damage(DamageKind.NOT_JSON, 3, 100, 5, "not JSON"),
        at(1, ("event_msg", {"type": "agent_message", "message": "hello\x07"})),
        Line("event_msg", {"type": "agent_message", "message": "no time"}, timestamp="soon"),
    )
    assert [scene.text for scene in found][1:] == ["  agent: hello\\x07\n", "  agent: no time\n"]
    assert "line 3" in found[0].text
    assert [scene.after_s for scene in found] == [None, None, None]


def test_an_output_is_whole_from_its_blob_up_to_a_limit(home: Home) -> None:
    output = recorded(home, b"x" * 300_000)
    assert whole_output(home, output) == "x" * 300_000
    cut = whole_output(home, output, 100_000)
    assert cut.startswith("x" * 100_000)
    assert "cut here, of 300000 bytes" in cut
    output["blob"]["sha256"] = "0" * 64
    assert "bytes left out" in whole_output(home, output)


@pytest.mark.parametrize("payload", [{}, {"output": 7}, {"action": 7, "argv": "x"}, {"type": 5}, {"host": 7}])
@pytest.mark.parametrize("type", ["verdict", "network", "refusal", "observation", "event_msg", "exec", "unheard_of"])
def test_whatever_the_records_hold(home: Home, type: str, payload: dict[str, Any]) -> None:
    assert all("\x1b" not in scene.text for scene in shown(home, Line(type, payload)))

"""The library: one session, many commands, observations; a refusal never raises."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import doorward as library


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    """Options of a session with a home and a workspace of its own."""
    (tmp_path / "work").mkdir()
    return {"home": tmp_path / "home", "cwd": tmp_path / "work"}


def test_many_commands_in_one_session(options: dict[str, Any]) -> None:
    with library.open_session(name="lib", **options) as session:
        first = session.exec(["sh", "-c", "echo one; exit 3"])
        second = session.exec(["cat"], input="two")
    assert (first.exit_code, first.output, first.turn, first.success) == (3, "one\n", 1, True)
    assert (second.exit_code, second.output, second.turn) == (0, "two", 2)
    assert first.session == second.session
    assert second.enforcement == {
        "filesystem": "kernel",
        "network": "kernel",
        "process": "kernel",
        "syscalls": "kernel",
    }


def test_refusals_are_data(options: dict[str, Any], origin: Any) -> None:
    rule = f"a.test:{origin.port}"
    with library.open_session(allow=[rule], hosts={"a.test": "127.0.0.1"}, **options) as session:
        allowed = session.exec(["curl", "-sS", origin.url()])
        refused = session.exec(["curl", "-sS", "http://b.test/"])
        denied = session.exec(["rm", "-rf", "build"])
    assert allowed.output == "hello\n"
    assert allowed.refusals == ()
    assert [each["host"] for each in refused.refusals] == ["b.test"]
    assert denied.exit_code == 126
    assert denied.verdict["verdict"] == "deny"


def test_wrong_requests_raise_usage_errors(options: dict[str, Any]) -> None:
    with pytest.raises(library.UsageError, match="network"):
        library.open_session(config={"network.alow": []}, **options)
    with pytest.raises(library.UsageError, match="b/c"):
        library.open_session(allow=["a.b/c"], **options)
    with library.open_session(**options) as session, pytest.raises(library.UsageError, match="list of words"):
        session.exec("true")


def test_a_missing_program_and_a_time_limit_are_observations(options: dict[str, Any]) -> None:
    with library.open_session(**options) as session:
        assert session.exec(["no-such-program"]).exit_code == 127
        assert session.exec(["sleep", "600"], timeout=0.2).exit_code == 124
        assert session.exec(["true"]).exit_code == 0


def test_closing_the_session_kills_what_runs(options: dict[str, Any]) -> None:
    session = library.open_session(**options)
    reader, writer = os.pipe()
    marker = options["cwd"] / "started"

    def run() -> None:
        with pytest.raises((library.EngineError, library.UsageError, ValueError, OSError)):
            session.exec(["sh", "-c", "touch started; exec sleep 600"])
        os.write(writer, b"x")

    thread = threading.Thread(target=run)
    thread.start()
    until = time.monotonic() + 20
    while not marker.exists():
        assert time.monotonic() < until
        os.sched_yield()
    session.abort()
    thread.join(20)
    assert os.read(reader, 1) == b"x"
    session.close()
    os.close(reader)
    os.close(writer)


def test_the_async_twin(options: dict[str, Any]) -> None:
    async def main() -> list[int]:
        async with library.open_session_async(**options) as session:
            seen = await asyncio.gather(*(session.exec(["sh", "-c", f"exit {code}"]) for code in (1, 2, 3)))
            return [each.exit_code for each in seen]

    assert asyncio.run(main()) == [1, 2, 3]


def test_two_sessions_at_once(options: dict[str, Any]) -> None:
    async def one(code: int) -> int:
        async with library.open_session_async(**options) as session:
            return (await session.exec(["sh", "-c", f"exit {code}"])).exit_code

    async def main() -> list[int]:
        return list(await asyncio.gather(one(4), one(5)))

    assert asyncio.run(main()) == [4, 5]


def test_an_agent_loop_keeps_its_conversation_in_the_rollout(options: dict[str, Any]) -> None:
    """What the model sees is derived from the log; what the doors say is not the caller's to write."""
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list the files"}]}
    called = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "1"}
    with library.open_session(**options) as session:
        session.log(asked)
        session.log(called)
        seen = session.exec(["echo", "a file"])
        answered = {"type": "function_call_output", "call_id": "1", "output": seen.output}
        session.log(answered)
        assert session.messages() == [asked, called, answered]
        session.log({"message": "", "replacement_history": [asked]}, type="compacted")
        assert session.messages() == [asked]
        for kind, payload in (("verdict", {"verdict": "allow"}), ("event_msg", {"type": "task_started"})):
            with pytest.raises(library.UsageError, match="does not log"):
                session.log(payload, type=kind)
        assert session.exec(["true"]).turn == 2

    async def again() -> list[dict[str, Any]]:
        async with library.open_session_async(session=seen.session, home=options["home"]) as awaited:
            await awaited.log(answered)
            return await awaited.messages()

    assert asyncio.run(again()) == [asked, answered]

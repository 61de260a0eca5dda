"""The tools of `doorward mcp`, without the protocol: run a command, ask the gates, read what was recorded.

What a tool returns is data whatever happened: a refusal, a command that failed, a session that is not there. Long
output comes in pages; `next_offset` (bytes) asks for the next one, None says that this was the last.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any

from doorward.async_session import AsyncSession
from doorward.errors import EngineError, UsageError
from doorward.observation import Observation

PAGE = 16_000
"""Bytes of output in one answer."""

_LISTED = 20
"""Sessions in one answer, newest first."""
_REFUSALS = 50

Document = dict[str, Any]


class Tools:
    """Those of one server: all its commands are turns of one session, opened with the first."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """`options` are those of a run (`commands/run_options.opening_of`); nobody can be asked at a terminal."""
        self._options = dict(options) | {"interactive": False}
        self._session: AsyncSession | None = None
        self._id: str | None = None
        self._opening = asyncio.Lock()

    async def exec(
        self, command: str | list[str], cwd: str = "", input: str = "", timeout_s: float | None = None
    ) -> Document:
        """Run a command and wait for it. See `TOOLS` for what a client reads."""
        try:
            session = await self.opened()
            observation = await session.exec(
                argv_of(command), cwd=cwd or None, input=input or None, timeout=timeout_s
            )
        except (UsageError, EngineError) as error:
            return _failed(error)
        except BaseException:
            # cancelled: the session has ended with its command; the next one goes on with the same rollout
            self._session = None
            raise
        self._id = observation.session
        return _observed(observation)

    async def check(
        self,
        command: str | list[str],
        cwd: str = "",
        writes: list[str] | None = None,
        network_to: list[str] | None = None,
    ) -> Document:
        """What the gates would say; nothing is run."""
        return await asyncio.to_thread(self._answered, lambda: self._checked(command, cwd, writes, network_to))

    async def sessions(self, session: str = "", turn: int = 0, offset: int = 0) -> Document:
        """The newest sessions; of one session what happened in it; of one turn its whole output."""
        return await asyncio.to_thread(self._answered, lambda: _recorded(session, turn, offset))

    async def close(self) -> None:
        """End the session, and what runs in it."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def opened(self) -> AsyncSession:
        """The session, opened if it is not. Raises UsageError, EngineError."""
        async with self._opening:
            if self._session is None:
                going_on = {} if self._id is None else {"session": self._id, "name": None}
                session = AsyncSession(self._options | going_on)
                await session.__aenter__()
                self._session = session
            return self._session

    def _checked(
        self, command: str | list[str], cwd: str, writes: list[str] | None, network_to: list[str] | None
    ) -> Document:
        from doorward.commands.check import place
        from doorward.gates.resolver import resolve
        from doorward.judgement import judgement_of
        from doorward.opening import plan_for
        from doorward.shell_action import shell_action

        plan = plan_for(self._options, os.environ)
        folder = os.path.abspath(os.path.join(plan.sandbox.workspace, cwd))
        action = shell_action(argv_of(command), folder, os.environ)
        places = tuple(place(text) for text in network_to or ())
        action = action._replace(writes=tuple(writes or ()), network_to=places)
        verdict = resolve(judgement_of(plan).dial, action)
        reason = verdict.deciding
        return dict(verdict.to_json()) | {"reason": reason.sentence, "to_change_it": reason.remedy or None}

    @staticmethod
    def _answered(tool: Callable[[], Document]) -> Document:
        from doorward.sessions.home import StoreError
        from doorward.sessions.lookup import SessionLookupError

        try:
            return tool()
        except (UsageError, EngineError) as error:
            return _failed(error)
        except SessionLookupError as error:
            return {"success": False, "error": error.sentence, "remedy": error.remedy}
        except StoreError as error:
            return {"success": False, "error": str(error), "remedy": None}


def argv_of(command: str | list[str]) -> list[str]:
    """Words as they are, a line for a shell. Raises UsageError for no words."""
    from doorward.programs import which

    if isinstance(command, str):
        shell = "bash" if which("bash", os.environ.get("PATH", os.defpath), "/") is not None else "sh"
        return [shell, "-c", command]
    if not command:
        raise UsageError("the command has no words")
    return command


def _failed(error: UsageError | EngineError) -> Document:
    if isinstance(error, EngineError):
        return {"success": False, "error": error.sentence, "remedy": error.remedy or None}
    return {"success": False, "error": str(error).removeprefix("doorward: "), "remedy": None}


def _observed(seen: Observation) -> Document:
    # the page is shorter than the head that an observation holds of what is longer
    output, after = _page(os.fsencode(seen.output), 0)
    reasons: Any = seen.verdict["reasons"]
    said = seen.verdict["verdict"]
    why = [each["sentence"] for each in reasons if each["gate"] == seen.verdict["gate"] and each["effect"] == said]
    return {
        "session": seen.session,
        "turn": seen.turn,
        "success": seen.success,
        "exit_code": seen.exit_code,
        "output": output,
        "next_offset": after,
        "refusals": [dict(entry) for entry in seen.refusals[:_REFUSALS]],
        "refused": len(seen.refusals),
        "verdict": said,
        "reason": why[-1] if why else None,
        "notes": list(seen.notes),
        "duration_s": seen.duration_s,
    }


def _recorded(text: str, turn: int, offset: int) -> Document:
    from doorward.sessions.history import session_lines
    from doorward.sessions.home import Home, default_home
    from doorward.sessions.listing import list_sessions
    from doorward.sessions.live import live_pid
    from doorward.sessions.lookup import find_session
    from doorward.sessions.show import render

    home = Home(default_home(os.environ))
    if not text:
        return {"sessions": [each.to_json() for each in list_sessions(home, limit=_LISTED).sessions]}
    if turn < 0 or offset < 0:
        raise UsageError("turns count from 1, and an offset is not negative")
    found = find_session(home, text)
    if turn:
        page, after = _page(*_output_from(home, found.id, found.path, turn, offset))
        return {"session": found.id, "turn": turn, "output": page, "next_offset": after}
    lines = session_lines(home, found.id, found.path)
    shown = render(lines, live=live_pid(found.path)[0]).encode("utf-8", "backslashreplace")
    page, after = _page(shown[offset:], offset)
    return {"session": found.id, "text": page, "next_offset": after}


def _output_from(home: Any, session: str, path: str, turn: int, offset: int) -> tuple[bytes, int]:
    """A page's worth of a turn's output from `offset` on, and a byte more if there is one; and the offset."""
    from doorward.sessions.blobs import blob_bytes
    from doorward.sessions.one_turn import one_turn

    found = one_turn(home, session, path, turn)
    if found is None:
        raise UsageError(f"the session has no turn {turn}")
    record = (found.observation or {}).get("output")
    if not isinstance(record, dict):
        return b"", offset
    blob = record.get("blob")
    if not isinstance(blob, dict):
        return os.fsencode(f"{record.get('head') or ''}{record.get('tail') or ''}")[offset:], offset
    wanted, at = b"", 0
    for piece in blob_bytes(home, blob):  # to the end: its hash is only known then
        if at + len(piece) > offset and len(wanted) <= PAGE:
            wanted += piece[max(0, offset - at) :][: PAGE + 1]
        at += len(piece)
    return wanted, offset


def _page(data: bytes, offset: int) -> tuple[str, int | None]:
    """The first page of `data`, which begins at `offset`, and where the next begins."""
    end = len(data)
    if end > PAGE:
        end = PAGE
        # not within a character, unless it is none: a character has at most three bytes that continue it
        while end > PAGE - 3 and data[end] & 0xC0 == 0x80:
            end -= 1
    after = offset + end if len(data) > end else None
    return data[:end].decode("utf-8", "backslashreplace"), after


TOOLS = {
    "exec": "Run a command confined: it can write only in the workspace and reach only the hosts that are allowed. "
    "`command` is a line for a shell, or a list of words. A refusal is not an error: it is in `refusals`, each with "
    "the rule and what would allow it, and in `reason` where the command was not started (exit_code 126). Output is "
    "given up to a page; the rest by the tool `sessions` with this session and turn, and offset = next_offset.",
    "check": "Ask whether a command may run, without running it: `verdict` is allow, ask or deny, and `reasons` say "
    "why, gate by gate. `writes` and `network_to` (HOST:PORT) are what it is going to do.",
    "sessions": "What was recorded. Without arguments the newest sessions; with `session` (id or name) what happened "
    "in it; with `turn` too, that command's whole output from byte `offset` on.",
}
"""What a client is told about each."""

"""The async twin of `session.py`: the same session, awaited."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from doorward.errors import UsageError
from doorward.observation import Observation
from doorward.session import answer_of, exec_message, reap, start_service


class AsyncSession:
    """Commands under one policy and one rollout, for asyncio. Use it with `async with`.

    Commands run one after the other; several sessions run at the same time. A cancelled `exec` ends the session,
    and with it the command.
    """

    def __init__(self, options: Mapping[str, object]) -> None:
        self._options = dict(options)
        self._lock = asyncio.Lock()
        self._process = 0
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.notices: tuple[str, ...] = ()

    async def __aenter__(self) -> AsyncSession:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._process = start_service(theirs)
        # an observation is one line: 64 KiB of output, escaped, and every refusal
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=1 << 28)
        try:
            self.notices = tuple((await self._ask({"open": self._options}))["opened"]["notices"])
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        input: str | bytes | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (the command's limit, kept by the supervisor, not ours)
    ) -> Observation:
        """As `Session.exec`."""
        answer = await self._ask(exec_message(argv, cwd, env, input, timeout))
        return Observation.from_json(answer["observation"])

    async def log(self, payload: Mapping[str, Any], type: str = "response_item") -> None:
        """As `Session.log`."""
        await self._ask({"conversation": {"type": type, "payload": dict(payload)}})

    async def messages(self) -> list[dict[str, Any]]:
        """As `Session.messages`."""
        found: list[dict[str, Any]] = (await self._ask({"conversation": {}}))["conversation"]["messages"]
        return found

    async def close(self) -> None:
        """As `Session.close`."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                pass
        if self._process:
            process, self._process = self._process, 0
            await asyncio.to_thread(reap, process)

    async def _ask(self, message: Mapping[str, object]) -> dict[str, Any]:
        async with self._lock:
            if self._writer is None or self._reader is None:
                raise UsageError("the session is not open")
            try:
                self._writer.write(json.dumps(message).encode() + b"\n")
                await self._writer.drain()
                line = await self._reader.readline()
            except OSError:
                line = b""
            except BaseException:
                await self.close()
                raise
        return answer_of(line)

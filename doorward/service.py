"""The supervisor as a process of its own for the library: requests come in on a socket, observations go back.

A process of its own, because the embedding program may have threads, handlers and descriptors of any kind: forking it
for every command would be neither safe nor cheap. One JSON document a line each way:

  {"open": {options}}                                -> {"opened": {"notices": [...]}} or {"error": {...}}
  {"conversation": {"type", "payload"} or {}} -> {"conversation": {"session"} or {"messages"}} or {"error": {...}}
  {"exec": {"argv", "cwd", "env", "timeout_s", "stdin"}} -> {"observation": {...}} or {"error": {...}}

An error is {"kind": "engine" | "usage", "sentence", "remedy"}. End of file ends the session and whatever runs in it.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from typing import Any

from doorward.proxy_process import ProxyProcess


def main(descriptor: int) -> int:
    """Serve the session on `descriptor`, an inherited stream socket, until its other end closes."""
    os.closerange(descriptor + 1, 1 << 20)  # whatever the embedding program left open
    proxy = ProxyProcess()
    from doorward.errors import EngineError, UsageError

    wire = socket.socket(fileno=descriptor)
    supervisor = None
    lost: EngineError | None = None  # what could not be kept of the last turn, told with the next
    conversation: Any = None
    try:
        with wire, wire.makefile("rb") as lines:
            for line in lines:
                try:
                    message = json.loads(line)
                    if lost is not None:
                        error, lost = lost, None
                        raise error
                    if "open" in message:
                        from doorward.door_ahead import door_ahead
                        from doorward.opening import open_supervisor

                        supervisor = open_supervisor(message["open"], proxy, door_ahead())
                        supervisor.prepare()
                        answer: dict[str, Any] = {"opened": {"notices": supervisor.notices}}
                    elif "conversation" in message:
                        from doorward.conversation import Conversation  # an agent loop's; most sessions have none

                        assert supervisor is not None
                        conversation = conversation or Conversation(supervisor.session_log())
                        answer = {"conversation": conversation.answer(message["conversation"])}
                    else:
                        assert supervisor is not None
                        answer = {"observation": _exec(supervisor, message["exec"], wire.fileno())}
                except UsageError as error:
                    answer = {"error": {"kind": "usage", "sentence": str(error), "remedy": ""}}
                except EngineError as error:
                    answer = {"error": {"kind": "engine", "sentence": error.sentence, "remedy": error.remedy}}
                wire.sendall(json.dumps(answer).encode() + b"\n")
                if "observation" in answer and supervisor is not None:
                    try:
                        supervisor.start_ahead()
                    except EngineError as error:
                        lost = error
    except (BrokenPipeError, ConnectionResetError):
        pass  # the program that opened the session is gone
    finally:
        if supervisor is not None:
            supervisor.close()
        proxy.close()
    return 0


def _exec(supervisor: Any, request: Mapping[str, Any], wire: int) -> dict[str, Any]:
    from doorward.streams import captured
    from doorward.supervisor import Request

    stdin = _stdin(request["stdin"])
    try:
        observation = supervisor.run(
            Request(
                tuple(request["argv"]),
                request["cwd"] or supervisor.workspace,
                request["env"],
                lambda record: captured(record, stdin),
                request["timeout_s"],
                cancelled_by=wire,
                kept_later=True,
            )
        )
    finally:
        os.close(stdin)
    document: dict[str, Any] = observation.to_json()
    return document


def _stdin(text: str | None) -> int:
    """What the command reads: the given text from an anonymous file, else nothing."""
    if text is None:
        return os.open("/dev/null", os.O_RDONLY)
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("stdin")
    else:
        import tempfile  # macOS: a file whose name is gone at once

        with tempfile.TemporaryFile() as unnamed:
            fd = os.dup(unnamed.fileno())
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(os.fsencode(text))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd

"""Evaluates rules files in a process of its own: Starlark has no limit on memory, the kernel has.

A rules file is a program, and a project's is somebody else's. The child holds nothing but the text of the files; it
may use half a GiB and seven seconds, and says what came of it in one JSON document.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, Final

from doorward.configuration_error import printable
from doorward.errors import UsageError
from doorward.gates.policy_rules import to_plain
from doorward.gates.policy_starlark import PolicyFileError, Source, evaluate

MEMORY: Final = 512 << 20
"""Bytes of address space that evaluating may take beyond what the process has already."""
SECONDS: Final = 5.0
"""For all files together; a thousand rules take a twentieth of a second."""
_GRACE: Final = 2
"""Seconds more until the kernel ends it: one operation of Starlark can take long without asking for the time, and
an allocation that fails can leave it waiting for ever."""


def evaluate_bounded(sources: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The policy as plain data. Raises UsageError naming file and line, or the files where a limit was reached."""
    if not hasattr(os, "fork"):  # Windows: the deadline holds, the bound on memory does not
        return _answer(_document(sources), sources)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _become_worker(sources, write_end)
    os.close(write_end)
    with open(read_end, "rb") as answer:
        data = answer.read()
    os.waitpid(child, 0)
    return _answer(data, sources)


def _answer(data: bytes, sources: Sequence[tuple[str, str]]) -> dict[str, Any]:
    if not data:
        names = ", ".join(file for file, _ in sources[:3]) + (", …" if len(sources) > 3 else "")
        raise UsageError(
            printable(
                f"doorward: {names}: evaluating the rules took more than {MEMORY >> 20} MiB or "
                f"{SECONDS + _GRACE:g} s and was ended; rules are a list, not a computation"
            )
        )
    document: dict[str, Any] = json.loads(data)
    if "message" in document:
        place = document["file"] if document["line"] is None else f"{document['file']}:{document['line']}"
        raise UsageError(printable(f"doorward: {place}: {document['message']}"))
    return document


def _become_worker(sources: Sequence[tuple[str, str]], write_end: int) -> None:
    """Never returns, whatever happens: this process is a copy of one that has other things to do."""
    try:
        _limit()
        data = _document(sources)
        while data:
            data = data[os.write(write_end, data) :]
    except BaseException:
        pass  # nothing on the pipe: the parent says that a limit was reached
    finally:
        os._exit(0)


def _limit() -> None:
    import resource

    # a library that panics for want of memory writes to stderr, which is the command's
    if "faulthandler" in sys.modules:
        sys.modules["faulthandler"].disable()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    if sys.platform == "linux":
        with open("/proc/self/statm", "rb") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.alarm(int(SECONDS) + _GRACE)


def _document(sources: Sequence[tuple[str, str]]) -> bytes:
    document: dict[str, Any]
    try:
        document = to_plain(evaluate([Source(file, text) for file, text in sources], SECONDS))
    except PolicyFileError as error:
        document = {"file": error.file, "line": error.line, "message": error.message}
    return json.dumps(document).encode("ascii")

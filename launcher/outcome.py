"""Reads the shim's report: how the command ended, or that it never ran. Pure."""

from __future__ import annotations

import os

from doorward.launcher.interface import Outcome, Undone
from doorward.named_tuple import NamedTuple
from doorward.start_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_SIGNAL_BASE = 128
_HIGHEST_SIGNAL = 64


class Unexplained(NamedTuple):
    """The command did not run. `step` failed with error `number`, or bubblewrap gave up by itself (no step);
    `text` is an error of ours that was not foreseen. `passed`: it got as far as the command, which it could not
    start."""

    step: str = ""
    number: int = 0
    text: str = ""
    passed: bool = False


def read_report(report: Mapping[str, Any], *, confined: bool) -> Outcome | Unexplained:
    """The outcome, or what is to be explained.

    bubblewrap reports an exit code only if the command's exec succeeded. Without one, 1 is bubblewrap's own
    failure, and 128+n a signal that met it or the command before exec.
    """
    undone = tuple(Undone(*entry) for entry in report.get("undone", ()))
    error = report.get("error")
    if error:
        return Unexplained(error["step"], error.get("errno", 0), error.get("text", ""))
    status = report.get("status")
    if status is None:
        return Unexplained("shim")
    code = report.get("exit_code")
    ended = os.waitstatus_to_exitcode(status)
    if code is None:
        if ended < 0:
            code = _SIGNAL_BASE - ended
        elif not confined or ended > _SIGNAL_BASE:
            code = ended
        else:
            return Unexplained(passed=bool(report.get("passed")))
    return Outcome(code, _signal(code), undone=undone)


def _signal(code: int) -> int | None:
    number = code - _SIGNAL_BASE
    return number if 0 < number <= _HIGHEST_SIGNAL else None


def exit_code(status: bytes) -> int | None:
    """The code in bubblewrap's status lines; it writes one only if the command's exec succeeded."""
    code = None
    for line in status.split(b"\n"):
        try:
            message = loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and isinstance(message.get("exit-code"), int):
            code = message["exit-code"]
    return code

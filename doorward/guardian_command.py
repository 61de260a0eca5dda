"""Asks an external reviewer: JSON in, exactly one JSON object out, exit status 0, in time. Anything else is no yes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from doorward.gates.review import Review, ReviewStatus

_MOST_OUTPUT = 65536
_MOST_REASON = 500
_KEYS = {"decision", "reason"}


def ask_command(
    argv: Sequence[str], document: Mapping[str, Any], seconds: float, env: Mapping[str, str], cwd: str
) -> Review:
    """The review by `argv`. One that is silent for `seconds` is asked once more."""
    review = _asked(argv, document, seconds, env, cwd)
    if review.status is ReviewStatus.TIMED_OUT:
        review = _asked(argv, document, seconds, env, cwd)
    if review.status is ReviewStatus.TIMED_OUT:
        review = review._replace(reason=f"twice nothing within {seconds:g} s")
    return review


def read_review(output: bytes) -> Review:
    """What a reviewer that exited with 0 has said."""
    try:
        document = json.loads(output.decode(), object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError):
        return Review(ReviewStatus.UNREADABLE, f"no JSON object: {_excerpt(output)}")
    if not isinstance(document, dict) or set(document) != _KEYS:
        return Review(ReviewStatus.UNREADABLE, f"not the keys decision and reason: {_excerpt(output)}")
    decision, reason = document["decision"], document["reason"]
    if decision not in ("allow", "deny") or not isinstance(reason, str):
        return Review(ReviewStatus.UNREADABLE, f"an unknown decision: {_excerpt(output)}")
    return Review(ReviewStatus.ALLOWED if decision == "allow" else ReviewStatus.DENIED, reason[:_MOST_REASON])


def _asked(
    argv: Sequence[str], document: Mapping[str, Any], seconds: float, env: Mapping[str, str], cwd: str
) -> Review:
    # files: a reviewer that reads nothing, or writes without end, holds nobody up
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as complaint:
        asked.write(json.dumps(document).encode("ascii") + b"\n")
        asked.seek(0)
        try:
            process = subprocess.Popen(
                argv, stdin=asked, stdout=subprocess.PIPE, stderr=complaint, env=env, cwd=cwd, start_new_session=True
            )
        except OSError as error:
            return Review(ReviewStatus.FAILED, f"{argv[0]} cannot be started: {error.strerror}")
        with process:
            assert process.stdout is not None
            try:
                output = _read(process.stdout.fileno(), seconds)
                too_much = output is not None and len(output) > _MOST_OUTPUT
                status = None if output is None or too_much else process.wait(1.0)
            except subprocess.TimeoutExpired:
                output = status = None
            finally:
                _end(process)
        if output is not None and len(output) > _MOST_OUTPUT:
            return Review(ReviewStatus.UNREADABLE, "more than 64 KiB of output")
        if output is None or status is None:
            return Review(ReviewStatus.TIMED_OUT, f"nothing within {seconds:g} s")
        if status != 0:
            complaint.seek(max(0, complaint.seek(0, os.SEEK_END) - _MOST_OUTPUT))
            lines = complaint.read().decode("utf-8", "backslashreplace").strip().splitlines()
            said = f": {lines[-1][:_MOST_REASON]}" if lines else ""
            how = f"ended by signal {-status}" if status < 0 else f"exit status {status}"
            return Review(ReviewStatus.FAILED, how + said)
        return read_review(output)


def _read(descriptor: int, seconds: float) -> bytes | None:
    """Everything up to the end of file, None if that has not come in time; stops at what is too much."""
    import select
    import time

    until = time.monotonic() + seconds
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    output = b""
    while len(output) <= _MOST_OUTPUT:
        left = until - time.monotonic()
        if left <= 0 or not poll.poll(min(int(left * 1000) + 1, 2**31 - 1)):
            return None
        data = os.read(descriptor, 65536)
        if not data:
            break
        output += data
    return output


def _end(process: subprocess.Popen[bytes]) -> None:
    """Whatever it has started ends with it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key stands twice")
    return document


def _excerpt(output: bytes) -> str:
    text = output.decode("utf-8", "backslashreplace").strip()
    return text[:80] or "nothing"

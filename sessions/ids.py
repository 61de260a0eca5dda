"""Session ids, UUID version 7 (RFC 9562 §5.7), and the file names made of them: both sort by the time of creation."""

import os
import time

UUID_PATTERN = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# not compiled here: that would cost every start 1.5 ms, and a new session needs neither
_ROLLOUT_NAME = rf"rollout-.*-({UUID_PATTERN})\.jsonl(?:\.zst)?"


def uuid7(now_ns: int | None = None) -> str:
    """A new id. `now_ns` is the time in nanoseconds since 1970 (default: now).

    The twelve bits after the version hold the fraction of the millisecond (RFC 9562 §6.2, method 3),
    so ids made by one process within one millisecond still sort in order.
    """
    if now_ns is None:
        now_ns = time.time_ns()
    milliseconds, rest = divmod(now_ns, 1_000_000)
    fraction = rest * 4096 // 1_000_000
    random = int.from_bytes(os.urandom(8), "big") & (1 << 62) - 1
    value = (milliseconds & (1 << 48) - 1) << 80 | 7 << 76 | fraction << 64 | 0b10 << 62 | random
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def uuid7_milliseconds(identifier: str) -> int | None:
    """Milliseconds since 1970 in a version 7 id, or None when it is of another version."""
    if identifier[14:15] != "7":
        return None
    return int(identifier[:8] + identifier[9:13], 16)


def as_uuid(text: str) -> str | None:
    """The id in its one spelling (lower case, with dashes) when `text` is a UUID, else None."""
    import re  # not needed by most runs

    lowered = text.lower()
    return lowered if re.fullmatch(UUID_PATTERN, lowered) else None


def rollout_name(session: str, moment: time.struct_time) -> str:
    """The file name of a session that began at `moment` (UTC)."""
    return f"rollout-{time.strftime('%Y-%m-%dT%H-%M-%S', moment)}-{session}.jsonl"


def session_in(name: str) -> str | None:
    """The id in a rollout's file name, plain or compressed; None for any other name."""
    import re

    named = re.fullmatch(_ROLLOUT_NAME, name)
    return named[1] if named else None


def day_folder(moment: time.struct_time) -> str:
    """`YYYY/MM/DD` (UTC)."""
    return f"{moment.tm_year:04}/{moment.tm_mon:02}/{moment.tm_mday:02}"

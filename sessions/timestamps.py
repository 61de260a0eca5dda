"""Times as rollouts write them: UTC, milliseconds, RFC 3339 (`2025-11-29T23:41:00.123Z`)."""

import time

_second = -1
_second_text = ""


def rfc3339(now_ns: int) -> str:
    """`now_ns` (nanoseconds since 1970) as text. The text of the current second is kept: most records share it."""
    global _second, _second_text
    second, rest = divmod(now_ns, 1_000_000_000)
    if second != _second:
        _second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _second = second
    return f"{_second_text}.{rest // 1_000_000:03d}Z"


def seconds(text: str) -> float | None:
    """Seconds since 1970 of such a text, of other writers' forms of it too; None where it is none."""
    from datetime import datetime  # only what shows a session at its pace asks

    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None

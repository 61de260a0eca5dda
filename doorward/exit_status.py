"""The exit statuses of `doorward run`, one name each (the same numbers timeout(1) and env(1) use)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


REFUSED_HERE: Final = 1
"""A command other than `run` that is not done as things stand: the session is live."""
USAGE: Final = 2
REFUSED_SEEN: Final = 121
"""`--fail-on-deny`: something was refused although the command exited 0."""
TIMED_OUT: Final = 124
ENGINE_FAILED: Final = 125
REFUSED: Final = 126
"""Refused before start, or the file is not executable."""
NOT_FOUND: Final = 127

ALLOW: Final = 0
ASK: Final = 10
DENY: Final = 20
"""`check` and `allowlist test`."""

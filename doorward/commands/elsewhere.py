"""Where doorward's proxy and records cannot work: one sentence, exit status 125, and nothing is started."""

from __future__ import annotations

import sys
from typing import Final

from doorward import exit_status

_REMEDIES: Final = {
    "win32": "On Linux or macOS `doorward doctor --render windows -- CMD` prints what its sandbox would be told.",
}


def nothing_here(platform: str) -> int:
    """Says what is missing on `platform` (as in sys.platform)."""
    sys.stderr.write(
        f"doorward: nothing was run: its proxy and its records need Linux or macOS, and this is {platform}. "
        f"Use Linux, a container or a virtual machine. {_REMEDIES.get(platform, '')}".rstrip()
        + "\n"
    )
    return exit_status.ENGINE_FAILED

"""`doorward run` where the network door cannot work: one sentence, exit status 125, and nothing is started."""

from __future__ import annotations

import sys
from typing import Final

from doorward import exit_status

_REMEDIES: Final = {
    "win32": "`doorward doctor --render windows -- CMD` prints what the sandbox for Windows would be told.",
}


def run_elsewhere(platform: str) -> int:
    """Says what is missing on `platform` (as in sys.platform)."""
    remedy = _REMEDIES.get(platform, "")
    sys.stderr.write(
        f"doorward: nothing was run: the proxy needs Linux or macOS, and this is {platform}. "
        f"Use Linux, a container or a virtual machine. {remedy}".rstrip()
        + "\n"
    )
    return exit_status.ENGINE_FAILED

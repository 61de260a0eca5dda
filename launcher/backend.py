"""Picks the door of the platform doorward runs on."""

import sys
from typing import TYPE_CHECKING

from doorward.launcher.interface import SandboxUnavailable

if TYPE_CHECKING:
    from doorward.launcher.protocols import Backend


def backend() -> "Backend":
    """This platform's door. Raises SandboxUnavailable where there is none."""
    if sys.platform == "linux":
        from doorward.launcher.linux import Linux

        return Linux()
    raise SandboxUnavailable(f"doorward cannot confine a command on {sys.platform} yet.", "Use Linux.")

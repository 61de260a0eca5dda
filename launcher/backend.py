"""Picks the door of the platform doorward runs on."""

import sys

from doorward.launcher.interface import Backend, SandboxUnavailable


def backend() -> Backend:
    """This platform's door. Raises SandboxUnavailable where there is none."""
    if sys.platform == "linux":
        from doorward.launcher.linux import Linux

        return Linux()
    raise SandboxUnavailable(f"doorward cannot confine a command on {sys.platform} yet.", "Use Linux.")

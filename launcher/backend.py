"""Picks the door of the platform doorward runs on."""

from __future__ import annotations

import sys

from doorward.launcher.interface import SandboxUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.launcher.protocols import Backend


def backend() -> Backend:
    """This platform's door. Raises SandboxUnavailable where there is none."""
    platform: str = sys.platform  # as text: a type checker would leave out what is not for its own platform
    if platform == "linux":
        from doorward.launcher.linux import Linux

        return Linux()
    if platform == "darwin":
        from doorward.launcher.seatbelt import Seatbelt

        return Seatbelt()
    if platform == "win32":
        from doorward.launcher.windows import Windows

        return Windows()
    raise SandboxUnavailable(
        f"doorward has no sandbox for {platform}, and runs nothing without one.",
        "Use Linux; a container or a virtual machine with Linux will do.",
    )

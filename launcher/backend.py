"""Picks the door of the platform doorward runs on."""

from __future__ import annotations

import sys

from doorward.launcher.interface import SandboxUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.launcher.protocols import Backend


def backend(*, started: bool = False) -> Backend:
    """This platform's door; `started`: with what the first run will need coming up already (`Backend.start_ahead`).
    Raises SandboxUnavailable where there is none."""
    platform: str = sys.platform  # as text: a type checker would leave out what is not for its own platform
    if platform == "linux":
        from doorward.launcher.seed import plant_first

        # before the door itself is loaded: both take a while, and there is a processor for each
        seed = plant_first() if started else None
        from doorward.launcher.linux import Linux

        return Linux(seed=seed)
    if platform == "darwin":
        from doorward.launcher.seatbelt import Seatbelt

        seatbelt = Seatbelt()
        if started:
            seatbelt.start_ahead()
        return seatbelt
    if platform == "win32":
        from doorward.launcher.windows import Windows

        windows = Windows()
        if started:
            windows.start_ahead()
        return windows
    raise SandboxUnavailable(
        f"doorward has no sandbox for {platform}, and runs nothing without one.",
        "Use Linux; a container or a virtual machine with Linux will do.",
    )

"""After a failed command: at most one hint a cause, each from what is on record of the run and nothing else.

On record are the command line, the output, the names that were withheld, what the doors refused, and what the proxy and
the inspection told. Where a door has refused something, its own line names the option, and no hint says it again.
"""

from __future__ import annotations

import re

from doorward.hint import Hint
from doorward.named_tuple import NamedTuple
from doorward.plan import PROXY_URL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from doorward.configuration import Configuration
    from doorward.launcher.interface import SandboxPolicy
    from doorward.plan import Plan

_MOST_NAMES = 12


class Ended(NamedTuple):
    """A command that failed. `proxy_url` is None where it had no proxy, or one that is gone; `uncaptured` is why
    connections were not captured: "" where they were, `off` where a setting says so, else what stood against it;
    `loopback` are the granted ports of the host's loopback, None for all; `listening` tells those that have a server,
    None where that cannot be known; `for_agent`: an agent reads this, who can hand nothing over."""

    argv: Sequence[str]
    cwd: str
    output: str
    refusals: Sequence[Mapping[str, Any]] = ()
    withheld: Sequence[str] = ()
    inspected: Sequence[Hint] = ()
    sandbox: SandboxPolicy | None = None
    proxy_url: str | None = PROXY_URL
    uncaptured: str = ""
    loopback: Sequence[int] | None = ()
    for_agent: bool = False
    listening: Callable[[], Collection[int] | None] = lambda: None

    @property
    def command(self) -> str:
        """The command line, to look for words in."""
        return " ".join(self.argv)


def hints_of(ended: Ended) -> list[Hint]:
    """What a person should hear, most telling first."""
    found = list(ended.inspected)
    if not found and not ended.refusals and ended.proxy_url is not None:
        from doorward.past_the_proxy import hint

        if (said := hint(ended)) is not None:
            found.append(said)
    if ended.sandbox is not None and not any(each.get("source") == "sandbox" for each in ended.refusals):
        from doorward.kept_from_writing import hint as unwritten

        if (said := unwritten(ended, ended.sandbox)) is not None:
            found.append(said)
    if ended.withheld and (said := _withheld(ended)) is not None:
        found.append(said)
    return found


def uncaptured(plan: Plan, told: Sequence[str]) -> str:
    """See `Ended.uncaptured`; `told` is what the door said of it."""
    if plan.sandbox.door.transparent:
        return " ".join(told)
    return "on this platform" if plan.configuration.value("network.transparent") else "off"


def granted_loopback(configuration: Configuration) -> tuple[int, ...] | None:
    """Ports of the host's loopback that appear inside; None for all."""
    entries = configuration.value("network.loopback")
    return None if "all" in entries else tuple(port for entry in entries for port in entry)


def host_listening() -> set[int] | None:
    """The ports of the host's loopback that have a server now; None where the kernel cannot be asked."""
    import sys

    if sys.platform != "linux":
        return None
    import socket

    from doorward.proxy.listening import Listening

    try:
        diagnosis = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)  # NETLINK_SOCK_DIAG, <linux/netlink.h>
    except OSError:
        return None
    listening = Listening(diagnosis)
    try:
        return listening.ports()
    finally:
        listening.close()


def _withheld(ended: Ended) -> Hint | None:
    """Those that the command line or the output names; else all of them, for programs rarely say what they miss."""
    text = f"{ended.command}\n{ended.output}"
    named = [name for name in ended.withheld if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]
    if named:
        options = " ".join(f"--pass-env {name}" for name in named[:_MOST_NAMES])
        return Hint(
            "withheld_variable",
            f"{_listed(named)} {'was' if len(named) == 1 else 'were'} withheld from the command, which names "
            f"{'it' if len(named) == 1 else 'them'}: {options} hands {'it' if len(named) == 1 else 'them'} over",
            options,
        )
    if ended.for_agent:
        return None  # at every command that fails, its own key among them
    shown = _listed(ended.withheld)
    return Hint(
        "withheld_variable",
        f"the command did not get these variables: {shown}; --pass-env NAME hands one over",
        "--pass-env NAME",
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more

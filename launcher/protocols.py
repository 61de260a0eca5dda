"""What every platform's door offers: a policy goes in, a confinement and a held process come out.

Only type checkers read this: making the three classes would cost every start 0.3 ms.
"""

from _socket import socket  # which the supervisor takes, and `socket.socket` is one
from collections.abc import Mapping
from typing import Protocol

from doorward.launcher.interface import Command, Enforcement, Outcome, SandboxPolicy, Stdio


class Process(Protocol):
    """One started command, held before its first instruction until `release`."""

    def fileno(self) -> int:
        """A descriptor that is readable once the run has ended and everything left was killed."""

    def release(self) -> None:
        """Let the command start."""

    def signal(self, signum: int) -> None:
        """Send a signal to the command's first process."""

    def kill(self) -> None:
        """Kill the whole tree at once."""

    def wait(self) -> Outcome:
        """Block until the run has ended. May be called again; the answer stays the same."""

    def close(self) -> None:
        """Give the descriptors back; kills the run if it still goes on."""


class Confinement(Protocol):
    """One policy, checked and ready to start commands."""

    @property
    def enforcement(self) -> Enforcement: ...

    @property
    def limits(self) -> dict[str, str]:
        """Each limit that is set, and what holds it: `cgroup`, `rlimit` or `doorward`."""

    @property
    def notices(self) -> tuple[str, ...]:
        """Plain sentences a person should read once: what is weaker than it looks."""

    def proxy_url(self) -> str:
        """Where the next command will find the proxy. Raises SandboxUnavailable."""

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """The environment with temporary directories pointing at places that exist inside."""

    def spawn(
        self,
        command: Command,
        stdio: Stdio,
        *,
        handover: socket | None = None,
        run: str = "",
        policy_id: str = "",
    ) -> Process:
        """Start a command, held. `handover` receives one message a listener, each with one descriptor.

        Raises SandboxUnavailable or UnenforceableRule; a command that cannot start is an Outcome.
        """


    def start_ahead(self) -> None:
        """Let what the next run will need come up now, before it is asked for."""

    def close(self) -> None:
        """End what was started ahead and not used."""


class Backend(Protocol):
    """One platform's door."""

    def start_ahead(self) -> None:
        """Let what the first run will need come up now, before its policy is known."""

    def close(self) -> None:
        """End what was started ahead and that no confinement took."""

    def prepare(self, policy: SandboxPolicy) -> Confinement:
        """Raises SandboxUnavailable, or UnenforceableRule naming the entry."""

"""What is handed to the shim at the fork."""

from typing import TYPE_CHECKING

from doorward.launcher.interface import Command, Stdio
from doorward.named_tuple import NamedTuple

if TYPE_CHECKING:
    from _socket import socket  # which the supervisor takes, and `socket.socket` is one


class Launch(NamedTuple):
    """What the shim knows from the fork on. The plan follows as the first line of `orders`.

    `bubblewrap` is the binary, None for a run without a sandbox. `namespaces` are the CLONE_NEW* flags to make
    before it, `network` whether the sandbox has a network namespace of its own.
    """

    bubblewrap: str | None
    namespaces: int
    network: bool
    fresh_proc: bool
    command: Command
    stdio: Stdio
    program: bytes  # the seccomp filter, empty for none
    handover: "socket | None"
    run: str
    policy_id: str
    supervisor: int  # pidfd
    orders: int  # read end: the plan, then release, signal, kill
    report: int  # write end
    deadline_s: float  # for bubblewrap's first sign of life
    cache_dir: str

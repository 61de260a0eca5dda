"""The seccomp filter that tells the shim of watched calls and lets them go on, and its installation in the starter.

It stands below the filter that refuses (see `seccomp`), which comes later and whose errors win over a notification
(seccomp(2)). It is put on before bubblewrap, so that the listener can be handed to the shim.
"""

from __future__ import annotations

import os
from typing import Any

from doorward.launcher.denial_calls import WATCHED, write_flags
from doorward.launcher.interface import SandboxUnavailable
from doorward.launcher.seccomp import cached_program, export
from doorward.named_tuple import NamedTuple

_BUILD = b"denials-1"
# <asm/unistd.h>; ioctl numbers are encoded alike on these machines
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277, "riscv64": 277, "s390x": 348}
_SET_MODE_FILTER = 1
_NEW_LISTENER = 1 << 3
_WAIT_KILLABLE_RECV = 1 << 5
_PR_SET_NO_NEW_PRIVS = 38


class Program(NamedTuple):
    """A filter, and the operation each of its calls stands for: index into WATCHED by number."""

    code: bytes
    calls: dict[int, int]


def watching_program(cache_dir: str, *, reads: bool) -> Program:
    """The program for this machine; `reads` watches opens for reading too. Raises SandboxUnavailable."""
    machine = os.uname().machine
    if machine not in _SECCOMP_CALL:
        raise SandboxUnavailable(f"Refusals cannot be explained on {machine}.", "Leave out --explain-denials.")
    key = _BUILD + machine.encode() + repr((reads, WATCHED)).encode()
    data = cached_program(cache_dir, "denials", key, lambda: _build(reads))
    # the numbers stand before the program, as many as WATCHED has, -1 for a call this machine does not have
    size = 4 * len(WATCHED)
    numbers = (int.from_bytes(data[at : at + 4], "little", signed=True) for at in range(0, size, 4))
    return Program(data[size:], {number: index for index, number in enumerate(numbers) if number >= 0})


def _build(reads: bool) -> bytes:
    import pyseccomp  # ctypes and libseccomp: 50 ms; the refusing filter has been built, so it is there

    wanted = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    # calls of a foreign numbering are the other filter's business
    wanted.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.ALLOW)
    numbers = b""
    for call in WATCHED:
        try:
            number: int = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, call.name)
        except (OSError, ValueError):
            number = -1
        numbers += max(number, -1).to_bytes(4, "little", signed=True)
        if number < 0:
            continue
        if call.flags is None or reads:
            wanted.add_rule(pyseccomp.NOTIFY, number)
            continue
        for bit in write_flags():
            wanted.add_rule(pyseccomp.NOTIFY, number, pyseccomp.Arg(call.flags, pyseccomp.MASKED_EQ, bit, bit))
    return numbers + export(wanted)


def install(code: bytes) -> int:
    """Puts the filter on this process and gives its listener. Sets no_new_privs, as it must. Raises OSError."""
    import ctypes  # for runs that are explained only

    class Instructions(ctypes.Structure):  # struct sock_fprog
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    libc: Any = ctypes.CDLL(None, use_errno=True)
    program = ctypes.create_string_buffer(code, len(code))
    instructions = Instructions(len(code) // 8, ctypes.cast(program, ctypes.c_void_p))
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    number = _SECCOMP_CALL[os.uname().machine]
    # the second flag, of Linux 5.19, keeps signals from restarting a call that the shim has been told of
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE_RECV, _NEW_LISTENER):
        listener: int = libc.syscall(number, _SET_MODE_FILTER, flags, ctypes.byref(instructions))
        if listener >= 0:
            return listener
    error = ctypes.get_errno()
    raise OSError(error, os.strerror(error))

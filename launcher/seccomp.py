"""The seccomp filter as BPF bytes: built once through libseccomp, then read from a cache.

A cached file is named by the digest of the rules it was built from and the digest of its content, so a file
that was cut short or changed is not used but built again. Importing the binding costs 50 ms; a cache hit
imports neither it nor OpenSSL.
"""

from __future__ import annotations

import os

from doorward.launcher.interface import SandboxUnavailable
from doorward.launcher.syscall_rules import ENOSYS, Refused, refused_calls
from doorward.sessions.sha256 import sha256
from doorward.start_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Part of the rules' digest: raise it when the way rules become a filter changes.
_BUILD = b"1"
# A program has at most 4096 instructions of 8 bytes (BPF_MAXINSNS, <linux/bpf_common.h>).
_MAXIMUM = 4096 * 8


def filter_bytes(cache_dir: str, machine: str | None = None) -> bytes:
    """The filter for this machine. Raises SandboxUnavailable where it cannot be built."""
    machine = machine or os.uname().machine
    rules = refused_calls(machine)
    return cached_program(cache_dir, "seccomp", _BUILD + machine.encode() + dumps(rules).encode(), lambda: build(rules))


def cached_program(cache_dir: str, kind: str, rules: bytes, build: Callable[[], bytes]) -> bytes:
    """What was kept of `kind` for these rules, else what `build` makes of them."""
    prefix = f"{kind}-{sha256(rules).hexdigest()[:16]}-"
    for name in _list(cache_dir):
        if name.startswith(prefix) and name.endswith(".bpf"):
            program = _read(f"{cache_dir}/{name}")
            if program and name == f"{prefix}{sha256(program).hexdigest()}.bpf":
                return program
    program = build()
    _write(cache_dir, f"{prefix}{sha256(program).hexdigest()}.bpf", program)
    return program


def build(rules: tuple[Refused, ...]) -> bytes:
    """Compiles `rules` for the running machine. Raises SandboxUnavailable without the binding."""
    from itertools import product

    try:
        import pyseccomp  # ctypes and libseccomp: 50 ms
    except (ImportError, OSError, RuntimeError) as error:
        raise SandboxUnavailable(
            f"The system call filter cannot be built: {error}.",
            "Install libseccomp (Debian, Ubuntu: apt install libseccomp2; Fedora: dnf install libseccomp) "
            "and the Python package pyseccomp.",
        ) from error
    try:
        wanted = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
        wanted.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.ERRNO(ENOSYS))
        for rule in rules:
            number = _number(pyseccomp, rule)
            if number is None:
                continue
            for values in product(*(condition.values for condition in rule.when)):
                arguments = [
                    pyseccomp.Arg(c.argument, pyseccomp.MASKED_EQ, value if c.mask is None else c.mask, value)
                    for c, value in zip(rule.when, values, strict=True)
                ]
                wanted.add_rule(pyseccomp.ERRNO(rule.error), number, *arguments)
        return export(wanted)
    except OSError as error:
        raise SandboxUnavailable(
            f"The system call filter cannot be built: libseccomp says {error}.", "Update libseccomp."
        ) from error


def export(wanted: Any) -> bytes:
    """A libseccomp filter as BPF instructions."""
    memory = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(memory), "wb") as file:
            wanted.export_bpf(file)
        return os.pread(memory, _MAXIMUM, 0)
    finally:
        os.close(memory)


def _number(pyseccomp: Any, rule: Refused) -> int | None:
    """The call's number; None where this machine has no such call."""
    try:
        number: int = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, rule.name)
    except (OSError, ValueError):
        number = -1
    # libseccomp gives negative numbers to calls that only other machines have
    return number if number >= 0 else rule.number


def _list(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _read(path: str) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(handle, _MAXIMUM)
    except OSError:
        return b""
    finally:
        os.close(handle)


def _write(directory: str, name: str, data: bytes) -> None:
    """Keeps `data` for the next start; failing to is no reason not to run."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        temporary = f"{directory}/.{name}.{os.getpid()}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)
        os.rename(temporary, f"{directory}/{name}")
    except OSError:
        pass

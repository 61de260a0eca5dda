"""What this machine gives a sandbox: each thing is tried, in a forked child that changes nothing outside itself."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
from collections.abc import Callable

from doorward.launcher import namespaces, syscalls, transparent
from doorward.launcher.cgroups import delegation
from doorward.launcher.diagnosis import explain_namespaces, read_facts
from doorward.named_tuple import NamedTuple

MINIMUM_KERNEL = (5, 10)
# <linux/if_tun.h>
_TUNSETIFF = 0x400454CA
_IFF_TUN = 0x0001
_IFF_NO_PI = 0x1000


class Finding(NamedTuple):
    """One thing. `ok` is False where a sandbox lacks it, None where a run can do without or nothing is to be judged.
    `remedy` is what a person can do about it."""

    name: str
    ok: bool | None
    found: str
    remedy: str = ""


def probe_machine() -> list[Finding]:
    """Everything, in the order in which a sandbox needs it."""
    return [
        kernel(),
        container(),
        user_namespaces(),
        apparmor(),
        seccomp(),
        landlock(),
        control_groups(),
        nftables(),
        tun(),
    ]


def kernel() -> Finding:
    """The kernel's version."""
    found = os.uname()
    version = tuple(map(int, re.findall(r"\d+", found.release)[:2]))
    text = f"{found.sysname} {found.release} {found.machine}"
    if version >= MINIMUM_KERNEL:
        return Finding("kernel", True, text)
    needed = ".".join(map(str, MINIMUM_KERNEL))
    return Finding("kernel", False, f"{text}, which is too old", f"Linux {needed} or later is needed.")


def container() -> Finding:
    """Whether, and in which container this runs. Nothing is wrong with that as such."""
    kinds = []
    if read_facts().sandboxed:
        kinds.append("a sandbox such as doorward's own")
    if os.path.exists("/.dockerenv"):
        kinds.append("Docker")
    if os.path.exists("/run/.containerenv"):
        kinds.append("Podman")
    for line in _read("/proc/1/environ").split("\0"):
        if line.startswith("container=") and line[10:] not in ("", "docker", "podman"):
            kinds.append(line[10:])
    if "KUBERNETES_SERVICE_HOST" in os.environ or os.path.exists("/var/run/secrets/kubernetes.io"):
        kinds.append("Kubernetes")
    if "microsoft" in os.uname().release.lower():
        kinds.append("WSL")
    if not kinds and re.search(r"/(docker|lxc|kubepods|libpod)", _read("/proc/1/cgroup")):
        kinds.append("one of an unknown kind")
    if not kinds and _read("/proc/self/uid_map").split() not in ([], ["0", "0", "4294967295"]):
        kinds.append("a user namespace of its own")
    return Finding("container", None, f"inside {', '.join(kinds)}" if kinds else "none found")


def user_namespaces() -> Finding:
    """Makes one, with ids mapped and a mount made in it: some machines allow the first step and nothing after it."""
    identity = os.geteuid(), os.getegid()

    def make() -> None:
        syscalls.unshare(syscalls.CLONE_NEWUSER)
        namespaces.keep_identity(*identity)
        syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET)
        syscalls.mount(None, b"/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
        namespaces.bring_loopback_up()

    wrong = _tried(make)
    if wrong is None:
        return Finding("user namespaces", True, "can be made, with mounts and a network of their own")
    found = explain_namespaces(read_facts())
    return Finding("user namespaces", False, f"{found.sentence} ({wrong})", found.remedy)


def apparmor() -> Finding:
    """Whether AppArmor reserves user namespaces for programs with a profile (Ubuntu 23.10 and later)."""
    facts = read_facts()
    if not facts.apparmor_restricts:
        return Finding("AppArmor", None, "does not restrict user namespaces")
    found = explain_namespaces(facts._replace(sandboxed=False))
    return Finding("AppArmor", False, found.sentence, found.remedy)


def seccomp() -> Finding:
    """The kernel's filters, and the library that compiles them."""
    wrong = _tried(syscalls.check_seccomp)
    if wrong is not None:
        return Finding(
            "seccomp", False, f"the kernel takes no system call filter ({wrong})", "It needs CONFIG_SECCOMP_FILTER."
        )
    try:
        import pyseccomp  # ctypes and libseccomp: 50 ms

        level = pyseccomp.get_api()
    except (ImportError, OSError, RuntimeError) as error:
        return Finding(
            "seccomp", False, f"filters cannot be compiled: {error}",
            "Install libseccomp (Debian, Ubuntu: apt install libseccomp2; Fedora: dnf install libseccomp).",
        )  # fmt: skip
    return Finding("seccomp", True, f"filters work, libseccomp compiles them (its API level {level})")


def landlock() -> Finding:
    """Scoping of abstract unix sockets; only a run with the whole network open needs it."""
    if syscalls.can_scope():
        return Finding("landlock", None, "can keep abstract unix sockets apart (--network full)")
    return Finding(
        "landlock", None, "cannot keep abstract unix sockets apart; only --network full lets them be reached then",
        "Linux 6.12 or later with landlock switched on.",
    )  # fmt: skip


def control_groups() -> Finding:
    """Whether --memory and --pids hold for a whole run."""
    found = delegation()
    if found.controllers:
        controllers = ", ".join(sorted(found.controllers))
        return Finding("control groups", None, f"{controllers} delegated, below {found.parent}")
    return Finding(
        "control groups", None, f"{found.why}; --memory then holds for each process alone",
        "Start doorward with systemd-run --user --scope.",
    )  # fmt: skip


def nftables() -> Finding:
    """Packet rules in a network namespace of the sandbox's own, which capture programs that know no proxy."""

    def ask() -> None:
        _own_network()
        namespaces.bring_loopback_up()
        try:
            transparent.capture()  # what a run does, whole
        except transparent.CaptureRefused as error:
            raise OSError(errno.EPERM, str(error)) from error

    wrong = _tried(ask)
    if wrong is None:
        said = "rules can be made in a network of the sandbox's own: programs that know no proxy are captured"
        return Finding("nftables", None, said)
    return Finding(
        "nftables", None,
        f"no rules can be made ({wrong}): programs that know no proxy reach nothing, instead of being captured",
        "sudo modprobe nf_tables nft_redir nft_chain_nat",
    )  # fmt: skip


def tun() -> Finding:
    """A network device of the sandbox's own; doorward itself needs none, some programs inside do."""

    def make() -> None:
        _own_network()
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", b"probe0", _IFF_TUN | _IFF_NO_PI))
        finally:
            os.close(device)

    wrong = _tried(make)
    if wrong is None:
        return Finding("TUN", None, "devices can be made in a network of their own (doorward needs none)")
    return Finding("TUN", None, f"no device can be made ({wrong}); doorward needs none")


def _own_network() -> None:
    identity = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNET)
    namespaces.keep_identity(*identity)


def _tried(action: Callable[[], None]) -> str | None:
    """Runs `action` in a child; None if it went well, else what went wrong."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"it could not be tried"
        try:
            action()
            said = b"ok"
        except OSError as error:
            said = (error.strerror or errno.errorcode.get(error.errno or 0, "unknown error")).encode()
        finally:
            os.write(writer, said)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        text = answer.read().decode("utf-8", "replace")
    os.waitpid(child, 0)
    return None if text == "ok" else text or "the kernel ended the probe"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""

"""The system calls refused inside, as data. Everything else is allowed.

- EPERM where programs probe and fall back; ENOSYS where they must believe the call is not there at all:
  `clone3`, whose flags lie in memory a filter cannot read, so that C libraries use `clone` instead.
- Calls of another architecture's numbering, x32 included, are ENOSYS. That comes from the filter's bad-arch
  action and holds only while no second architecture is added to it (one that is added gets the default: allow).
- Arguments are compared in the width the kernel reads, or high bits would slip past.
"""

from doorward.named_tuple import NamedTuple

EPERM = 1
ENOSYS = 38

# <asm-generic/unistd.h>: since 424 every architecture has the same numbers, so a call that the installed
# libseccomp does not know by name is still refused by number.
_SINCE_424 = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "process_mrelease": 448,
    "open_tree_attr": 467,
}

_DENIED = (
    # a second way to make system calls, past this filter
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    # other processes' memory and descriptors
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease"),
    *("pidfd_getfd", "kcmp"),
    # keyrings are not namespaced
    *("add_key", "request_key", "keyctl"),
    # kernel interfaces with a large attack surface and no use for a build or a test
    *("bpf", "perf_event_open", "userfaultfd", "lookup_dcookie"),
    # mounts
    *("mount", "umount", "umount2", "pivot_root", "move_mount", "open_tree", "open_tree_attr", "fsopen"),
    *("fsconfig", "fsmount", "fspick", "mount_setattr", "chroot", "open_by_handle_at"),
    "setns",
    # the machine itself
    *("kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd"),
    *("init_module", "finit_module", "delete_module", "create_module", "query_module", "get_kernel_syms"),
    *("syslog", "vhangup", "nfsservctl", "iopl", "ioperm", "settimeofday", "clock_settime", "stime"),
    *("clock_adjtime", "adjtimex_time64"),
)

# <linux/sched.h>: CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
NAMESPACE_FLAGS = (0x80, 0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
# In clone(2) bit 0x80 is part of the exit signal, and CLONE_NEWTIME is not accepted there.
_CLONE_FLAGS = NAMESPACE_FLAGS[1:]

# <asm-generic/ioctls.h>: typing into a terminal (TIOCSTI) and the console's selection (TIOCLINUX)
_IOCTLS = (0x5412, 0x541C)

# <linux/personality.h>: bits that weaken memory protection or change how the kernel reports itself. With
# bit 31 unset: personality(0xffffffff) only asks. ADDR_NO_RANDOMIZE stays allowed, debuggers and sanitizers
# use it on themselves.
_PERSONALITY_BITS = (0x0080000, 0x0100000, 0x0200000, 0x0400000, 0x0800000, 0x1000000, 0x2000000, 0x4000000)

# <linux/socket.h>: unix, inet, inet6 and netlink stay; every other family the kernel could know (it is at 46
# and answers EAFNOSUPPORT above) is refused: vsock reaches the hypervisor's host, packet and xdp the wire.
_FAMILIES = (1, 2, 10, 16)
_AF_NETLINK = 16
_FAMILY_COUNT = 64
# <linux/netlink.h>: NETLINK_ROUTE is 0; the kernel knows no protocol from 32 on.
_NETLINK_PROTOCOLS = 32

_LOW_32 = 0xFFFFFFFF


class Masked(NamedTuple):
    """True when argument number `argument` (from 0), masked, equals `value`."""

    argument: int
    mask: int
    value: int


class Refused(NamedTuple):
    """One rule: the call (with its number where all architectures share it), the error, when."""

    name: str
    error: int = EPERM
    when: tuple[Masked, ...] = ()
    number: int | None = None


def refused_calls(machine: str) -> tuple[Refused, ...]:
    """Every rule, for a machine as uname(2) names it."""
    # clone(2): s390 takes the stack first
    flags = 1 if machine.startswith("s390") else 0
    rules = [Refused(name, number=_SINCE_424.get(name)) for name in _DENIED]
    rules.append(Refused("clone3", ENOSYS, number=_SINCE_424["clone3"]))
    # one number for all socket calls on old 32-bit machines, its arguments in memory
    rules.append(Refused("socketcall", ENOSYS))
    rules.extend(Refused("unshare", when=(Masked(0, bit, bit),)) for bit in NAMESPACE_FLAGS)
    rules.extend(Refused("clone", when=(Masked(flags, bit, bit),)) for bit in _CLONE_FLAGS)
    rules.extend(Refused("ioctl", when=(Masked(1, _LOW_32, request),)) for request in _IOCTLS)
    rules.extend(Refused("personality", when=(Masked(0, bit | 0x80000000, bit),)) for bit in _PERSONALITY_BITS)
    for family in range(_FAMILY_COUNT):
        if family not in _FAMILIES:
            rules.append(Refused("socket", when=(Masked(0, _LOW_32, family),)))
            rules.append(Refused("socketpair", when=(Masked(0, _LOW_32, family),)))
    rules.extend(
        Refused("socket", when=(Masked(0, _LOW_32, _AF_NETLINK), Masked(2, _LOW_32, protocol)))
        for protocol in range(1, _NETLINK_PROTOCOLS)
    )
    return tuple(rules)

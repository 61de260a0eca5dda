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

# <linux/personality.h>: bits that weaken memory protection or change how the kernel reports itself, refused
# with bit 31 unset: personality(0xffffffff) only asks. ADDR_NO_RANDOMIZE stays allowed, debuggers and
# sanitizers use it on themselves.
_ONLY_ASKS = 0x80000000
_PERSONALITY_BITS = (0x0080000, 0x0100000, 0x0200000, 0x0400000, 0x0800000, 0x1000000, 0x2000000, 0x4000000)

# <linux/socket.h>: unix, inet, inet6 and netlink stay; every other family the kernel could know (it is at 46
# and answers EAFNOSUPPORT above) is refused: vsock reaches the hypervisor's host, packet and xdp the wire.
_FAMILIES = (1, 2, 10, 16)
_AF_NETLINK = 16
_FAMILY_COUNT = 64
# <linux/netlink.h>: NETLINK_ROUTE is 0; the kernel knows no protocol from 32 on.
_NETLINK_PROTOCOLS = 32

_LOW_32 = 0xFFFFFFFF


class Condition(NamedTuple):
    """True when argument number `argument` (from 0), masked, is one of `values`; without a mask each value is
    its own, which asks whether its bits are set."""

    argument: int
    values: tuple[int, ...]
    mask: int | None = None


class Refused(NamedTuple):
    """One rule: the call (with its number where all architectures share it), the error, when all hold."""

    name: str
    error: int = EPERM
    when: tuple[Condition, ...] = ()
    number: int | None = None


def refused_calls(machine: str) -> tuple[Refused, ...]:
    """Every rule, for a machine as uname(2) names it."""
    # clone(2): s390 takes the stack first
    flags = 1 if machine.startswith("s390") else 0
    families = Condition(0, tuple(n for n in range(_FAMILY_COUNT) if n not in _FAMILIES), _LOW_32)
    protocols = Condition(2, tuple(range(1, _NETLINK_PROTOCOLS)), _LOW_32)
    return (
        *(Refused(name, number=_SINCE_424.get(name)) for name in _DENIED),
        Refused("clone3", ENOSYS, number=_SINCE_424["clone3"]),
        # one number for all socket calls on old 32-bit machines, its arguments in memory
        Refused("socketcall", ENOSYS),
        Refused("unshare", when=(Condition(0, NAMESPACE_FLAGS),)),
        Refused("clone", when=(Condition(flags, _CLONE_FLAGS),)),
        Refused("ioctl", when=(Condition(1, _IOCTLS, _LOW_32),)),
        *(Refused("personality", when=(Condition(0, (bit,), bit | _ONLY_ASKS),)) for bit in _PERSONALITY_BITS),
        Refused("socket", when=(families,)),
        Refused("socketpair", when=(families,)),
        Refused("socket", when=(Condition(0, (_AF_NETLINK,), _LOW_32), protocols)),
    )

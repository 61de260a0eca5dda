"""Makes each system call a sandbox must refuse, inside it, and prints the error number; 0 means it went through.

Run by test_syscalls.py. x86_64 and aarch64. Every call is made with arguments that fail harmlessly (bad
pointers, bad descriptors) where nothing refuses it first, so that EPERM can only be the filter's word.
"""

import ctypes
import json
import mmap
import os
import platform
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X86 = platform.machine() == "x86_64"
BAD = ctypes.c_void_p(8)

NUMBERS = {
    # name: (x86_64, aarch64)
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "syslog": (103, 116),
    "open_by_handle_at": (304, 265),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
}
CLONE3 = 435
UNSHARE = 272 if X86 else 97
PERSONALITY = 135 if X86 else 92
SOCKET = 41 if X86 else 198
IOCTL = 16 if X86 else 29
CLONE = 56 if X86 else 220


def call(number, *arguments):
    """The error number of a raw system call, 0 for success."""
    ctypes.set_errno(0)
    # ptrace(PTRACE_TRACEME) is 0 and would succeed: -1 is no request
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return 0 if result >= 0 else ctypes.get_errno()


def foreign(code):
    """Runs a few bytes of machine code that make a call in another numbering; rax comes back."""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    function = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return -function()


def main():
    found = {name: call(numbers[0 if X86 else 1], -1, BAD, BAD, BAD, BAD) for name, numbers in NUMBERS.items()}
    found["clone3"] = call(CLONE3, BAD, 64)
    for flag in (0x80, 0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        found[f"unshare {flag:#x}"] = call(UNSHARE, flag)
    for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        # CLONE_SIGHAND without CLONE_VM is EINVAL wherever the filter lets it through
        found[f"clone {flag:#x}"] = call(CLONE, flag | 0x800, 0, 0, 0, 0)
    for bit in (0x0400000, 0x0100000, 0x0200000):
        found[f"personality {bit:#x}"] = call(PERSONALITY, bit)
    for family in [0, *range(3, 10), *range(11, 16), *range(17, 46)]:
        found[f"socket {family}"] = call(SOCKET, family, 1, 0)
    found["socket high bits"] = call(SOCKET, (1 << 32) | 40, 1, 0)
    for protocol in (1, 4, 6, 9, 12, 15, 16, 21):
        found[f"netlink {protocol}"] = call(SOCKET, 16, 3, protocol)
    byte = ctypes.create_string_buffer(b"x")
    for request in (0x5412, 0x541C):
        for high in (0, 1 << 32, 0xFFFFFFFF << 32):
            number = request | high
            found[f"ioctl {number:#x}"] = call(IOCTL, 0, ctypes.c_ulong(number), byte)
    allowed = {
        "personality query": call(PERSONALITY, 0xFFFFFFFF),
        "personality no randomize": call(PERSONALITY, 0x0040000),
        "unshare files": call(UNSHARE, 0x400),
        "openat2": call(437, -1, BAD, BAD, 24),
        "statx": call(332 if X86 else 291, -1, BAD, 0, 0, BAD),
        "faccessat2": call(439, -1, BAD, 0, 0),
        "close_range": call(436, 1000, 1001, 0),
        "netlink route": call(SOCKET, 16, 3, 0),
        "memfd_create": call(319 if X86 else 279, ctypes.c_char_p(b"x"), 0),
    }
    call(PERSONALITY, 0)
    for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
        socket.socket(family, socket.SOCK_STREAM).close()
    a, b = socket.socketpair()
    a.close(), b.close()
    other = {}
    if X86:
        # mov eax, number; syscall; ret
        other["x32 getpid"] = foreign(b"\xb8\x27\x00\x00\x40\x0f\x05\xc3")
        other["x32 socket"] = foreign(b"\xb8\x29\x00\x00\x40\x0f\x05\xc3")
        if "--int80" in sys.argv:
            # mov eax, 20 (getpid); int 0x80; ret. And 310, unshare, with ebx = CLONE_NEWUSER.
            other["i386 getpid"] = foreign(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
            other["i386 unshare"] = foreign(b"\x53\xbb\x00\x00\x00\x10\xb8\x36\x01\x00\x00\xcd\x80\x5b\xc3")
    print(json.dumps({"refused": found, "allowed": allowed, "foreign": other}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()

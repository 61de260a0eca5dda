"""The same calls under other numbers: x32 and 32-bit, which a filter for one architecture does not list."""

import os
import platform

import pytest

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="x86_64 has other numberings")

CODE = """
import mmap
def run(code):
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    result = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    return errno.errorcode.get(-result, result) if result < 0 else 'pid' if result == os.getpid() else result
def native(number): return run(b'\\xb8' + number.to_bytes(4, 'little') + b'\\x0f\\x05\\xc3')
said['native getpid'] = native(39)
said['x32 getpid'] = native(39 | 0x40000000)
said['x32 io_uring_setup'] = native(425 | 0x40000000)
if 'int80' in sys.argv:
    # mov eax, 20; int 0x80; ret
    said['i386 getpid'] = run(b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3')
"""


def test_foreign_numbers_do_not_exist(way):
    probe = way(CODE)
    inside = probe.inside("int80")
    assert inside == {
        "native getpid": "pid",
        "x32 getpid": "ENOSYS",
        "x32 io_uring_setup": "ENOSYS",
        "i386 getpid": "ENOSYS",
    }
    done = probe.sandbox.outside(probe.argv("int80"))
    if done.returncode < 0 or not os.path.exists("/proc/sys/abi/vsyscall32"):
        pytest.skip("this kernel runs no 32-bit calls to show the probe with")
    assert '"i386 getpid": "pid"' in done.stdout

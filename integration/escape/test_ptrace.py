"""Taking over a process that is not confined: by ptrace, its memory, or its descriptors."""

import os

CODE = """
import platform, subprocess
X86 = platform.machine() == 'x86_64'
scratch = None
if sys.argv[1:]:
    targets = {name: int(name) for name in sys.argv[1:]} | {'1': 1, 'parent': os.getppid()}
else:
    scratch = subprocess.Popen(['sleep', '600'])
    targets = {'scratch': scratch.pid}
memory = ctypes.create_string_buffer(8)
class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
def rip(pid):
    with open(f'/proc/{pid}/maps') as file: start = int(file.readline().split('-')[0], 16)
    mine, theirs = Vector(ctypes.addressof(memory), 8), Vector(start, 8)
    return syscall(310 if X86 else 270, pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)
def steal(pid):
    handle = os.pidfd_open(pid)
    return syscall(438, handle, 0, 0)
def open_memory(pid):
    os.close(os.open(f'/proc/{pid}/mem', os.O_RDWR))
    return 'opened'
SEIZE, DETACH = 0x4206, 17
try:
    for name, pid in targets.items():
        attempt(name + ' memory', rip, pid)
        attempt(name + ' mem', open_memory, pid)
        attempt(name + ' descriptor', steal, pid)
        attempt(name + ' ptrace', syscall, 101 if X86 else 117, SEIZE, pid, None, None)
finally:
    if scratch: scratch.kill(); scratch.wait()
"""


def test_processes_outside(way):
    probe = way(CODE)
    outside = probe.outside()
    assert outside["scratch memory"] == 8
    assert outside["scratch mem"] == "opened"
    assert outside["scratch descriptor"] > 2
    assert outside["scratch ptrace"] == 0
    # the numbers of this process and of the one above mean nothing inside
    for first in (False, True):
        inside = probe.inside(os.getpid(), os.getppid(), bubblewrap_first=first)
        assert len(inside) == 16
        assert all(isinstance(result, str) for result in inside.values()), inside

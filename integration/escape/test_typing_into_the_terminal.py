"""TIOCSTI puts characters into a terminal's input, where the shell that started the command reads them next."""

import json
import os
import subprocess

CODE = """
# the second is the same request with bits that the kernel does not look at, <asm-generic/ioctls.h>
for request in (0x5412, 0x5412 | 1 << 32):
    attempt(hex(request), syscall, 16 if os.uname().machine == 'x86_64' else 29, 0, request, ctypes.c_char_p(b'!'))
attempt('console', syscall, 16 if os.uname().machine == 'x86_64' else 29, 0, 0x541C, ctypes.c_char_p(b'!'))
"""


def test_nothing_is_typed(way):
    """P-SC-04."""
    probe = way(CODE)
    answer = probe.sandbox.run(probe.argv(), terminal=True)
    assert json.loads(answer["stdout"]) == {"0x5412": "EPERM", "0x100005412": "EPERM", "console": "EPERM"}, answer
    # outside, on a terminal that the test made: the characters do arrive, where this kernel still has the request
    master, slave = os.openpty()
    try:
        done = subprocess.run(
            ["setsid", "--ctty", *probe.argv()], stdin=slave, capture_output=True, text=True, timeout=30, check=True,
            **probe.sandbox._as_user(),
        )  # fmt: skip
        said = json.loads(done.stdout)
        assert said["0x5412"] in (0, "EIO")
        if said["0x5412"] == 0:
            # they are echoed like keys
            assert os.read(master, 16).startswith(b"!")
        else:
            with open("/proc/sys/dev/tty/legacy_tiocsti") as setting:
                assert setting.read().strip() == "0"
    finally:
        os.close(master)
        os.close(slave)

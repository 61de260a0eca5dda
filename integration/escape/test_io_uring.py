"""io_uring makes system calls that no filter sees."""

import pytest

CODE = """
ring = ctypes.create_string_buffer(120)
attempt('setup', syscall, 425, 4, ring)
attempt('enter', syscall, 426, -1, 0, 0, 0, None, 0)
attempt('register', syscall, 427, -1, 0, None, 0)
"""


def test_no_ring(way):
    probe = way(CODE)
    assert probe.inside() == {"setup": "EPERM", "enter": "EPERM", "register": "EPERM"}
    outside = probe.outside()
    if outside["setup"] in ("ENOSYS", "EPERM"):
        pytest.skip("this machine has no io_uring to show the probe with")
    assert outside["setup"] > 2
    assert outside["enter"] == "EBADF"

"""Which calls are watched, and how their arguments are read."""

import os
import struct

import pytest

from doorward.launcher.denial_calls import WATCHED, changes
from doorward.launcher.denial_listener import _NOTIFICATION, _RESPONSE, _signed, _socket_path


@pytest.mark.parametrize(
    ("flags", "change"),
    [
        (os.O_RDONLY, False),
        (os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW, False),
        (os.O_PATH, False),
        (os.O_WRONLY, True),
        (os.O_RDWR, True),
        (os.O_RDONLY | os.O_CREAT, True),
        (os.O_RDONLY | os.O_TRUNC, True),
        (os.O_TMPFILE | os.O_RDWR, True),
    ],
)
def test_an_open_that_may_change_something(flags, change):
    assert changes(flags) is change


def test_every_call_has_its_paths_among_six_arguments():
    assert len({call.name for call in WATCHED}) == len(WATCHED)
    for call in WATCHED:
        numbers = [number for pair in call.paths for number in pair if number is not None]
        assert all(0 <= number < 6 for number in numbers)


def test_the_structures_have_the_kernels_sizes():
    """<linux/seccomp.h>: the ioctl numbers carry them."""
    assert (_NOTIFICATION.size, _RESPONSE.size) == (80, 24)


@pytest.mark.parametrize(("value", "signed"), [(0xFFFFFF9C, -100), (0xFFFFFFFFFFFFFF9C, -100), (3, 3), (0, 0)])
def test_a_descriptor_is_read_in_the_width_of_an_int(value, signed):
    assert _signed(value) == signed


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (struct.pack("=H", 1) + b"/run/a.sock\0rest", b"/run/a.sock"),
        (struct.pack("=H", 1) + b"\0abstract", b""),
        (struct.pack("=H", 2) + b"\x00\x50\x7f\x00\x00\x01", b""),
        (b"", b""),
    ],
)
def test_only_a_unix_socket_with_a_name_in_the_file_system_has_a_path(raw, path):
    assert _socket_path(raw) == path

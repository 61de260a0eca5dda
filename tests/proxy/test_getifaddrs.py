"""The interfaces' addresses from the C library: the same as netlink tells, and macOS's form of a socket address."""

import ctypes
import sys
from ipaddress import ip_address

import pytest

from doorward.proxy.getifaddrs import interface_addresses_of_libc, read_socket_address
from doorward.proxy.interface_addresses import interface_addresses


@pytest.mark.skipif(sys.platform != "linux", reason="compares with netlink")
def test_the_same_as_netlink_tells():
    found = set(interface_addresses_of_libc(bsd=False))
    assert ip_address("127.0.0.1").packed in found
    assert found == set(interface_addresses().addresses)


@pytest.mark.parametrize(
    ("raw", "bsd", "text"),
    [
        (b"\x10\x02\0\0" + bytes([192, 0, 2, 7]) + bytes(8), True, "192.0.2.7"),
        (b"\x02\0\0\0" + bytes([192, 0, 2, 7]) + bytes(8), False, "192.0.2.7"),
        (b"\x1c\x1e\0\0\0\0\0\0" + ip_address("2001:db8::7").packed + bytes(4), True, "2001:db8::7"),
        (b"\x0a\0\0\0\0\0\0\0" + ip_address("2001:db8::7").packed + bytes(4), False, "2001:db8::7"),
        (b"\x14\x12" + bytes(18), True, None),  # a link address
    ],
)
def test_socket_addresses(raw, bsd, text):
    buffer = ctypes.create_string_buffer(raw, len(raw))
    found = read_socket_address(raw[:2], ctypes.addressof(buffer), bsd=bsd)
    assert found == (None if text is None else ip_address(text).packed)

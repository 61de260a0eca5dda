"""The machine's own addresses, from what the kernel answers; and nothing it answers keeps a run from starting."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet
from doorward.proxy.interface_addresses import InterfaceAddresses, interface_addresses, read_messages

KERNEL = (0, 0)
ADDRESS, LOCAL, LABEL = 1, 2, 3


def message(kind: int, payload: bytes = b"", *, flags: int = 2, sequence: int = 1) -> bytes:
    padding = b"\0" * (-len(payload) % 4)
    return struct.pack("=IHHII", 16 + len(payload), kind, flags, sequence, 77) + payload + padding


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def told(*attributes: tuple[int, str | bytes], family: int = 2, flags: int = 2, sequence: int = 1) -> bytes:
    payload = struct.pack("=BBBBI", family, 24, 0, 0, 1)
    for kind, value in attributes:
        payload += attribute(kind, value if isinstance(value, bytes) else ip_address(value).packed)
    return message(20, payload, flags=flags, sequence=sequence)


DONE = message(3, b"\0\0\0\0")


class Answering:
    """A kernel that has its datagrams ready."""

    def __init__(self, datagrams: Iterable[bytes | OSError | tuple[bytes, object]]) -> None:
        self.datagrams = list(datagrams)
        self.sent: list[bytes] = []
        self.closed = False

    def send(self, data: bytes) -> int:
        self.sent.append(data)
        return len(data)

    def recvfrom(self, most: int) -> tuple[bytes, object]:
        if not self.datagrams:
            raise TimeoutError
        answer = self.datagrams.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer if isinstance(answer, tuple) else (answer, KERNEL)

    def close(self) -> None:
        self.closed = True


def found(*datagrams: bytes | OSError | tuple[bytes, object]) -> InterfaceAddresses:
    kernel = Answering(datagrams)
    answer = interface_addresses(lambda: kernel)
    assert kernel.closed
    return answer


def texts(answer: InterfaceAddresses) -> list[str]:
    assert answer.notice == ""
    return [str(ip_address(packed)) for packed in answer.addresses]


def test_every_address_of_every_message_counts_once() -> None:
    first = told((ADDRESS, "127.0.0.1"), (LOCAL, "127.0.0.1"), (LABEL, b"lo\0")) + told(
        (ADDRESS, "2001:db8::7"), (8, b"\0" * 4), family=10
    )
    second = told((LOCAL, "192.0.2.7"), (ADDRESS, "192.0.2.7")) + told((LOCAL, "127.0.0.1"))
    assert texts(found(first, second, DONE)) == ["127.0.0.1", "2001:db8::7", "192.0.2.7"]
    assert texts(found(first + DONE)) == ["127.0.0.1", "2001:db8::7"]


def test_the_request_is_a_dump_of_all_families() -> None:
    kernel = Answering([DONE])
    assert interface_addresses(lambda: kernel) == InterfaceAddresses(())
    assert kernel.sent == [struct.pack("=IHHII", 24, 22, 0x301, 1, 0) + bytes(8)]


def test_the_far_end_of_a_link_is_not_ours() -> None:
    """On a point-to-point interface IFA_ADDRESS is the peer."""
    link = told((ADDRESS, "192.0.2.1"), (LOCAL, "192.0.2.2"))
    tunnel = told((ADDRESS, "2001:db8::1"), (LOCAL, "2001:db8::2"), family=10)
    assert texts(found(link + tunnel + DONE)) == ["192.0.2.2", "2001:db8::2"]


def test_other_families_other_requests_and_other_senders_are_passed_over() -> None:
    other = told((LOCAL, b"\1\2\3\4\5\6"), family=7)
    late = told((LOCAL, "192.0.2.9"), sequence=9)
    forged = told((LOCAL, "192.0.2.8")) + DONE
    assert texts(found((forged, (4711, 0)), other + late + told(family=2), DONE)) == []


def test_a_dump_that_was_disturbed_is_made_again() -> None:
    """NLM_F_DUMP_INTR."""
    disturbed = told((LOCAL, "192.0.2.1"), flags=0x12) + DONE
    quiet = told((LOCAL, "192.0.2.2")) + DONE
    assert texts(found(disturbed, quiet)) == ["192.0.2.2"]
    assert "keep changing" in found(disturbed, disturbed, disturbed).notice


@pytest.mark.parametrize(
    "datagram",
    [
        message(2, struct.pack("=i", -errno.EPERM)),
        message(4),
        OSError(errno.ENOBUFS, "No buffer space available"),
        TimeoutError(),
        struct.pack("=IHHII", 400, 20, 2, 1, 77),
        struct.pack("=IHHII", 3, 20, 2, 1, 77),
        message(2),
        message(20, struct.pack("=BBBBI", 2, 24, 0, 0, 1) + struct.pack("=HH", 40, LOCAL)),
        message(20, struct.pack("=BBBBI", 2, 24, 0, 0, 1) + struct.pack("=HH", 2, LOCAL)),
        told((LOCAL, b"\1\2\3")),
    ],
)
def test_what_goes_wrong_is_a_notice(datagram: bytes | OSError) -> None:
    answer = found(datagram)
    assert answer.addresses == ()
    assert answer.notice.startswith("the addresses of this machine's interfaces cannot be read (")


def test_a_dump_without_an_end_is_given_up() -> None:
    class Endless(Answering):
        def recvfrom(self, most: int) -> tuple[bytes, object]:
            return told((LOCAL, "192.0.2.1")), (4711, 0)

    assert "cannot be read" in interface_addresses(lambda: Endless([])).notice


def test_no_socket_is_a_notice() -> None:
    def refused() -> Answering:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    def unknown() -> Answering:
        raise AttributeError("AF_NETLINK")

    assert "operation not permitted" in interface_addresses(refused).notice
    assert "this system" in interface_addresses(unknown).notice


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_keep_a_run_from_starting(data: bytes, framed: bool) -> None:
    answer = interface_addresses(lambda: Answering([message(20, data) if framed else data]))
    assert isinstance(answer.addresses, tuple)


def test_messages_end_with_the_dump() -> None:
    addresses: list[bytes] = []
    assert read_messages(DONE + told((LOCAL, "192.0.2.1")), addresses) == (True, True)
    assert read_messages(b"", addresses) == (False, True)
    assert addresses == []


@pytest.mark.skipif(not os.path.exists("/proc/net/if_inet6"), reason="no IPv6, or no Linux")
def test_this_machine_tells_the_same_twice() -> None:
    """The dump agrees with the kernel's own table of IPv6 addresses."""
    with open("/proc/net/if_inet6", encoding="ascii") as file:
        listed = {IPv6Address(int(line.split()[0], 16)) for line in file}
    answer = interface_addresses()
    assert {IPv6Address(each) for each in answer.addresses if len(each) == 16} == (set() if answer.notice else listed)


def test_a_public_address_of_ours_is_shut(make_own: Callable[[str], RuleSet]) -> None:
    """The guard knows them as `own`; what a rule set does with them is tested in tests/allowlists."""
    from doorward.allowlists.host import parse_host

    public = "8.8.8.8"
    rules = make_own(public)
    assert rules.decide(parse_host(public), 443).reason == "not_allowed_local"
    assert "an address of this machine" in rules.decide(parse_host(public), 443).message


@pytest.fixture
def make_own() -> Callable[[str], RuleSet]:
    def make(text: str) -> RuleSet:
        answer = found(told((LOCAL, text)) + DONE)
        star = parse_rule("*", "allow", Origin("flag", "--allow"))
        return RuleSet.build([star], [], own_addresses=answer.addresses)

    return make

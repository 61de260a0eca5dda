"""The hint after a failed run: held against what real clients print, and against what is no way round the proxy."""

from __future__ import annotations

from typing import Any

import pytest

from doorward.hints import Ended
from doorward.past_the_proxy import hint as hint_of

NAME = "a name did not resolve"
LOOPBACK = "nothing listens there"
ADDRESS = "an address was dialled directly"


def hint(output: str, *, captured: bool = False, **more: Any) -> str | None:
    found = hint_of(Ended(("make",), "/", output, uncaptured="" if captured else "off", **more))
    assert found is None or found.remedy in found.message
    return found and found.message


@pytest.mark.parametrize(
    "output",
    [
        "curl: (97) Could not resolve host: a.test\n",
        "ssh: Could not resolve hostname a.test: Temporary failure in name resolution\r\n",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution\n",
        "socket.gaierror: [Errno -2] Name or service not known\n",
        "wget: unable to resolve host address \u2018a.test\u2019\n",
        "  Temporary failure resolving 'a.test'\n",
        "TypeError: fetch failed\n  [cause]: Error: getaddrinfo EAI_AGAIN a.test\n",
        "npm error network request to http://a.test/ failed, reason: getaddrinfo ENOTFOUND a.test\n",
        "java.net.UnknownHostException: a.test\n",
        'Get "http://a.test/": dial tcp: lookup a.test: no such host\n',
        "dial tcp: lookup a.test on 127.0.0.53:53: read udp 127.0.0.1:4->127.0.0.53:53: read: connection refused\n",
        "dial tcp: lookup a.test on 192.0.2.1:53: dial udp 192.0.2.1:53: connect: network is unreachable\n",
    ],
)
def test_a_name_looked_up_inside(output: str) -> None:
    """P-DN-04: remote resolution and its scheme are named."""
    said = hint(output)
    assert said is not None and said.startswith(NAME)
    assert ("http://127.0.0.1:3128" in said and "socks5h://" in said) or "Node 22.21" in said


@pytest.mark.parametrize(
    ("output", "rule"),
    [
        ("dial tcp 127.0.0.1:8080: connect: connection refused\n", "127.0.0.1:8080"),
        ("dial tcp [::1]:8080: connect: connection refused\n", "127.0.0.1:8080"),
        ("curl: (7) Failed to connect to localhost port 80 after 0 ms: Couldn't connect to server\n", "127.0.0.1:80"),
        ("Error: connect ECONNREFUSED 127.0.0.1:5432\n", "127.0.0.1:5432"),
        ("Connecting to localhost (localhost)|127.0.0.1|:80... failed: Connection refused.\n", "127.0.0.1:PORT"),
        ("ConnectionRefusedError: [Errno 111] Connect call failed ('127.0.0.1', 6379): Connection refused\n",
         "127.0.0.1:6379"),
        ("HTTPConnectionPool(host='127.0.0.1', port=8000): [Errno 111] Connection refused\n", "127.0.0.1:8000"),
        ('  connect(("127.0.0.1", port))\nConnectionRefusedError: [Errno 111] Connection refused\n', "127.0.0.1:PORT"),
    ],
)  # fmt: skip
def test_the_hosts_loopback(output: str, rule: str) -> None:
    """P-EV-06: it is another machine, and the option that grants the port is named."""
    said = hint(output)
    assert said is not None and said.startswith(LOOPBACK)
    assert "another machine" in said
    assert f"--allow-loopback {rule.partition(':')[2]} " in said


@pytest.mark.parametrize(
    "output",
    [
        "OSError: [Errno 101] Network is unreachable\n",
        "Connecting to 192.0.2.1:80... failed: Network is unreachable.\n",
        "dial tcp 192.0.2.1:443: connect: network is unreachable\n",
        "Error: connect ENETUNREACH 192.0.2.1:443\n",
        "java.net.NoRouteToHostException: No route to host\n",
        "curl: (7) Failed to connect to 192.0.2.1 port 80 after 0 ms: Couldn't connect to server\n",
    ],
)
def test_an_address_dialled_directly(output: str) -> None:
    """P-EV-08"""
    said = hint(output)
    assert said is not None and said.startswith(ADDRESS)
    assert "http://127.0.0.1:3128" in said


@pytest.mark.parametrize(
    "output",
    [
        "",
        "make: *** [all] Error 2\n",
        "a server on localhost, no more\n",
        # what the proxy says of an allowed place that it could not reach
        '{"status": "error", "message": "a.test does not resolve: name or service not known."}\n',
        '{"status": "error", "message": "a.test does not resolve: temporary failure in name resolution."}\n',
        "Cannot connect: 127.0.0.1 port 8080: connection refused.\n",
        "Cannot connect: 192.0.2.1 port 80: network is unreachable.\n",
        # the proxy itself is gone
        "curl: (7) Failed to connect to 127.0.0.1 port 3128 after 0 ms: Couldn't connect to server\n",
        "proxyconnect tcp: dial tcp 127.0.0.1:3128: connect: connection refused\n",
        # no address at all
        "psql: error: Connection refused\n",
    ],
)
def test_nothing_that_went_round_it(output: str) -> None:
    assert hint(output) is None


def test_at_most_one() -> None:
    """P-EV-08: a run that shows all three is told of the names, which the others often follow from."""
    said = hint("Network is unreachable\nconnect ECONNREFUSED 127.0.0.1:80\nCould not resolve host: a.test\n")
    assert said is not None
    assert [said.startswith(NAME), LOOPBACK in said, ADDRESS in said] == [True, False, False]


def test_a_long_output_takes_no_time() -> None:
    """The longest that is kept whole, of words that nearly match; a pattern that looks back would hang here."""
    assert hint("Failed to connect to localhost lookup on lookup " * 1400) is None


def test_the_status_number_of_a_trust_service_out_of_reach_is_known() -> None:
    """P-PL-01."""
    said = hint("Get https://a.test: tls: failed to verify certificate: x509: OSStatus -26276\n")
    assert said is not None and "macos.trust_service=true" in said


def test_where_connections_are_captured_only_loopback_is_hinted_at() -> None:
    """P-EV-06: whatever else refuses is the door, which has said so itself."""
    said = hint("ConnectionRefusedError: [Errno 111] Connection refused\n", captured=True)
    assert said is not None and "--allow-loopback PORT " in said
    assert hint("socket.gaierror: [Errno -3] Temporary failure in name resolution\n", captured=True) is None
    assert hint("OSError: [Errno 101] Network is unreachable\n", captured=True) is None


def test_a_machine_that_cannot_capture_is_not_told_to() -> None:
    """P-EV-08: the client's own setting is what is left."""
    for why in ("connections are not captured, since there is no nftables", "on this platform"):
        found = hint_of(Ended(("make",), "/", "Could not resolve host: a.test\n", uncaptured=why))
        assert found is not None and found.remedy == "" and "transparent" not in found.message


@pytest.mark.parametrize(
    ("argv", "output", "remedy"),
    [
        (("sh", "-c", "curl -x socks5://127.0.0.1:3128 a.test"), "", "socks5h://"),
        (("curl", "--socks5", "127.0.0.1:3128", "a.test"), "", "--socks5-hostname"),
        (("./get.py",), "proxies = {'https': 'socks5://127.0.0.1:3128'}\n", "socks5h://"),
        (("curl", "--socks5-hostname", "127.0.0.1:3128", "socks5h://a.test"), "", "-c network.transparent=true"),
    ],
)
def test_socks5_where_it_was_written(argv: tuple[str, ...], output: str, remedy: str) -> None:
    """P-DN-04: what was written is replaced; a guess would be no help."""
    found = hint_of(Ended(argv, "/", f"{output}Could not resolve host: a.test\n", uncaptured="off"))
    assert found is not None and found.remedy == remedy and "socks5h://" in found.message


@pytest.mark.parametrize(
    ("output", "option"),
    [
        ("aiohttp.client_exceptions.X: [Temporary failure in name resolution]\n", "trust_env=True"),
        ("TypeError: fetch failed\n  [cause]: Error: getaddrinfo EAI_AGAIN a.test\n", "Node 22.21"),
    ],
)
def test_a_library_that_has_to_be_told_is_named_with_its_option(output: str, option: str) -> None:
    """P-EV-09."""
    said = hint(output)
    assert said is not None and option in said and said.startswith(NAME)


def test_what_is_granted_is_not_advised() -> None:
    refused = "dial tcp 127.0.0.1:8080: connect: connection refused\n"
    assert hint(refused, loopback=(8080,)) is None and hint(refused, loopback=None) is None
    other = hint(refused, loopback=(8081,), listening=lambda: {8080})
    assert other is not None and "--allow-loopback 8080 " in other and "now" not in other
    gone = hint(refused, listening=lambda: {80})
    assert gone is not None and "nothing listens on its port 8080 now" in gone


def test_a_number_that_is_no_port_is_not_advised() -> None:
    said = hint("connect ECONNREFUSED 127.0.0.1:99999\n")
    assert said is not None and "99999" not in said and "--allow-loopback PORT " in said


def test_a_port_that_only_the_command_tells() -> None:
    refused = "ConnectionRefusedError: [Errno 111] Connection refused\n"
    one = hint_of(Ended(("sh", "-c", "psql -h 127.0.0.1:5432"), "/", refused))
    two = hint_of(Ended(("sh", "-c", "psql -h 127.0.0.1:5432 || psql -h localhost:5433"), "/", refused))
    assert one is not None and one.remedy == "--allow-loopback 5432"
    assert two is not None and two.remedy == "--allow-loopback PORT", "which of them is not known"

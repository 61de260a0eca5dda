"""Abstract unix sockets have no file that a mount could cover (D-Bus and X11 listen on such)."""

import socket

import pytest

CODE = """
attempt('stream', greeted, sys.argv[1].replace('@', chr(0)))
datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
attempt('datagram', datagram.sendto, b'theirs', sys.argv[2].replace('@', chr(0)))
"""


@pytest.mark.parametrize("network", ["off", "full"])
def test_services_of_the_host(way, serve, network):
    probe = way(CODE)
    names = [f"@doorward-{probe.sandbox.marker}-{kind}" for kind in ("stream", "datagram")]
    stream = serve(names[0].replace("@", "\0"))
    datagram = serve(names[1].replace("@", "\0"), socket.SOCK_DGRAM)
    answer = probe.sandbox.run(probe.argv(*names), policy={"network": network})
    if network == "full" and answer["notices"]:
        pytest.skip("this kernel cannot scope abstract sockets, and the run said so")
    assert (stream.visitors, datagram.visitors) == (0, 0), answer
    assert probe.outside(*names) == {"stream": "hello", "datagram": 6}
    assert stream.visitors == 1

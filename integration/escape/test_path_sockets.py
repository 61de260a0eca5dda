"""Unix sockets of the host that have a file: a read-only mount does not stop `connect`.

The kernel lists the name a socket was bound by. A server may have renamed or linked it since, or have bound it
relative to its working directory; OpenSSH's ControlMaster does the first, many development servers the second.
"""

import os
import socket

import pytest

CODE = """
for path in sys.argv[1:]:
    attempt('stream', greeted, path)
    datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    attempt('datagram', datagram.sendto, b'theirs', path)
"""


@pytest.mark.parametrize("where", ["workspace", "outside"])
@pytest.mark.parametrize("form", ["bound", "renamed", "linked", "beside"])
def test_services_of_the_host(way, serve, where, form):
    probe = way(CODE)
    folder = probe.sandbox.workspace if where == "workspace" else probe.sandbox.base
    path = folder / "s.sock"
    if form == "bound":
        service = serve(str(path))
    else:
        service = serve(f"{path}.temporary")
        if form == "linked":
            # as OpenSSH does
            os.link(f"{path}.temporary", path)
            os.unlink(f"{path}.temporary")
        elif form == "renamed":
            os.rename(f"{path}.temporary", path)
        else:
            os.link(f"{path}.temporary", path)
    out_of_reach(probe, path, service)


@pytest.mark.parametrize("where", ["workspace", "outside"])
@pytest.mark.parametrize("below", [False, True])
def test_services_that_were_bound_by_a_relative_path(caller_way, serve, monkeypatch, where, below):
    """Found by the working directory of their process, which only its own user can see."""
    probe = caller_way(CODE)
    folder = probe.sandbox.workspace if where == "workspace" else probe.sandbox.base
    monkeypatch.chdir(folder.parent if below else folder)
    service = serve(f"{folder.name}/s.sock" if below else "s.sock")
    out_of_reach(probe, folder / "s.sock", service)


def out_of_reach(probe, path, service):
    path.chmod(0o777)
    assert probe.inside(path)["stream"] in ("EACCES", "ECONNREFUSED", "ENOENT")
    assert probe.inside(path, policy={"mode": "read-only"})["stream"] in ("EACCES", "ECONNREFUSED", "ENOENT")
    assert service.visitors == 0
    # through a link of the command's own, and by a second name
    probe.sandbox.path("own").symlink_to(path)
    probe.sandbox.run(f"ln '{path}' second; mv '{path}' third")
    for name in ("own", "second", "third"):
        probe.inside(probe.sandbox.path(name))
    assert service.visitors == 0
    assert probe.inside(path, policy={"allow_unix": [str(path)]})["stream"] == "hello"
    assert probe.outside(path)["stream"] == "hello"
    assert service.visitors == 2


def test_datagram_services_of_the_host(way, serve):
    probe = way(CODE)
    path = probe.sandbox.path("d.sock")
    service = serve(str(path), socket.SOCK_DGRAM)
    path.chmod(0o777)
    assert isinstance(probe.inside(path)["datagram"], str)
    assert service.visitors == 0
    assert probe.outside(path)["datagram"] == 6


def test_services_below_private_places(way, serve, host_folder):
    """The host's /tmp is another one, so nothing is there to connect to."""
    probe = way(CODE)
    path = host_folder / "s.sock"
    service = serve(str(path))
    path.chmod(0o777)
    assert probe.inside(path)["stream"] == "ENOENT"
    assert service.visitors == 0
    assert probe.outside(path)["stream"] == "hello"

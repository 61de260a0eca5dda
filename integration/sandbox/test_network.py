"""The network inside: only loopback, the proxy's listeners handed over before the start, no socket of the host."""

import json
import os
import socket

import pytest
from unix_service import Service

WAYS = [False, True]


@pytest.mark.parametrize("bubblewrap_first", WAYS)
def test_the_listeners_are_handed_over_and_answer_before_the_command_starts(sandbox, bubblewrap_first):
    code = (
        "import socket\n"
        "for host in ('127.0.0.1', '::1'):\n"
        "    with socket.create_connection((host, 3128), 10) as c: print(c.recv(100).decode())"
    )
    # either way they come while the command is still held
    answer = sandbox.run(
        ["/usr/bin/python3", "-c", code],
        policy={"network": "proxied"},
        bubblewrap_first=bubblewrap_first,
        steps=[["listen"], ["release"], ["serve", "hello"]],
    )
    assert answer["stdout"] == "hello\nhello\n", answer
    message, addresses = json.loads(answer["stderr"])
    assert isinstance(message.pop("root"), int)
    assert message == {"run": "run-1", "policy": "policy-1", "listener": "proxy", "port": 3128}
    assert addresses == ["127.0.0.1", "::1"]


@pytest.mark.parametrize("bubblewrap_first", WAYS)
@pytest.mark.parametrize("network", ["off", "proxied"])
def test_only_loopback_is_there(sandbox, network, bubblewrap_first):
    """P-NS-07: a listener of the host on loopback is not reached either."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = (
            "import socket, os\n"
            "print(sorted(os.listdir('/sys/class/net')) and [n for _, n in socket.if_nameindex()])\n"
            f"for host, port in (('127.0.0.1', {port}), ('192.0.2.1', 80), ('2001:db8::1', 80)):\n"
            "    try: socket.create_connection((host, port), 3); print('connected')\n"
            "    except OSError as error: print(error.errno)\n"
            "s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); print('own')"
        )
        answer = sandbox.run(
            ["/usr/bin/python3", "-c", code], policy={"network": network}, bubblewrap_first=bubblewrap_first
        )
        assert answer["stdout"].split("\n")[:5] == ["['lo']", "111", "101", "101", "own"], answer
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert answer["enforcement"][1] == "kernel"


def test_the_whole_network_is_the_hosts(sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = ("127.0.0.1", server.getsockname()[1])
        code = f"import socket; socket.create_connection({address}, 5); print('connected')"
        answer = sandbox.run(["/usr/bin/python3", "-c", code], policy={"network": "full"})
    assert answer["stdout"] == "connected\n", answer
    assert answer["enforcement"] == ["kernel", "none", "kernel", "kernel"]


def connect(path):
    return [
        "/usr/bin/python3",
        "-c",
        "import socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        f"try: s.connect({path!r}); print(s.recv(10).decode())\n"
        "except OSError as error: print('refused', error.errno)\n",
    ]


@pytest.mark.parametrize("where", ["workspace", "outside", "linked"])
def test_host_sockets_with_a_path_are_out_of_reach(sandbox, where):
    """P-SC-02: a read-only mount does not stop connect."""
    path = sandbox.path("s.sock") if where == "workspace" else sandbox.base / "s.sock"
    inner = path
    if where == "linked":
        inner = sandbox.path("link")
        inner.symlink_to(path)
    with Service(str(path)) as service:
        for mode in ("workspace-write", "read-only"):
            answer = sandbox.run(connect(str(inner)), policy={"mode": mode})
            assert answer["stdout"].startswith("refused"), answer
        assert service.visitors == 0
        answer = sandbox.run(connect(str(inner)), policy={"allow_unix": [str(path)]})
        assert answer["stdout"] == "hello\n", answer
        assert service.visitors == 1


def test_a_granted_socket_below_run_or_tmp_is_reached(sandbox):
    path = f"/tmp/tested-{sandbox.marker}.sock"
    try:
        with Service(path) as service:
            assert sandbox.run(connect(path))["stdout"].startswith("refused")
            assert sandbox.run(connect(path), policy={"allow_unix": [path]})["stdout"] == "hello\n"
            assert service.visitors == 1
    finally:
        os.unlink(path)


def test_abstract_sockets_of_the_host_are_out_of_reach(sandbox):
    """P-SC-02."""
    name = f"\0doorward-{sandbox.marker}"
    with Service(name) as service:
        answer = sandbox.run(connect(name))
        assert answer["stdout"].startswith("refused"), answer
        assert service.visitors == 0


def test_abstract_sockets_are_out_of_reach_with_the_whole_network_too(sandbox):
    """P-SC-02: where the kernel can scope them, else it is said."""
    name = f"\0doorward-{sandbox.marker}"
    code = connect(name)[-1] + (
        "s = socket.socket(socket.AF_UNIX); s.bind('\\0own'); s.listen()\n"
        "c = socket.socket(socket.AF_UNIX); c.connect('\\0own'); print('own')\n"
    )
    with Service(name) as service:
        answer = sandbox.run(["/usr/bin/python3", "-c", code], policy={"network": "full"})
        if answer["notices"]:
            assert "abstract" in answer["notices"][0]
        else:
            assert answer["stdout"].split()[0] == "refused", answer
            assert service.visitors == 0
        assert answer["stdout"].split()[-1] == "own"


def test_a_socket_that_is_not_there_cannot_be_granted(sandbox):
    answer = sandbox.run("true", policy={"allow_unix": ["/run/no-such.sock"]})
    assert answer["entry"] == "/run/no-such.sock"


def test_sockets_made_inside_work(sandbox):
    """P-SC-03."""
    code = (
        "import os, socket, tempfile, threading\n"
        "a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(9).decode())\n"
        "for path in (tempfile.mkdtemp() + '/s', 'here.sock', '\\0abstract'):\n"
        "    s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen()\n"
        "    c = socket.socket(socket.AF_UNIX); c.connect(path)\n"
        "    s.accept()[0].send(b'own'); print(c.recv(9).decode())\n"
        "os.unlink('here.sock')\n"
    )
    answer = sandbox.run(["/usr/bin/python3", "-c", code])
    assert answer["stdout"].split() == ["pair", "own", "own", "own"], answer
    answer = sandbox.run("eval $(ssh-agent) > /dev/null && ssh-add -l; ssh-agent -k > /dev/null; true")
    assert "no identities" in answer["stdout"], answer


def test_run_is_empty_but_for_a_place_of_ones_own(sandbox):
    uid = os.geteuid() if sandbox.uid is None else sandbox.uid
    answer = sandbox.run(
        'find /run -type s; echo x > "$XDG_RUNTIME_DIR/f" && cat "$XDG_RUNTIME_DIR/f"; echo x > /run/f; ls /run',
        env={"XDG_RUNTIME_DIR": "/run/user/elsewhere"},
    )
    assert answer["stdout"].split() == ["x", "user"], answer
    assert answer["environment"]["XDG_RUNTIME_DIR"] == f"/run/user/{uid}"


def test_interprocess_communication_is_private(caller_sandbox):
    """System V shared memory and message queues of the host."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    segment = libc.shmget(0x6D617263, 4096, 0o1666)  # IPC_CREAT
    assert segment >= 0
    try:
        answer = caller_sandbox.run("ipcs -m; cat /proc/sysvipc/shm | wc -l")
        assert "6d617263" not in answer["stdout"]
        assert answer["stdout"].split()[-1] == "1"
    finally:
        libc.shmctl(segment, 0, None)


def test_processes_of_the_host_are_not_seen(sandbox):
    answer = sandbox.run(
        f"ls -d /proc/[0-9]* | wc -l; kill -0 {os.getpid()}; echo $?; ls /proc/1/root/proc/{os.getpid()}"
    )
    count, status = answer["stdout"].split()
    assert int(count) < 8
    assert status != "0"


@pytest.mark.parametrize("network", ["off", "full"])
def test_danger_full_access_says_what_it_holds(sandbox, network):
    probe = sandbox.base / "outside"
    sandbox.own(sandbox.base)
    answer = sandbox.run(
        f"echo x > '{probe}'; ls /run > /dev/null && echo run; [ -n '{os.sep}' ] && ls -d /proc/[0-9]* | wc -l",
        policy={"mode": "danger-full-access", "network": network},
    )
    assert probe.read_text() == "x\n"
    assert int(answer["stdout"].split()[-1]) < 8
    held = "kernel" if network == "off" else "none"
    assert answer["enforcement"] == ["none", held, "kernel", held]


def test_root_keeps_its_powers_only_with_the_whole_network(caller_sandbox):
    if not caller_sandbox.is_root:
        pytest.skip("root only")
    script = "grep CapEff /proc/self/status | cut -f2; echo x > f; chown 64242 f && stat -c %u f"
    answer = caller_sandbox.run(script, policy={"mode": "danger-full-access", "network": "full"})
    capabilities, owner = answer["stdout"].split()
    assert int(capabilities, 16) != 0
    assert owner == "64242"
    answer = caller_sandbox.run(script, policy={"mode": "danger-full-access", "network": "off"})
    assert answer["stdout"].split() == ["0" * 16]


def test_danger_full_access_has_nothing_to_hide_with(sandbox):
    answer = sandbox.run("true", policy={"mode": "danger-full-access", "deny_read": ["x"]})
    assert answer["entry"] == "x"


def test_without_a_sandbox_descriptors_are_closed_and_nothing_is_left(sandbox):
    answer = sandbox.run(
        f"ls /proc/self/fd | wc -l; (setsid sleep {sandbox.marker} &) ; sleep {sandbox.marker} & exit 3",
        policy={"mode": "unconfined"},
    )
    assert answer["exit_code"] == 3
    assert answer["stdout"].split() == ["4"]
    assert answer["enforcement"] == ["none"] * 4
    assert sandbox.gone() == []
    answer = sandbox.run(["no-such-program"], policy={"mode": "unconfined"})
    assert answer["exit_code"] == 127

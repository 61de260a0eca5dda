"""The macOS door's processes, driven on whatever POSIX system this is: a stand-in takes sandbox-exec's place.

What is proved here is everything but the kernel's part: the command is held, its status and its signals come through,
nothing outlives it, the proxy's listeners arrive, temporary folders go. The profile is in tests/launcher.
"""

import array
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

from doorward.launcher.interface import Command, Mode, SandboxPolicy, SandboxUnavailable, Stdio
from doorward.launcher.loopback_listeners import open_listeners
from doorward.launcher.seatbelt import Seatbelt

DEADLINE_S = 20

# Notes what it was given, refuses a text that does not begin as a profile does, then becomes the command.
STAND_IN = """#!{python}
import json, os, sys
args = sys.argv[1:]
end = args.index("--")
with open({notes!r}, "a") as notes:
    notes.write(json.dumps(args) + "\\n")
if {broken!r}:
    sys.stderr.write({broken!r} + "\\n")
    sys.exit(71)
assert args[0] == "-p" and args[1].startswith("(version 1)"), args
assert all(arg.startswith("-D") for arg in args[2:end]), args
os.execvp(args[end + 1], args[end + 1:])
"""


class Door:
    """A prepared confinement in a scratch folder."""

    def __init__(self, tmp_path, monkeypatch, broken="", **more):
        self.work = tmp_path / "work"
        self.notes = tmp_path / "notes"
        temporary = tmp_path / "user-temporary"
        for folder in (self.work, tmp_path / "home", temporary):
            folder.mkdir(exist_ok=True)
        monkeypatch.setenv("TMPDIR", str(temporary))
        self.temporary = temporary
        program = tmp_path / "sandbox-exec"
        program.write_text(STAND_IN.format(python=sys.executable, notes=str(self.notes), broken=broken))
        program.chmod(0o755)
        policy = SandboxPolicy(Mode.WORKSPACE_WRITE, str(self.work), str(tmp_path / "home"), str(tmp_path / "cache"))
        self.confinement = Seatbelt(str(program)).prepare(policy._replace(**more))

    def spawn(self, *argv, stdout=-1, env=None, **more):
        variables = self.confinement.environment({"PATH": os.environ["PATH"]} if env is None else env)
        return self.confinement.spawn(Command(argv, str(self.work), variables), Stdio(-1, stdout, stdout), **more)

    def run(self, *argv, **more):
        process = self.spawn(*argv, **more)
        process.release()
        outcome = process.wait()
        process.close()
        return outcome


@pytest.fixture
def door(tmp_path, monkeypatch):
    opened = Door(tmp_path, monkeypatch, network="off")
    yield opened
    opened.confinement.close()


def until(condition):
    """Waits for what must become true."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        select.select([], [], [], 0.01)


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    done = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:1] in ("", "Z")


def test_status_signals_and_what_cannot_start(door):
    assert door.run("sh", "-c", "exit 7").exit_code == 7
    killed = door.run("sh", "-c", "kill -TERM $$")
    assert (killed.exit_code, killed.signal) == (143, 15)
    missing = door.run("no-such-program")
    assert (missing.exit_code, missing.failure.kind) == (127, "not-found")


def test_the_command_is_held_until_it_is_let_go(door):
    process = door.spawn("touch", "made")
    poll = select.poll()
    poll.register(process.fileno(), select.POLLIN)
    assert not poll.poll(200)
    assert not (door.work / "made").exists()
    process.release()
    assert process.wait().exit_code == 0
    assert (door.work / "made").exists()
    process.close()


def test_killed_before_it_was_let_go_it_never_runs(door):
    process = door.spawn("touch", "made")
    process.kill()
    assert process.wait().exit_code == 137
    process.close()
    assert not (door.work / "made").exists()


def test_a_signal_reaches_the_command_alone(door):
    reader, writer = os.pipe()
    trapping = "trap 'echo got; exit 3' INT; echo up; while :; do sleep 0.05; done"
    process = door.spawn("sh", "-c", trapping, stdout=writer)
    os.close(writer)
    process.release()
    with os.fdopen(reader) as said:
        assert said.readline() == "up\n"
        process.signal(signal.SIGINT)
        assert said.read() == "got\n"
    assert process.wait().exit_code == 3
    process.close()


LEAVERS = {
    "in the background": "sleep 600 & echo $!",
    "in a process group of its own": "set -m; sleep 600 & echo $!",
}


@pytest.mark.parametrize("how", LEAVERS)
def test_nothing_outlives_the_command(door, how):
    reader, writer = os.pipe()
    process = door.spawn("bash", "-c", f"{LEAVERS[how]}; exit 0", stdout=writer)
    os.close(writer)
    process.release()
    with os.fdopen(reader) as said:
        pid = int(said.readline())
        assert process.wait().exit_code == 0
    process.close()
    assert gone(pid)


def test_when_the_supervisor_is_killed_everything_ends(tmp_path, door):
    script = f"""
import os, sys
from doorward.launcher.interface import *
from doorward.launcher.seatbelt import Seatbelt
policy = SandboxPolicy(Mode.WORKSPACE_WRITE, {str(door.work)!r}, {str(tmp_path / "home")!r}, "/nowhere", network="off")
confinement = Seatbelt({str(tmp_path / "sandbox-exec")!r}).prepare(policy)
env = confinement.environment({{"PATH": os.environ["PATH"]}})
process = confinement.spawn(
    Command(("sh", "-c", "sleep 600 & echo $! $$; wait"), {str(door.work)!r}, env), Stdio(-1, 1, -1))
process.release()
process.wait()
"""
    supervisor = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pids = [int(word) for word in supervisor.stdout.readline().split()]
    supervisor.kill()
    supervisor.wait()
    supervisor.stdout.close()
    assert len(pids) == 2
    for pid in pids:
        until(lambda pid=pid: gone(pid))
    until(lambda: os.listdir(door.temporary) == [])


def test_it_gets_three_descriptors_a_session_and_its_own_temporary_folder(door):
    inherited = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    reader, writer = os.pipe()
    code = (
        "import json, os; open_now = sorted(int(n) for n in os.listdir('/dev/fd'))[:-1]\n"
        "print(json.dumps([open_now, os.getsid(0) == os.getpid(),"
        " os.environ['TMPDIR'], oct(os.stat(os.environ['TMPDIR']).st_mode)]))"
    )
    outcome = door.run(sys.executable, "-c", code, stdout=writer)
    os.close(writer)
    os.close(inherited)
    with os.fdopen(reader) as said:
        descriptors, leads, temporary, mode = json.load(said)
    assert outcome.exit_code == 0
    assert (descriptors, leads) == ([0, 1, 2], True)
    assert os.path.dirname(temporary.rstrip("/")) == str(door.temporary)
    assert stat.S_IMODE(int(mode, 8)) == 0o700
    assert os.listdir(door.temporary) == []  # gone with the run


def test_the_profile_goes_in_an_argument_and_the_paths_in_others(door):
    door.run("true")
    tried, ran = [json.loads(line) for line in door.notes.read_text().splitlines()]
    assert tried[-2:] == ["--", "/usr/bin/true"]
    assert ran[-2:] == ["--", "true"]
    assert any(arg.endswith(f"={door.work}") for arg in ran)
    assert str(door.work) not in ran[1]
    door.run("true")
    assert len(door.notes.read_text().splitlines()) == 3  # a text is tried once


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("sandbox-exec: unbound variable: file-raed*", "unbound variable"),
        ("sandbox-exec: sandbox_apply: Operation not permitted", "inside another one"),
    ],
)
def test_a_profile_that_is_not_taken_runs_nothing(tmp_path, monkeypatch, said, meant):
    door = Door(tmp_path, monkeypatch, broken=said, network="off")
    with pytest.raises(SandboxUnavailable, match=meant):
        door.spawn("touch", "made")
    door.confinement.close()
    assert os.listdir(door.temporary) == []
    assert not (door.work / "made").exists()


def test_without_sandbox_exec_nothing_is_prepared(tmp_path):
    (tmp_path / "w").mkdir()
    policy = SandboxPolicy(Mode.WORKSPACE_WRITE, str(tmp_path / "w"), str(tmp_path / "h"), str(tmp_path / "c"))
    with pytest.raises(SandboxUnavailable, match="is missing"):
        Seatbelt(str(tmp_path / "none")).prepare(policy)


def test_a_repository_made_inside_keeps_no_hooks(door):
    made = "mkdir -p .git/hooks .git/objects .git/refs; echo evil > .git/hooks/pre-commit; echo x > .git/HEAD"
    door.run("sh", "-c", made)
    assert not (door.work / ".git/hooks/pre-commit").exists()
    assert (door.work / ".git/HEAD").exists()


def test_each_run_has_a_port_and_the_proxy_gets_its_listeners(tmp_path, monkeypatch):
    door = Door(tmp_path, monkeypatch, network="proxied")
    proxy, handover = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    urls = []
    with proxy, handover:
        for run in ("1", "2"):
            url = door.confinement.proxy_url()
            urls.append(url)
            port = int(url.rsplit(":", 1)[1])
            outcome = door.run("true", handover=handover, run=run, policy_id="session")
            assert outcome.exit_code == 0
            assert f'(remote ip "localhost:{port}")' in json.loads(door.notes.read_text().splitlines()[-1])[1]
            for _ in range(2 if socket.has_ipv6 else 1):
                text, ancillary, _, _ = proxy.recvmsg(4096, socket.CMSG_SPACE(4))
                assert json.loads(text) == {"run": run, "policy": "session", "listener": "proxy", "port": port}
                with socket.socket(fileno=array.array("i", ancillary[0][2])[0]) as listener:
                    assert listener.getsockname()[:2] in (("127.0.0.1", port), ("::1", port))
    door.confinement.close()
    assert len(set(urls)) == 2


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost"])
def test_the_proxys_address_works_for_every_form_it_is_dialled_in(address):
    """P-PL-04: both families listen on one port, and `localhost` is the name clients are given."""
    listeners = open_listeners()
    try:
        assert listeners.url == f"http://localhost:{listeners.port}"
        if ":" in address and len(listeners.sockets) == 1:
            pytest.skip("no IPv6 here")
        with socket.create_connection((address, listeners.port), timeout=DEADLINE_S):
            ready, _, _ = select.select(listeners.sockets, [], [], DEADLINE_S)
            assert len(ready) == 1
            with socket.socket(fileno=os.dup(ready[0].fileno())) as listener:
                connection, _ = listener.accept()
                connection.close()
    finally:
        listeners.close()

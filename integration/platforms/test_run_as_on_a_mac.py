"""The whole of `doorward run` on the path a Mac takes, on Linux: what only Linux has is taken away first.

No kernel confines here (see `as_on_a_mac`). What is proved: nothing of the supervisor, the proxy, its event loop over
kqueue and the Seatbelt door's processes leans on Linux; refusals, records, streams, signals and statuses are the same.
"""

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from origin import HttpOrigin, QuietHandler

HERE = Path(__file__).parent
DEADLINE_S = 60
BODY = os.urandom(3 << 20)

STAND_IN = """#!{python}
import os, sys
end = sys.argv.index("--")
assert sys.argv[1] == "-p" and "(version 1)" in sys.argv[2]
os.execvp(sys.argv[end + 1], sys.argv[end + 1:])
"""


class Answers(QuietHandler):
    """Gives a large body, and takes one."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(BODY)

    def do_POST(self):
        size = len(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(str(size).encode())


@pytest.fixture(scope="module")
def origin():
    server = HttpOrigin(Answers)
    yield server.port
    server.close()


class Mac:
    """Runs doorward in a folder of its own."""

    def __init__(self, folder):
        self.work, self.temporary = folder / "work", folder / "user-temporary"
        for each in (self.work, self.temporary, folder / "home"):
            each.mkdir()
        program = folder / "sandbox-exec"
        program.write_text(STAND_IN.format(python=sys.executable))
        program.chmod(0o755)
        self.home = folder / "home" / ".doorward"
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(folder / "home"), "LANG": "C.UTF-8",
            "DOORWARD_HOME": str(self.home), "PER_USER_TEMPORARY": str(self.temporary),
        }  # fmt: skip
        self.argv = [sys.executable, str(HERE / "as_on_a_mac.py"), str(program)]

    def __call__(self, *args):
        return subprocess.run(
            [*self.argv, *args], cwd=self.work, env=self.env, capture_output=True, timeout=DEADLINE_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def lines(self):
        (path,) = self.home.glob("sessions/**/*.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def mac(tmp_path):
    if sys.platform not in ("linux", "darwin"):
        pytest.skip("for POSIX systems with sockets as Linux and macOS have them")
    return Mac(tmp_path)


def pinned(port):
    return ("-c", 'network.hosts."origin.test"=127.0.0.1', "--allow", f"origin.test:{port}")


def test_a_refusal_is_an_answer_a_record_and_a_line(mac):
    done = mac("run", "--", "sh", "-c", "curl -sS http://a.test/; exit 3")
    assert done.returncode == 3
    body = json.loads(done.stdout)
    assert (body["host"], body["reason"], body["hint"]) == ("a.test", "not_allowed", "--allow a.test")
    assert b"--allow a.test" in done.stderr
    types = [line["type"] for line in mac.lines()]
    assert types.count("refusal") == 1
    assert types.index("refusal") < types.index("observation")
    (record,) = [line["payload"] for line in mac.lines() if line["type"] == "exec"]
    assert record["enforcement"] == {
        "filesystem": "kernel", "network": "kernel", "process": "kernel", "syscalls": "none"
    }  # fmt: skip
    assert os.listdir(mac.temporary) == []


def test_much_goes_through_both_ways(mac, origin):
    (mac.work / "sent").write_bytes(BODY)
    url = f"http://origin.test:{origin}/"
    script = f"curl -sS -o got {url} && curl -sS --data-binary @sent {url} && curl -sS -p -o tunnelled {url}"
    done = mac("run", *pinned(origin), "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, str(len(BODY)).encode()), done.stderr
    assert (mac.work / "got").read_bytes() == BODY
    assert (mac.work / "tunnelled").read_bytes() == BODY


def test_many_connections_at_once(mac, origin):
    url = f"http://origin.test:{origin}/"
    each = f'for n in 1 2 3 4 5 6 7 8; do curl -sS -o got$n {url} & all="$all $!"; done'
    script = f"{each}; for p in $all; do wait $p; done"
    done = mac("run", *pinned(origin), "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert all((mac.work / f"got{number}").read_bytes() == BODY for number in range(1, 9))


def test_the_network_off_needs_no_port(mac):
    done = mac("run", "--network", "off", "--", "sh", "-c", "env | grep -i proxy; echo ok")
    assert done.stdout == b"ok\n"


def test_a_time_limit_and_a_signal(mac):
    assert mac("run", "--timeout", "0.3", "--", "sleep", "60").returncode == 124
    started = subprocess.Popen(
        [*mac.argv, "run", "--", "sh", "-c", "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"],
        cwd=mac.work, env=mac.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with started.stdout:
        assert started.stdout.readline() == b"up\n"
        started.send_signal(signal.SIGTERM)
        assert started.wait(DEADLINE_S) == 9


def test_with_a_terminal_the_command_has_one_of_its_own(mac):
    master, slave = pty.openpty()
    started = subprocess.Popen(
        [*mac.argv, "run", "--", "sh", "-c", "test -t 0 && test -t 1 && echo yes >/dev/tty"],
        cwd=mac.work, env=mac.env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    seen = b""
    try:
        while select.select([master], [], [], DEADLINE_S)[0]:
            try:
                piece = os.read(master, 4096)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        assert started.wait(DEADLINE_S) == 0, seen
    finally:
        os.close(master)
    assert b"yes" in seen


def test_the_library_starts_many_commands(mac):
    boot = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import shutil, tempfile, as_on_a_mac
as_on_a_mac.take_away()
from doorward.launcher import seatbelt
seatbelt.Seatbelt.__init__.__defaults__ = ({mac.argv[2]!r},)
"""
    script = f"""
{boot}
import doorward
from doorward import session
session._BOOT = {boot!r} + "\\n" + session._BOOT
with doorward.open_session(allow=["b.test"]) as session:
    ports = set()
    for number in range(3):
        command = ["sh", "-c", "echo $http_proxy; cat; curl -sS http://a.test/ -o /dev/null; exit 5"]
        seen = session.exec(command, input="told")
        assert seen.exit_code == 5, seen
        assert [refusal["host"] for refusal in seen.refusals] == ["a.test"], seen
        url, told = seen.output.split()
        assert told == "told", seen
        ports.add(url)
    assert len(ports) == 3, ports
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=mac.work, env=mac.env, capture_output=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert os.listdir(mac.temporary) == []


def test_the_port_of_a_run_is_closed_with_it(mac):
    done = mac("run", "--", "sh", "-c", "echo $http_proxy")
    port = int(done.stdout.decode().rsplit(":", 1)[1])
    for address in ("127.0.0.1", "::1"):
        with pytest.raises(OSError):
            socket.create_connection((address, port), timeout=5).close()


def test_the_proxy_alone(mac, origin):
    started = subprocess.Popen(
        [*mac.argv, "proxy", "--listen", "127.0.0.1:0", *pinned(origin)],
        cwd=mac.work, env=mac.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    with started.stderr:
        said = ""
        while "accepting on" not in said:
            said = started.stderr.readline()
            assert said, "it ended"
        port = int(said.rstrip().rsplit(":", 1)[1])
        url = f"http://origin.test:{origin}/"
        curl = ["curl", "-sS", "-x", f"http://127.0.0.1:{port}"]
        done = subprocess.run([*curl, url], capture_output=True, timeout=DEADLINE_S, check=True)
        assert done.stdout == BODY
        done = subprocess.run([*curl, "http://a.test/"], capture_output=True, timeout=DEADLINE_S, check=True)
        assert json.loads(done.stdout)["reason"] == "not_allowed"
        started.send_signal(signal.SIGTERM)
        assert started.wait(DEADLINE_S) == 0


def test_the_doctor_sees_that_the_stand_in_confines_nothing(mac):
    """Which is how one knows that its probe would see it on a Mac."""
    done = mac("doctor", "--json")
    document = json.loads(done.stdout)
    found = {check["name"]: check for check in document["checks"]}
    assert done.returncode == 125
    assert found["filesystem"]["ok"] is False and "wrote-outside" in found["filesystem"]["found"]
    assert found["process"]["ok"] is False and "host-processes" in found["process"]["found"]
    assert found["syscalls"]["ok"] is None
    assert found["configuration"]["ok"] is True
    assert document["level"] == "none"

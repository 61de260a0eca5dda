"""Real clients that know no proxy, against servers on the host's loopback: ssh, redis-cli, psql, Node, a browser."""

from __future__ import annotations

import contextlib
import getpass
import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ports import free_port

from doorward import git_over_ssh

# the one the command runs with: this checkout's or the installed one
PACKAGE = os.path.dirname(git_over_ssh.__file__)


def named(name: str, port: int) -> tuple[str, ...]:
    return ("--allow", f"{name}:{port}", "-c", f'network.hosts={{"{name}" = "127.0.0.1"}}')


@contextlib.contextmanager
def running(argv: list[str], said: bytes, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A server, once it has said that it serves."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more) as server:
        try:
            seen = b""
            while said not in seen:
                ready, _, _ = select.select([server.stdout], [], [], 30)
                data = os.read(server.stdout.fileno(), 4096) if ready else b""  # type: ignore[union-attr]
                assert data, seen
                seen += data
            yield server
        finally:
            server.terminate()


class Sshd(NamedTuple):
    """An ssh server of the test's own, and the client's words to log in."""

    port: int
    client: tuple[str, ...]
    user: str


@pytest.fixture
def sshd(program: Callable[[str], str], doorward: Any) -> Iterator[Sshd]:
    """Takes whoever runs the tests in by a key; with the network capture of none."""
    folder = Path(tempfile.mkdtemp(prefix="doorward-sshd-", dir="/var/tmp"))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where it separates its privileges
    try:
        port = free_port()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True, timeout=60)
        key = doorward.workspace / "id_test"
        shutil.copy(folder / "user", key)
        key.chmod(0o600)
        if doorward.user is not None:
            os.chown(key, doorward.user, doorward.user)
        (folder / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
            f"StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n"
        )
        client = (
            *("-F", "none", "-i", str(key), "-p", str(port), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"),
            *("-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes"),
        )
        with running([program("sshd"), "-D", "-e", "-f", str(folder / "sshd_config")], b"Server listening"):
            yield Sshd(port, client, getpass.getuser())
    finally:
        shutil.rmtree(folder)


def test_ssh(doorward: Any, sshd: Sshd, program: Callable[[str], str]) -> None:
    """P-EV-14, P-EV-17."""
    ssh = (program("ssh"), "-T", *sshd.client)
    words = (*ssh, f"{sshd.user}@git.test", "echo from the server")
    allowed = doorward.run(*named("git.test", sshd.port), "-a", "never", "--", *words)
    assert (allowed.status, allowed.out.splitlines()[-1:], allowed.refusals) == (0, ["from the server"], []), allowed
    refused = doorward.run("--allow", "git.test:22", "-a", "never", "--", *words)
    assert refused.status == 255
    assert [(each["host"], each["port"]) for each in refused.refusals] == [("git.test", sshd.port)]
    assert refused.refusals[0]["process"]["argv"][0].endswith("ssh")


def test_git_over_ssh_without_capture_goes_through_the_proxy(
    doorward: Any, sshd: Sshd, program: Callable[[str], str]
) -> None:
    """P-EV-14: the variable is read, and its helper speaks to a server whose banner comes first."""
    if os.path.realpath(doorward.python).startswith(("/tmp/", "/run/")):
        pytest.skip("the interpreter lies in a folder that the sandbox does not show")
    told = doorward.run(
        *named("git.test", sshd.port), "-c", "network.transparent=false", "--read-only", PACKAGE, "--",
        "sh", "-c", f'eval "$GIT_SSH_COMMAND -T {shlex.join(sshd.client)} '
        f'{sshd.user}@git.test echo through"',
    )  # fmt: skip
    assert told.out.splitlines()[-1:] == ["through"], told
    kept = doorward.run(
        "-c", "network.transparent=false", "--", "sh", "-c", 'echo "$GIT_SSH_COMMAND"', env={"GIT_SSH_COMMAND": "mine"}
    )
    assert kept.out == "mine\n"
    captured = doorward.run("--", "sh", "-c", 'echo "[$GIT_SSH_COMMAND]"')
    assert captured.out == "[]\n"


def test_redis(everywhere: Any, program: Callable[[str], str]) -> None:
    """P-EV-17: by a name and a rule, and by the host's loopback."""
    client, port = program("redis-cli"), free_port()
    words = [program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", "/var/tmp"]
    with running(words, b"eady to accept connections"):
        by_name = everywhere.run(*named("redis.test", port), "--", client, "-h", "redis.test", "-p", str(port), "PING")
        assert (by_name.status, by_name.out) == (0, "PONG\n"), by_name
        by_port = everywhere.run("--allow-loopback", str(port), "--", client, "-p", str(port), "PING")
        assert (by_port.status, by_port.out) == (0, "PONG\n"), by_port
        refused = everywhere.run("--allow", "redis.test:1", "--", client, "-h", "redis.test", "-p", str(port), "PING")
        assert [(each["host"], each["port"]) for each in refused.refusals] == [("redis.test", port)], refused
        assert refused.refusals[0]["process"]["executable"].endswith("redis-cli")


TABLE = "create table t (n int); insert into t select generate_series(1, 20000); select sum(n), count(*) from t"


def test_psql(everywhere: Any, postgres: int, program: Callable[[str], str]) -> None:
    """P-EV-17: a real server on the host's loopback, by a name and a rule, and by its port."""
    psql = (program("psql"), "-X", "-U", "me", "-d", "postgres", "-p", str(postgres), "-Atq")
    words = ("--", *psql, "-h", "db.test", "-c", f"begin; {TABLE}; select n from t; rollback")
    by_name = everywhere.run(*named("db.test", postgres), *words)
    assert by_name.status == 0 and by_name.refusals == [], by_name
    assert by_name.out.startswith("200010000|20000\n1\n2\n")
    (record,) = [r for r in everywhere.records(by_name.document["session"]) if r["protocol"] == "transparent_tcp"]
    assert record["content"] == "uninspected" and record["bytes_down"] > 20_000 * 10
    by_port = everywhere.run("--allow-loopback", str(postgres), "--", *psql, "-h", "localhost", "-c", "select 'hello'")
    assert (by_port.status, by_port.out) == (0, "hello\n"), by_port
    refused = everywhere.run("--allow", "db.test:1", *words)
    assert refused.status == 2, refused
    # libpq goes through all of a name's addresses
    assert {(each["host"], each["port"], each["rule"]) for each in refused.refusals} == {
        ("db.test", postgres, "db.test:1")
    }  # fmt: skip
    assert refused.refusals[0]["process"]["executable"].endswith("/psql")


def test_node_fetch_without_any_variable(doorward: Any, program: Callable[[str], str]) -> None:
    """P-EV-08."""
    node, port = program("node"), free_port()
    code = (
        "fetch(process.argv[1]).then(async r => console.log(r.status, (await r.text()).length > 0), "
        "e => console.log('no', e.cause.code))"
    )
    words = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    with running(words, b"Serving HTTP", cwd="/var/empty" if os.path.isdir("/var/empty") else "/usr/share"):
        bare = ("env", "-i", "PATH=/usr/bin:/bin", node, "-e", code)
        allowed = doorward.run(*named("a.test", port), "--", *bare, f"http://a.test:{port}/")
        assert allowed.out == "200 true\n", allowed
        refused = doorward.run(*named("a.test", port), "--", *bare, f"http://b.test:{port}/")
        assert refused.out == "no EAI_AGAIN\n" and {each["host"] for each in refused.refusals} == {"b.test"}, refused


def test_a_dev_server_inside_is_opened_in_a_browser_on_the_host(doorward: Any, browser: str) -> None:
    """By --publish auto."""
    page = "<title>x</title><script>document.title = 'made ' + 'by script'</script><body>served</body>"
    doorward.write("index.html", page)
    inside = free_port()
    server = f"cd {shlex.quote(str(doorward.workspace))} && exec python3 -u -m http.server --bind 127.0.0.1 {inside}"
    with doorward.start("run", "--publish", "auto", "--", "sh", "-c", server) as run:
        try:
            seen = b""
            while b" is reached at " not in seen:
                data = os.read(run.stderr.fileno(), 4096)
                assert data, seen
                seen += data
            address = seen.partition(b" is reached at ")[2].split()[0].decode()
            profile = tempfile.mkdtemp(prefix="doorward-browser-", dir="/var/tmp")
            try:
                shown = subprocess.run(
                    [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--dump-dom",
                     address],
                    capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                )  # fmt: skip
            finally:
                shutil.rmtree(profile, ignore_errors=True)
            assert b"made by script" in shown.stdout and b"served" in shown.stdout, shown
        finally:
            run.terminate()
            run.communicate(timeout=30)

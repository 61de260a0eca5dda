"""Programs that know no proxy, in a real sandbox: as whoever runs the tests and as an ordinary user, in both ways of
making the sandbox's network namespace."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ports import free_port

DEADLINE = 60
ROOT = Path(__file__).resolve().parents[2]
ORDINARY = pwd.getpwnam("nobody").pw_uid  # ssh wants its user to have a name

MUST_RUN = frozenset({"bwrap", "curl", "gcc", "ip", "node", "psql", "redis-cli", "redis-server", "ssh", "sshd"})
"""With CI=true these may not be missing."""

_BUBBLEWRAP_FIRST = (
    "from doorward.launcher import linux, seed\n"
    "linux.allowed = seed.allowed = lambda namespaces: 0\n"  # as where only bubblewrap may make user namespaces
    "import sys\nfrom doorward.__main__ import main\nsys.exit(main(sys.argv[1:]))\n"
)


def need(program: str) -> str:
    """The path of a program; skips the test where it is not installed, but fails in CI for those that must run."""
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        if os.environ.get("CI") == "true" and program in MUST_RUN:
            pytest.fail(f"CI must have {program}")
        pytest.skip(f"{program} is not installed")
    return found


@pytest.fixture(scope="session", autouse=True)
def _machine() -> None:
    if sys.platform != "linux":
        pytest.skip("not Linux")
    need("bwrap")


@pytest.fixture(scope="session")
def program() -> Callable[[str], str]:
    """`program("ssh")` is its path, or the test is skipped."""
    return need


@pytest.fixture(scope="session")
def postgres() -> Iterator[int]:
    """The port of a PostgreSQL server on the host's loopback, an ordinary user's; `me` may do what it likes in it."""
    folders = (*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin"))
    places = [os.environ["PATH"], *map(str, sorted(folders, reverse=True))]
    server, initdb = (shutil.which(name, path=os.pathsep.join(places)) for name in ("postgres", "initdb"))
    if server is None or initdb is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must have PostgreSQL's server")
        pytest.skip("PostgreSQL's server is not installed")
    user: dict[str, Any] = {}
    folder = Path(tempfile.mkdtemp(prefix="doorward-postgres-", dir="/var/tmp"))
    if os.geteuid() == 0:  # which it refuses to run as
        user = {"user": ORDINARY, "group": ORDINARY, "extra_groups": []}
        os.chown(folder, ORDINARY, ORDINARY)
    port = free_port()
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
    try:
        subprocess.run(
            [initdb, "-D", folder / "data", "-U", "me", "-A", "trust", "-N", "-E", "UTF8", "--no-instructions"],
            env=env, cwd=folder, check=True, capture_output=True, timeout=DEADLINE, **user,
        )  # fmt: skip
        words = [
            server, "-D", folder / "data", "-p", str(port), "-k", folder, "-c", "listen_addresses=127.0.0.1,::1",
            "-c", "fsync=off", "-c", "log_destination=stderr",
        ]  # fmt: skip
        with subprocess.Popen(words, env=env, cwd=folder, stderr=subprocess.PIPE, **user) as running:
            try:
                said = b""
                while b"ready to accept connections" not in said:
                    line = running.stderr.readline()  # type: ignore[union-attr]
                    assert line, said
                    said += line
                yield port
            finally:
                running.send_signal(signal.SIGINT)  # ends at once, whoever is connected
                running.communicate(timeout=DEADLINE)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def browser() -> str:
    """The path of a Chromium."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None and os.environ.get("CI") == "true":
        pytest.fail("CI must have Chromium")
    if found is None:
        pytest.skip("no Chromium is installed")
    return found


class Seen(NamedTuple):
    """What came of one run."""

    status: int
    out: str
    err: str
    document: dict[str, Any]

    @property
    def refusals(self) -> list[dict[str, Any]]:
        """What was refused."""
        found: list[dict[str, Any]] = self.document["refusals"]
        return found


class Doorward:
    """Runs `doorward` as one user, in one of the two ways, with a home and a workspace of its own outside /tmp."""

    def __init__(self, folder: Path, *, ordinary: bool, bubblewrap_first: bool) -> None:
        self.folder = folder
        self.workspace = folder / "work"
        self.home = folder / "home"
        self.user = ORDINARY if ordinary else None
        self.bubblewrap_first = bubblewrap_first
        for path in (self.workspace, self.home):
            path.mkdir(mode=0o700)
            if ordinary:
                os.chown(path, ORDINARY, ORDINARY)
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "DOORWARD_HOME": str(self.home / "doorward"),
        }
        self.python = sys.executable
        if ordinary:
            site = [path for path in sys.path if path.endswith("site-packages")]
            self.env["PYTHONPATH"] = os.pathsep.join([*site, str(ROOT)])
            self.python = self._interpreter()

    def _interpreter(self) -> str:
        for python in (sys.executable, "/usr/bin/python3"):
            if self._run([python, "-P", "-c", "import doorward.proxy.server"], {}).returncode == 0:
                return python
        pytest.skip("no interpreter with these libraries that an ordinary user may run (its folder is closed)")

    def _as_user(self) -> dict[str, Any]:
        return {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}

    def _run(self, argv: list[str], env: dict[str, str], input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            # started through env(1), so that the right to look the path up is the new user's
            ["/usr/bin/env", *argv], cwd=self.workspace, env={**self.env, **env}, input=input, capture_output=True,
            timeout=DEADLINE, check=False, **self._as_user(),
        )  # fmt: skip

    def argv(self, *args: str) -> list[str]:
        """The command line of one doorward."""
        start = ["-c", _BUBBLEWRAP_FIRST] if self.bubblewrap_first else ["-m", "doorward"]
        return ["/usr/bin/env", self.python, "-P", *start, *args]

    def run(self, *args: str, env: dict[str, str] | None = None) -> Seen:
        """`doorward run --json` to its end."""
        done = self._run(self.argv("run", "--json", *args)[1:], env or {})
        err = done.stderr.decode("utf-8", "backslashreplace")
        assert done.stdout, err
        document = json.loads(done.stdout)
        return Seen(done.returncode, document["output"], err, document)

    def start(self, *args: str, **more: Any) -> subprocess.Popen[bytes]:
        """Start a doorward and leave it running."""
        return subprocess.Popen(
            self.argv(*args), cwd=self.workspace, env=self.env,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
            **self._as_user(),
        )  # fmt: skip

    def records(self, session: str) -> list[dict[str, Any]]:
        """The payloads of the session's `network` lines, in order."""
        done = self._run(self.argv("show", "--json", session)[1:], {})
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [line["payload"] for line in lines if line["type"] == "network"]

    def write(self, name: str, text: str) -> Path:
        """A file in the workspace."""
        path = self.workspace / name
        path.write_text(text)
        path.chmod(0o755)
        return path


def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="doorward-transparent-", dir="/var/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


_folder_of_a_test = pytest.fixture(_folder, name="folder")

KINDS = [(False, False), (False, True)] + ([(True, False), (True, True)] if os.geteuid() == 0 else [])


def _named(kind: tuple[bool, bool]) -> str:
    return f"{'ordinary' if kind[0] else 'caller'}-{'bubblewrap-first' if kind[1] else 'ours-first'}"


@pytest.fixture(params=KINDS, ids=_named)
def everywhere(request: pytest.FixtureRequest, folder: Path) -> Doorward:
    """A doorward for each user and way."""
    ordinary, bubblewrap_first = request.param
    return Doorward(folder, ordinary=ordinary, bubblewrap_first=bubblewrap_first)


@pytest.fixture
def doorward(folder: Path) -> Doorward:
    """An ordinary user's, where the tests can become one; in the usual way."""
    return Doorward(folder, ordinary=os.geteuid() == 0, bubblewrap_first=False)


@pytest.fixture
def as_caller(folder: Path) -> Doorward:
    """A doorward of whoever runs the tests."""
    return Doorward(folder, ordinary=False, bubblewrap_first=False)


class Speaker:
    """A server on the host's loopback, IPv4 and, with `both`, IPv6 at the same port. Says `greeting`, then echoes."""

    def __init__(self, greeting: bytes = b"", *, both: bool = False) -> None:
        self.greeting = greeting
        self.touched = 0
        self.heard: list[bytes] = []
        self._sockets = [socket.create_server(("127.0.0.1", 0))]
        self.port: int = self._sockets[0].getsockname()[1]
        if both:
            self._sockets.append(socket.create_server(("::1", self.port), family=socket.AF_INET6))
        for each in self._sockets:
            threading.Thread(target=self._accept, args=(each,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.touched += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(DEADLINE)
            try:
                if self.greeting:
                    connection.sendall(self.greeting)
                while data := connection.recv(65536):
                    self.heard.append(data)
                    connection.sendall(data)
            except OSError:
                pass

    def reach(self, name: str = "a.test") -> tuple[str, ...]:
        """Options under which NAME is this server."""
        return ("--allow", f"{name}:{self.port}", "-c", f'network.hosts={{"{name}" = "127.0.0.1"}}')

    def close(self) -> None:
        for each in self._sockets:
            each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def speaker() -> Iterator[Callable[..., Speaker]]:
    """`speaker(b"hello")` is a server that says so first."""
    made: list[Speaker] = []

    def make(greeting: bytes = b"", **options: Any) -> Speaker:
        made.append(Speaker(greeting, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()

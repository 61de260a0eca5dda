"""Real network clients through `doorward run`, and origins on the host's loopback for them to reach by name."""

from __future__ import annotations

import fcntl
import functools
import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import doorward_command
import needed
import pytest
from origin import HttpOrigin, QuietHandler

DEADLINE = 120
"""Seconds any one doorward may take; a hang fails the test."""

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "clients.md"


class Ran(NamedTuple):
    """One `doorward run --json`: its exit status, its observation, its own lines."""

    status: int
    document: dict[str, Any]
    err: str

    @property
    def output(self) -> str:
        """What the client printed, both streams."""
        return str(self.document["output"])

    @property
    def reasons(self) -> list[str]:
        """Why something was refused, one a refusal."""
        return [str(refusal["reason"]) for refusal in self.document["refusals"]]

    def says(self, *phrases: str) -> None:
        """Each phrase is in the client's output, and in docs/clients.md as what the person sees."""
        documented = DOCUMENT.read_text("utf-8")
        for phrase in phrases:
            assert phrase in self.output, f"{phrase!r} is not in:\n{self.output}"
            assert phrase in documented, f"docs/clients.md does not tell: {phrase!r}"

    def hints(self, phrase: str, port: int = 8080) -> None:
        """It is the only hint, stands in the document alone, and docs/clients.md tells it, of port 8080."""
        (hint,) = self.document["hints"]
        message = str(hint["message"])
        assert message.startswith(phrase) and message in self.document["notes"]
        shown = message.replace(str(port), "8080")
        assert f"doorward: {shown}" in DOCUMENT.read_text("utf-8"), f"docs/clients.md does not tell: {shown!r}"
        assert message not in self.err


class Doorward:
    """Runs `doorward run --json`; the user's home is in the workspace, since clients keep their caches there."""

    def __init__(self, folder: Path) -> None:
        self._doorward = doorward_command.Doorward(folder)
        self.workspace = self._doorward.workspace
        self.user = self.workspace / "user"
        self.user.mkdir()
        self.env = self._doorward.env
        self.env["HOME"] = str(self.user)

    def __call__(self, *args: str, env: Mapping[str, str] | None = None) -> Ran:
        """`doorward run --json ARGS` to its end."""
        done = self._doorward("run", "--json", *args, env=env, deadline=DEADLINE)
        return Ran(done.status, done.document, done.err)

    def command(self, *args: str) -> str:
        """What another command of doorward prints."""
        done = self._doorward(*args, deadline=DEADLINE)
        assert done.status == 0, done.err
        return done.text


@pytest.fixture(scope="session", autouse=True)
def _machine() -> None:
    if sys.platform != "linux":
        pytest.skip("not Linux")
    need("bwrap")


MUST_RUN = frozenset({"bwrap", "curl", "git", "openssl"})
"""With CI=true these may not be missing."""

need = functools.partial(needed.need, must=MUST_RUN)


@pytest.fixture(scope="session")
def client() -> Callable[[str], str]:
    """`client("wget")` is its path, or the test is skipped."""
    return need


@pytest.fixture
def doorward(tmp_path: Path) -> Doorward:
    """A doorward with nothing in its home yet."""
    return Doorward(tmp_path)


class _Handler(QuietHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    server: Origin

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.server.paths.append(path)
        if path.startswith("/git/") and self.server.repositories is not None:
            self._git()
            return
        kind, body = self.server.pages.get(path, (None, b"no such page\n"))
        self.answer(body, kind or "text/plain", 200 if kind else 404)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.server.paths.append(self.path)
        self._git()

    def _git(self) -> None:
        """git's smart protocol by its own CGI program."""
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("Content-Length", 0))
        done = subprocess.run(
            ["git", "http-backend"],
            input=self.rfile.read(length),
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.server.repositories),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path.removeprefix("/git"),
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(length),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
            },
            capture_output=True,
            timeout=30,
            check=False,
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode("ascii").split("\r\n") if line)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

class Origin(HttpOrigin):
    """A server on 127.0.0.1 that serves `pages` (path to type and body), git below /git/, and notes every path."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.scheme = "https" if context else "http"
        self.pages: dict[str, tuple[str, bytes]] = {"/": ("text/plain", b"hello\n")}
        self.paths: list[str] = []
        self.repositories: Path | None = None
        super().__init__(_Handler, context)

    def reach(self, name: str = "a.test") -> tuple[str, ...]:
        """Options under which NAME is this origin."""
        hosts = f'network.hosts={{"{name}" = "127.0.0.1"}}'
        return ("--allow", f"{name}:{self.port}", "-c", hosts)

    def url(self, name: str = "a.test", path: str = "/") -> str:
        """The URL a command inside would use."""
        return f"{self.scheme}://{name}:{self.port}{path}"


@pytest.fixture
def web() -> Iterator[Origin]:
    """An origin without TLS that answers `hello`."""
    origin = Origin()
    yield origin
    origin.close()


class Authority(NamedTuple):
    """A certificate authority of the test's own, and a server's key and chain for a.test and b.test."""

    certificate: Path
    server: Path

    def trusted(self) -> dict[str, str]:
        """Variables by which every client inside trusts it: nothing but names of files."""
        names = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS")
        return {name: str(self.certificate) for name in (*names, "PIP_CERT", "NPM_CONFIG_CAFILE")}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Made by openssl, in the workspace, so that it can be read inside."""
    openssl = need("openssl")
    folder = tmp_path / "work" / "tls"
    folder.mkdir(parents=True)

    def made(*words: str) -> None:
        subprocess.run([openssl, *words], cwd=folder, check=True, capture_output=True, timeout=60)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    made("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test authority",
         "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")  # fmt: skip
    made("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=a.test")
    (folder / "names").write_text("subjectAltName=DNS:a.test,DNS:b.test\n")
    made("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2", "-extfile", "names",
         "-out", "server.crt")  # fmt: skip
    server = folder / "server.pem"
    server.write_bytes((folder / "server.key").read_bytes() + (folder / "server.crt").read_bytes())
    return Authority(folder / "ca.pem", server)


@pytest.fixture
def tls(authority: Authority) -> Iterator[Origin]:
    """An origin with TLS that answers `hello`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.server)
    origin = Origin(context)
    yield origin
    origin.close()


class Python(NamedTuple):
    """A virtual environment, and the options that show it inside."""

    folder: Path

    @property
    def path(self) -> str:
        """Its interpreter."""
        return str(self.folder / "bin" / "python")

    @property
    def shown(self) -> tuple[str, ...]:
        """A folder under the host's /tmp is hidden by the private one; this lets it be seen."""
        return ("--add-dir", str(self.folder))

    def install(self, *packages: str) -> None:
        """Into it, from the index pip is configured for. Skips the test where that does not answer."""
        done = subprocess.run(
            [self.path, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1", *packages],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            pytest.skip(f"pip could not install {', '.join(packages)}: {done.stderr.decode()[-300:]}")


def _environment(factory: pytest.TempPathFactory, name: str, *packages: str) -> Python:
    """Made by the first worker that asks; the others wait for it."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    made = Python(shared / name)
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made.folder / "complete").exists():
            subprocess.run(
                [getattr(sys, "_base_executable", sys.executable), "-m", "venv", "--clear", str(made.folder)],
                check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE,
            )  # fmt: skip
            if packages:
                made.install(*packages)
            (made.folder / "complete").touch()
    return made


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Python:
    """Nothing in it but pip."""
    return _environment(tmp_path_factory, "python")


@pytest.fixture(scope="session")
def python_clients(tmp_path_factory: pytest.TempPathFactory) -> Python:
    """With the HTTP libraries of others, and uv."""
    return _environment(tmp_path_factory, "python-clients", "requests", "httpx", "aiohttp", "uv")

"""Real network clients through `doorward run`, and origins on the host's loopback for them to reach by name."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

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
    """Runs `doorward` with a home, a user's home and a workspace of its own."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "work"
        self.user = folder / "work" / "user"
        self.user.mkdir(parents=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user),  # in the workspace: clients keep their caches there
            "LANG": "C.UTF-8",
            "DOORWARD_HOME": str(folder / "home"),
        }

    def __call__(self, *args: str, env: Mapping[str, str] | None = None) -> Ran:
        """`doorward run --json ARGS` to its end."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "doorward", "run", "--json", *args],
            cwd=self.workspace,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE,
            check=False,
        )
        err = done.stderr.decode("utf-8", "backslashreplace")
        assert done.stdout, err
        return Ran(done.returncode, json.loads(done.stdout), err)

    def command(self, *args: str) -> str:
        """What another command of doorward prints."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "doorward", *args], cwd=self.workspace, env=self.env,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE, check=True, text=True,
        ).stdout  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def _machine() -> None:
    if sys.platform != "linux":
        pytest.skip("not Linux")
    if shutil.which("bwrap") is None:
        need("bwrap")


MUST_RUN = frozenset({"bwrap", "curl", "git", "openssl"})
"""With CI=true these may not be missing."""


def need(program: str) -> str:
    """The path of a client; skips the test where it is not installed, but fails in CI for those that must run."""
    found = shutil.which(program)
    if found is None:
        if os.environ.get("CI") == "true" and program in MUST_RUN:
            pytest.fail(f"CI must have {program}")
        pytest.skip(f"{program} is not installed")
    return found


@pytest.fixture(scope="session")
def client() -> Callable[[str], str]:
    """`client("wget")` is its path, or the test is skipped."""
    return need


@pytest.fixture
def doorward(tmp_path: Path) -> Doorward:
    """A doorward with nothing in its home yet."""
    return Doorward(tmp_path)


class _Handler(http.server.BaseHTTPRequestHandler):
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
        self.send_response(200 if kind else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

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

    def log_message(self, format: str, *args: object) -> None:
        """Silent: pytest's output is for the tests."""


class Origin(http.server.ThreadingHTTPServer):
    """A server on 127.0.0.1 that serves `pages` (path to type and body), git below /git/, and notes every path."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scheme = "https" if context else "http"
        if context is not None:
            # the handshake is the handler's, so that one that fails does not stop the others
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.port = int(self.server_address[1])
        self.pages: dict[str, tuple[str, bytes]] = {"/": ("text/plain", b"hello\n")}
        self.paths: list[str] = []
        self.repositories: Path | None = None
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def reach(self, name: str = "a.test") -> tuple[str, ...]:
        """Options under which NAME is this origin."""
        hosts = f'network.hosts={{"{name}" = "127.0.0.1"}}'
        return ("--allow", f"{name}:{self.port}", "-c", hosts)

    def url(self, name: str = "a.test", path: str = "/") -> str:
        """The URL a command inside would use."""
        return f"{self.scheme}://{name}:{self.port}{path}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is no news."""

    def close(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()
        self._thread.join(5)


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


def _environment(folder: Path) -> Python:
    subprocess.run(
        [getattr(sys, "_base_executable", sys.executable), "-m", "venv", str(folder)],
        check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE,
    )  # fmt: skip
    return Python(folder)


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Python:
    """Nothing in it but pip."""
    return _environment(tmp_path_factory.mktemp("python") / "venv")


@pytest.fixture(scope="session")
def python_clients(tmp_path_factory: pytest.TempPathFactory) -> Python:
    """With the HTTP libraries of others, and uv."""
    made = _environment(tmp_path_factory.mktemp("clients") / "venv")
    made.install("requests", "httpx", "aiohttp", "uv")
    return made

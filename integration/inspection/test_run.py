"""`doorward run` with rules that need inspection: real clients, with no option of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

MUST_RUN = {"curl", "git", "openssl"}


#: One that is seen inside, where the tests' own may lie in /tmp.
PYTHON_INSIDE = os.path.realpath(sys.executable) if sys.prefix.startswith("/tmp/") else sys.executable


def need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        if os.environ.get("CI") == "true" and program in MUST_RUN:
            pytest.fail(f"CI must have {program}")
        pytest.skip(f"{program} is not installed")
    return found


@pytest.fixture(autouse=True)
def _machine() -> None:
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        pytest.skip("needs Linux with bubblewrap")


def read_only(port: int, host: str = "api.test") -> tuple[str, str]:
    return "--allow", f'{{host = "{host}:{port}", methods = ["GET", "HEAD"]}}'


def url(port: int, path: str = "/x", host: str = "api.test") -> str:
    return f"https://{host}:{port}{path}"


PYTHON = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).status)"
# Node's own TLS; which of its clients go by proxy variables is for docs/clients.md
NODE = """
const [host, port] = process.argv[1].split(":");
const sock = require("net").connect(3128, "127.0.0.1", () =>
    sock.write(`CONNECT ${host}:${port} HTTP/1.1\\r\\nHost: ${host}:${port}\\r\\n\\r\\n`));
sock.once("data", () => {
    const tls = require("tls").connect({socket: sock, servername: host}, () =>
        tls.write(`GET /x HTTP/1.1\\r\\nHost: ${host}:${port}\\r\\nConnection: close\\r\\n\\r\\n`));
    tls.on("error", error => { console.log(error); process.exit(1); });
    tls.on("data", data => process.stdout.write(data));
});
"""
REQUESTS = "import requests, sys; print(requests.get(sys.argv[1]).status_code)"
HTTPX = "import httpx, sys; print(httpx.get(sys.argv[1]).status_code)"


FETCH = "fetch(process.argv[1]).then(r => r.text()).catch(error => { console.log(error); process.exit(1); })"

CLIENTS = {
    "curl": "curl -sS {url}",
    "curl --http1.1": "curl -sS --http1.1 {url}",
    # with SOCKS5, and captured: without a proxy, by an address that stands for the name
    "curl --socks5-hostname": "curl -sS --socks5-hostname 127.0.0.1:3128 {url}",
    "curl --noproxy": "curl -sS --noproxy '*' {url}",
    "wget": "wget -qO- {url}",
    "python3": f"{PYTHON_INSIDE} -c '{PYTHON}' {{url}}",
    "node": f"node -e '{NODE}' {{place}}",
    # older ones know no proxy variables, so they are captured too
    "node fetch": f"node -e '{FETCH}' {{url}}",
    "openssl": "echo | openssl s_client -verify_return_error -proxy 127.0.0.1:3128 -connect {place} "
    "-servername api.test 2>&1 | grep 'Verification: OK'",
}


def test_clients_read_through_inspection(run: Any, start: Any) -> None:
    """EV: the variables each client reads, and the system's bundle, name whom to trust; whichever way they come in:
    CONNECT, SOCKS5, captured. None of them writes."""
    server = start.server("api.test")
    there = [name for name in CLIENTS if (name.split()[0] in MUST_RUN and need(name.split()[0])) or
             shutil.which(name.split()[0])]  # fmt: skip
    script = ""
    for number, name in enumerate(there):
        words = CLIENTS[name].replace("{url}", url(server.port, f"/{number}"))
        words = words.replace("{place}", f"api.test:{server.port}").replace("GET /x", f"GET /{number}")
        script += f"({words}) > {number} 2>&1 && echo {number} read\n"
    refused = "".join(
        f"curl -sS -o /dev/null -w '%{{http_code}} ' {way} -d a=b {url(server.port)}\n"
        for way in ("", "--socks5-hostname 127.0.0.1:3128", "--noproxy '*'")
    )
    ran = run(*read_only(server.port), "--timeout", "60", "--", "sh", "-c", script + refused)
    for number, name in enumerate(there):
        assert f"{number} read\n" in ran.output, (name, (run.workspace / str(number)).read_text(), ran.err)
    seen = {each[1] for each in server.seen}
    assert seen == {f"/{number}" for number, name in enumerate(there) if name != "openssl"}
    assert ran.output.endswith("403 403 403 ") and ran.reasons == ["method_not_allowed"] * 3
    protocols = [refusal["protocol"] for refusal in ran.document["refusals"]]
    assert protocols == ["https_connect", "socks5_tcp", "transparent_tcp"]
    assert {each[0] for each in server.seen} == {"GET"}


def test_python_libraries_and_npm_read_and_do_not_write(run: Any, start: Any) -> None:
    """requests and httpx, which bring their own list of authorities; npm by `@npm-install`, which does not publish."""
    need("npm")
    libraries = run.workspace / "libraries"
    words = [PYTHON_INSIDE, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", str(libraries)]
    subprocess.run([*words, "requests", "httpx"], check=True, timeout=120, stdin=subprocess.DEVNULL)

    def answer(handler: Any) -> None:
        body = json.dumps({"name": "greeting", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {}}}).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    server = start.server("api.test", answer=answer)
    there = url(server.port, "/greeting")
    (run.workspace / "package").mkdir()
    (run.workspace / "package" / "package.json").write_text('{"name": "greeting", "version": "1.0.1"}')
    script = (
        f"export PYTHONPATH={libraries}; {PYTHON_INSIDE} -c '{REQUESTS}' {there}; "
        f"{PYTHON_INSIDE} -c '{HTTPX}' {there}; "
        "npm view greeting dist-tags.latest; cd package && npm publish --loglevel error"
    )
    registry = f"https://api.test:{server.port}/"
    (run.workspace / "package" / ".npmrc").write_text(f"//api.test:{server.port}/:_authToken={'x' * 20}\n")
    env = {"npm_config_registry": registry, "npm_config_update_notifier": "false", "npm_config_fetch_retries": "0"}
    ran = run("-a", "never", "--timeout", "60", "--allow", "@npm-install", "--", "sh", "-c", script, env=env)
    assert ran.output.split()[:2] == ["200", "200"], ran.output + ran.err
    assert "1.0.0" in ran.output
    assert ran.status != 0 and "method_not_allowed" in ran.reasons, ran.output + ran.err
    assert {each[0] for each in server.seen} == {"GET"}


def test_a_refusal_inside_tls_is_an_observation(run: Any, start: Any) -> None:
    need("curl")
    server = start.server("api.test")
    words = ("curl", "-sS", "-i", "-d", "four", url(server.port))
    ran = run(*read_only(server.port), "--", *words)
    assert "x-proxy-error: blocked-by-method-policy" in ran.output
    assert ran.reasons == ["method_not_allowed"] and ran.document["success"] is True
    assert server.seen == []


def test_a_limited_network_reads_everywhere(run: Any, start: Any) -> None:
    """`mode = "limited"`: GET, HEAD and OPTIONS, of every host that is allowed."""
    need("curl")
    server = start.server("api.test")
    script = f"curl -sS -o /dev/null -w '%{{http_code}} ' {url(server.port)}; curl -sS -X DELETE {url(server.port)}"
    ran = run("--network", "limited", "--allow", f"api.test:{server.port}", "--", "sh", "-c", script)
    assert ran.output.startswith("200 ") and ran.reasons == ["method_not_allowed"]
    assert ran.document["refusals"][0]["source"] == "mode_guard"
    assert [each[0] for each in server.seen] == ["GET"]


def test_the_key_cannot_be_read_inside(run: Any, start: Any) -> None:
    server = start.server("api.test")
    script = "cat $DOORWARD_HOME/inspect/private/ca.key; ls -A $DOORWARD_HOME/inspect/private"
    ran = run(*read_only(server.port), "--", "sh", "-c", script)
    assert "PRIVATE" not in ran.output
    # nor in a run that inspects nothing
    ran = run("--", "sh", "-c", script)
    assert "PRIVATE" not in ran.output


def test_runs_without_inspection_are_as_before(run: Any) -> None:
    """No worker, no variable of it, the system's own bundle."""
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")
    ran = run("--", "sh", "-c", f"env | grep -c CURL_CA_BUNDLE; cat {bundle} | wc -c")
    size = bundle.stat().st_size if bundle.exists() else 0
    assert ran.output.split()[0] == "0" and ran.output.split()[-1] == str(size)


def test_every_variable_names_the_bundle(run: Any, start: Any) -> None:
    """EV: in each variable that a client reads, and nothing that would lead past it."""
    from doorward.trust_environment import BUNDLE_VARIABLES

    server = start.server("api.test")
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    outer = {"SSL_CERT_DIR": "/nowhere", "NODE_TLS_REJECT_UNAUTHORIZED": "0", "PIP_CERT": "/nowhere"}
    ran = run(*read_only(server.port), "--", PYTHON_INSIDE, "-c", script, env=outer)
    inside = json.loads(ran.output)
    assert len({inside[name] for name in BUNDLE_VARIABLES}) == 1
    assert "SSL_CERT_DIR" not in inside and "NODE_TLS_REJECT_UNAUTHORIZED" not in inside
    assert "-Djavax.net.ssl.trustStore=" in inside["JAVA_TOOL_OPTIONS"]


def test_pip_installs_from_an_index_and_publishes_nothing(run: Any, start: Any, tmp_path: Path) -> None:
    import base64
    import hashlib
    import zipfile

    wheel = tmp_path / "greeting-1.0-py3-none-any.whl"
    files = {
        "greeting.py": b"print('hello from the index')\n",
        "greeting-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
        "greeting-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for name, data in files.items()
    ]
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr("greeting-1.0.dist-info/RECORD", "\n".join([*rows, "greeting-1.0.dist-info/RECORD,,"]) + "\n")
    page = f'<!DOCTYPE html><a href="/files/{wheel.name}">{wheel.name}</a>'.encode()

    def answer(handler: Any) -> None:
        body = wheel.read_bytes() if handler.path.startswith("/files/") else page
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html" if body is page else "application/octet-stream")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    server = start.server("api.test", answer=answer)
    script = (
        f"{PYTHON_INSIDE} -m pip install -q --disable-pip-version-check --no-input --target lib "
        f"--index-url {url(server.port, '/simple/')} greeting && PYTHONPATH=lib {PYTHON_INSIDE} -m greeting"
    )
    ran = run(*read_only(server.port), "--", "sh", "-c", script, env={"PIP_CONFIG_FILE": os.devnull})
    assert "hello from the index" in ran.output, ran.output + ran.err
    assert all(each[0] == "GET" for each in server.seen)


@pytest.fixture
def git(start: Any, tmp_path: Path) -> tuple[Any, Path]:
    """A real git server over HTTPS (git-http-backend), with one repository that anybody may push to."""
    need("git")
    root = tmp_path / "repositories"
    bare = root / "team" / "project.git"
    seed = tmp_path / "seed"
    settings = ("-c", "user.name=t", "-c", "user.email=t@t.test", "-c", "init.defaultBranch=main")
    for words in (
        ["git", *settings, "init", "-q", str(seed)],
        ["git", "-C", str(seed), *settings, "commit", "-q", "--allow-empty", "-m", "first"],
        ["git", "clone", "-q", "--bare", str(seed), str(bare)],
        ["git", "-C", str(bare), "config", "http.receivepack", "true"],
    ):
        subprocess.run(words, check=True, timeout=60, stdin=subprocess.DEVNULL)

    def answer(handler: Any) -> None:
        path, _, query = handler.path.partition("?")
        done = subprocess.run(
            ["git", "http-backend"],
            input=handler.body,
            capture_output=True,
            timeout=60,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": handler.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(handler.body)),
                "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
                "HTTP_GIT_PROTOCOL": handler.headers.get("Git-Protocol", ""),
                "REMOTE_USER": "anybody",
                "REMOTE_ADDR": "127.0.0.1",
            },
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().splitlines())
        handler.send_response(int(lines.pop("Status", "200 OK").split()[0]))
        for name, value in lines.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return start.server("git.test", answer=answer), bare


def test_git_clones_and_does_not_push(run: Any, git: tuple[Any, Path]) -> None:
    """`@git-fetch`: what is fetched from cannot be written to, over the same host and path."""
    server, bare = git
    there = url(server.port, "/team/project.git", "git.test")
    preset = f"@git-fetch:git.test:{server.port}/team/project"
    before = subprocess.check_output(["git", "-C", str(bare), "rev-parse", "main"])
    script = (
        f"git clone -q {there} copy && cd copy && git fetch -q && echo fetched && "
        "git -c user.name=t -c user.email=t@t.test commit -q --allow-empty -m second && git push origin main"
    )
    ran = run("--allow", preset, "--", "sh", "-c", script)
    assert "fetched" in ran.output, ran.output + ran.err
    assert ran.status != 0 and ran.reasons == ["path_not_allowed"]
    assert subprocess.check_output(["git", "-C", str(bare), "rev-parse", "main"]) == before
    # and another repository of the same host is not fetched from either
    ran = run("--allow", preset, "--", "git", "ls-remote", there.replace("project", "other"))
    assert ran.status != 0 and ran.reasons[0] == "path_not_allowed"
    # the same push passes where the host is allowed whole, so it was the rule that refused it
    ran = run("--allow", f"git.test:{server.port}", "--inspect", "--", "sh", "-c", "cd copy && git push -q origin main")
    assert ran.status == 0, ran.output + ran.err
    assert subprocess.check_output(["git", "-C", str(bare), "rev-parse", "main"]) != before


PINS = """
import socket, ssl, sys
there, name = sys.argv[1], sys.argv[1].partition(":")[0]
sock = socket.create_connection(("127.0.0.1", 3128))
sock.sendall(f"CONNECT {there} HTTP/1.1\\r\\nHost: {there}\\r\\n\\r\\n".encode())
sock.recv(1000)
own = ssl.create_default_context(cafile="own.pem").wrap_socket(sock, server_hostname=name)
own.sendall(f"GET / HTTP/1.1\\r\\nHost: {there}\\r\\nConnection: close\\r\\n\\r\\n".encode())
print(own.recv(12).decode())
"""
"""A client with a list of authorities of its own, in which ours is not."""


@pytest.mark.parametrize("how", ["a rule with methods", "--inspect", "a limited network"])
def test_a_client_that_does_not_trust_us_is_told_what_helps(run: Any, start: Any, authority: Any, how: str) -> None:
    """Pinned certificates: doing what the hint says works."""
    server = start.server("api.test")
    shutil.copy(authority.path, run.workspace / "own.pem")
    place = f"api.test:{server.port}"
    options = {"--inspect": ("--inspect", "--allow", place), "a limited network": ("--network", "limited")}
    chosen = options.get(how, read_only(server.port))
    if how == "a limited network":
        chosen = (*chosen, "--allow", place)
    words = ("--", PYTHON_INSIDE, "-c", PINS, place)
    ran = run(*chosen, *words)
    assert "SSLCertVerificationError" in ran.output and server.seen == []
    (hint,) = ran.document["hints"]
    assert hint["cause"] == "pinned_certificate" and hint["message"] not in ran.err
    assert hint["remedy"] in hint["message"] and "SSL_CERT_FILE" in hint["message"]
    without = () if "Without --inspect" in hint["message"] or "--network" in hint["remedy"] else chosen
    again = run(*without, *hint["remedy"].split(), *words)
    assert again.status == 0 and "HTTP/1.1 200" in again.output and len(server.seen) == 1


@pytest.mark.parametrize("user", [None, "daemon"])
def test_java_trusts_it(run: Any, start: Any, user: str | None) -> None:
    """By a trust store, and the system property that names it; another user by the store Java reads by itself."""
    need("java")
    need("javac")
    if user is not None and os.geteuid() != 0:
        pytest.skip("nobody but root may become another user")
    server = start.server("api.test")
    program = (
        "public class Get { public static void main(String[] a) throws Exception { System.out.println("
        "((java.net.HttpURLConnection) new java.net.URL(a[0]).openConnection()).getResponseCode()); } }"
    )
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="doorward-java-") as folder:
        os.chmod(folder, 0o755)
        Path(folder, "Get.java").write_text(program)
        options = (*read_only(server.port), "-C", folder, *(() if user is None else ("--user", user)))
        ran = run(*options, "--", "java", "Get.java", url(server.port))
    assert "200" in ran.output.split(), ran.output


def test_a_worker_that_cannot_begin_opens_nothing(run: Any, start: Any, tmp_path: Path) -> None:
    """At a first run nothing starts; later what needs it is refused, and the note says why."""
    need("curl")
    server = start.server("api.test")
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'raise SystemExit(3)'\n")
    python.chmod(0o755)
    broken = ("-c", f"inspect.python={python}")
    with pytest.raises(AssertionError, match="worker did not become ready"):
        run(*read_only(server.port), *broken, "--", "touch", "started")
    assert not (run.workspace / "started").exists()
    assert run(*read_only(server.port), "--", "true").status == 0
    ran = run(*read_only(server.port), *broken, "--", "curl", "-sS", url(server.port))
    assert ran.status != 0 and server.seen == []
    assert any("the inspection worker died" in note for note in ran.document["notes"])

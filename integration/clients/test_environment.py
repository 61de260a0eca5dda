"""What a command inside finds in its environment, and how programs that go round it fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

PROXY = "http://127.0.0.1:3128"
LOOPBACK = "localhost,127.0.0.1,::1"
CURL = ("curl", "-sS", "--max-time", "20")


def _variables(doorward: Any, **outer: str) -> dict[str, str]:
    seen = doorward("--", "env", "-0", env=outer)
    assert seen.status == 0, seen.output
    return dict(entry.split("=", 1) for entry in seen.output.split("\0") if "=" in entry)


def test_both_cases_replace_what_was_inherited(doorward: Any) -> None:
    """P-EV-01, P-EV-05, P-EV-15."""
    stale = {"HTTP_PROXY": "http://stale.test:1", "https_proxy": "http://stale.test:2", "ALL_PROXY": "socks5://x:1"}
    inside = _variables(doorward, **stale, NO_PROXY="*", no_proxy=".", NPM_CONFIG_NOPROXY="*", UNTOUCHED="*")
    for name in ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "grpc_proxy"):
        assert inside[name] == inside[name.upper()] == PROXY
    for name in ("no_proxy", "no_grpc_proxy"):
        assert inside[name] == inside[name.upper()] == LOOPBACK
    assert {name for name, value in inside.items() if value in ("*", ".")} == {"UNTOUCHED"}
    assert not [value for value in inside.values() if "stale" in value]


def test_only_http_urls_in_proxy_variables(doorward: Any) -> None:
    """P-EV-07, P-EV-11: a bare host:port or a socks scheme is an error to libraries that know http only."""
    inside = _variables(doorward, grpc_proxy="socks5h://x:1", GRPC_PROXY="x:1", CARGO_HTTP_PROXY="socks5://x:1")
    named = {name: value for name, value in inside.items() if name.lower().endswith("_proxy")}
    urls = {name: value for name, value in named.items() if not name.lower().startswith("no_")}
    assert {"http_proxy", "https_proxy", "grpc_proxy"} <= set(urls)
    assert set(urls.values()) == {PROXY, "1"}
    assert [name for name, value in urls.items() if value == "1"] == ["NODE_USE_ENV_PROXY"]


def test_java_properties_and_an_inherited_value(doorward: Any) -> None:
    """P-EV-10: parsed as a JVM does, and the listener asks nobody for a password."""
    inside = _variables(doorward, JAVA_TOOL_OPTIONS="-Xss2m -Dhttps.proxyHost=corp.test")
    words = inside["JAVA_TOOL_OPTIONS"].split()
    assert words[0] == "-Xss2m"
    properties = dict(word.removeprefix("-D").split("=", 1) for word in words[1:])
    assert properties == {
        "http.proxyHost": "127.0.0.1", "http.proxyPort": "3128", "https.proxyHost": "127.0.0.1",
        "https.proxyPort": "3128", "http.nonProxyHosts": "localhost|127.0.0.1|[::1]",
    }  # fmt: skip


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "REQUEST_METHOD"])
def test_clients_reach_the_origin_whatever_was_set(doorward: Any, web: Any, python: Any, variable: str) -> None:
    """P-EV-01: curl reads the lower case only, urllib leaves the upper one out in a CGI program."""
    script = (
        f"curl -sS --max-time 20 {web.url()} && "
        f"{python.path} -c 'import urllib.request as r; print(r.urlopen(\"{web.url()}\", timeout=20).read())'"
    )
    seen = doorward(*python.shown, *web.reach(), "--", "sh", "-c", script, env={variable: "http://127.0.0.1:9"})
    assert (seen.status, seen.output.split(), seen.reasons) == (0, ["hello", r"b'hello\n'"], [])


SERVER = (
    "import http.server, os, socket, subprocess, sys, threading\n"
    "class Server(http.server.HTTPServer):\n"
    "    address_family = socket.AF_INET6\n"
    "class Handler(http.server.BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        self.send_response(200); self.send_header('Content-Length', '7'); self.end_headers()\n"
    "        self.wfile.write(b'inside\\n')\n"
    "    def log_message(self, *words): pass\n"
    "server = Server(('::', 0), Handler)\n"
    "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
    "words = [word.replace('PORT', str(server.server_port)) for word in sys.argv[1:]]\n"
    "sys.exit(subprocess.run(words, timeout=30).returncode)\n"
)
"""Serves on both loopbacks inside, and runs the rest of its words beside it."""


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "[0:0:0:0:0:0:0:1]"])
def test_loopback_inside_stays_inside(doorward: Any, python: Any, host: str) -> None:
    """P-EV-03, P-EV-13: curl takes an equal address in another spelling for the same."""
    seen = doorward(*python.shown, "--", python.path, "-c", SERVER, *CURL, "-g", f"http://{host}:PORT/")
    assert (seen.status, seen.output, seen.reasons) == (0, "inside\n", [])


def test_a_client_that_compares_text_is_told_of_loopback(doorward: Any, python: Any) -> None:
    """P-EV-03: urllib knows `::1` only as written; what then goes to the proxy is refused and says what it is."""
    get = "import urllib.request as r; print(r.urlopen('http://[0:0:0:0:0:0:0:1]:PORT/', timeout=20).read())"
    seen = doorward(*python.shown, "--", python.path, "-c", SERVER, python.path, "-c", get)
    assert seen.status == 1
    (refusal,) = seen.document["refusals"]
    assert (refusal["reason"], refusal["host"]) == ("not_allowed_local", "::1")
    assert "loopback" in refusal["message"]


def test_subdomains_are_the_rules_business(doorward: Any, web: Any, python: Any) -> None:
    """P-EV-04: no dialect of NO_PROXY is needed: one rule in the proxy holds for every client."""
    hosts = 'network.hosts={"internal.test" = "127.0.0.1", "x.internal.test" = "127.0.0.1"}'
    rule = ("--allow", f"**.internal.test:{web.port}", "-c", hosts)
    get = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=20).read().decode(), end='')"
    for name in ("internal.test", "x.internal.test"):
        for client in (CURL, (python.path, "-c", get)):
            seen = doorward(*python.shown, *rule, "--", *client, web.url(name))
            assert (seen.status, seen.output, seen.reasons) == (0, "hello\n", [])
    assert len(web.paths) == 4


DIAL = (
    "import socket, sys, time\n"
    "begin = time.monotonic()\n"
    "try:\n"
    "    socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)\n"
    "except OSError as problem:\n"
    "    print(type(problem).__name__, problem)\n"
    "else:\n"
    "    print('connected')\n"
    "print(f'{time.monotonic() - begin:.3f}')\n"
)


AT_ONCE = 9
"""Seconds, on a loaded machine too: less than a resolver that gets no answer takes (twice five, resolv.conf(5)) or a
client that is told to wait for twenty."""


ALONE = ("-c", "network.transparent=false")
"""The proxy alone: nothing is captured."""


def test_loopback_of_the_host_is_another_machine(doorward: Any, python: Any, web: Any) -> None:
    """P-EV-06: a program that dials 127.0.0.1 itself finds nothing there, at once, and no byte goes out."""
    words = (python.path, "-c", DIAL, "127.0.0.1", str(web.port))
    seen = doorward(*python.shown, "--allow", f"127.0.0.1:{web.port}", "--", *words)
    problem, seconds = seen.output.splitlines()
    assert problem.startswith("ConnectionRefusedError")
    assert float(seconds) < AT_ONCE
    assert web.paths == []


def test_the_way_to_the_hosts_loopback_is_the_proxy(doorward: Any, web: Any) -> None:
    """P-EV-06, P-EV-13: a rule for the literal, and a client told not to leave loopback out."""
    rule = ("--allow", f"127.0.0.1:{web.port}")
    seen = doorward(*rule, "--", *CURL, "--noproxy", "", f"http://127.0.0.1:{web.port}/")
    assert (seen.status, seen.output, seen.reasons) == (0, "hello\n", [])


def test_local_resolution_fails_at_once(doorward: Any, python: Any, web: Any) -> None:
    """P-DN-04: without capture getaddrinfo inside knows no name, not even an allowed one, and says so at once."""
    seen = doorward(*python.shown, *ALONE, *web.reach(), "--", python.path, "-c", DIAL, "a.test", str(web.port))
    problem, seconds = seen.output.splitlines()
    assert problem.startswith("gaierror")
    assert float(seconds) < AT_ONCE
    seen.says("Temporary failure in name resolution")


def test_socks_by_name_works_where_socks_by_address_cannot(doorward: Any, web: Any) -> None:
    """P-DN-04: `--socks5` looks the name up first; `--socks5-hostname` and `socks5h://` leave that to the proxy. With
    capture both do: the proxy knows which name an address inside stands for."""
    both = doorward(*web.reach(), "--", *CURL, "--socks5", "127.0.0.1:3128", web.url())
    assert (both.status, both.output, both.reasons) == (0, "hello\n", [])
    web.paths.clear()
    begin = time.monotonic()
    local = doorward(*ALONE, *web.reach(), "--", *CURL, "--socks5", "127.0.0.1:3128", web.url())
    assert time.monotonic() - begin < AT_ONCE
    assert (local.status, local.reasons, web.paths) == (97, [], [])
    local.says("Could not resolve host: a.test")
    local.hints("a name did not resolve")
    for words in (("--socks5-hostname", "127.0.0.1:3128"), ("--proxy", "socks5h://127.0.0.1:3128")):
        remote = doorward(*web.reach(), "--", *CURL, *words, web.url())
        assert (remote.status, remote.output, remote.reasons) == (0, "hello\n", [])
    refused = doorward(*web.reach(), "--", *CURL, "--socks5-hostname", "127.0.0.1:3128", web.url("b.test"))
    assert (refused.status, refused.reasons) == (97, ["not_allowed"])
    refused.says("Can't complete SOCKS5 connection to b.test.")
    assert f"to allow it: --allow b.test:{web.port}" in refused.err
    assert "did not resolve" not in refused.err


@pytest.mark.parametrize("command", ["wget", "curl"])
def test_a_direct_address_is_unreachable_at_once(doorward: Any, client: Callable[[str], str], command: str) -> None:
    """P-EV-08: without capture a client told to leave the proxy out has no way: no route, no stall (192.0.2.0/24 is
    documentation)."""
    direct = {"curl": (*CURL, "--noproxy", "*"), "wget": ("wget", "-O-", "--no-proxy", "--tries=1", "--timeout=20")}
    client(command)
    begin = time.monotonic()
    seen = doorward(*ALONE, "--", *direct[command], "http://192.0.2.1/")
    assert time.monotonic() - begin < AT_ONCE
    assert (seen.status, seen.reasons) == ({"curl": 7, "wget": 4}[command], [])
    seen.hints("an address was dialled directly")


def test_the_hint_of_loopback_names_the_port(doorward: Any, web: Any) -> None:
    """P-EV-06: 127.0.0.1 is left out of the proxy by every client, and nothing listens there inside."""
    seen = doorward("--", *CURL, f"http://127.0.0.1:{web.port}/")
    assert (seen.status, seen.reasons, web.paths) == (7, [], [])
    seen.hints("nothing listens there", web.port)


def test_no_hint_where_the_way_was_right(doorward: Any, web: Any) -> None:
    """P-EV-08: an allowed place that the proxy cannot reach is no fault of the client's, nor is any other failure."""
    nobody = ("--allow", "a.test:9", "-c", 'network.hosts={"a.test" = "127.0.0.1"}')
    seen = doorward(*nobody, "--", *CURL, "--fail-with-body", "http://a.test:9/")
    assert seen.status == 22
    assert "connection refused" in seen.output
    assert seen.document["notes"] == []
    for words in (("sh", "-c", "echo Could not resolve host"), ("false",)):
        assert doorward("--", *words).document["notes"] == []

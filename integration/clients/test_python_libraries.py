"""Python's urllib, requests, httpx and aiohttp: built from the emitted variables, allowed and refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

GET = {
    "urllib": "import sys, urllib.request\nprint(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())",
    "requests": "import sys, requests\nr = requests.get(sys.argv[1], timeout=20)\nprint(r.text)\nr.raise_for_status()",
    "httpx": "import sys, httpx\nr = httpx.get(sys.argv[1], timeout=20)\nprint(r.text)\nr.raise_for_status()",
    "aiohttp": (
        "import asyncio, ssl, sys, aiohttp\n"
        "async def main():\n"
        "    async with aiohttp.ClientSession(trust_env='direct' not in sys.argv) as session:\n"
        "        async with session.get(sys.argv[1], ssl=ssl.create_default_context()) as r:\n"
        "            print(await r.text(), flush=True)\n"
        "            r.raise_for_status()\n"
        "asyncio.run(main())"
    ),
}
"""One GET, the body printed, an error raised: as each library's own documentation does it."""

PLAIN = {
    "urllib": ["urllib.error.HTTPError: HTTP Error 403: Blocked (not_allowed): b.test:"],
    "requests": ["HTTPError: 403 Client Error: Blocked (not_allowed): b.test:", '"reason": "not_allowed"'],
    "httpx": ["httpx.HTTPStatusError: Client error '403 Blocked (not_allowed): b.test:", '"reason": "not_allowed"'],
    "aiohttp": ["ClientResponseError: 403, message='Blocked (not_allowed): b.test:", '"reason": "not_allowed"'],
}
TUNNEL = {
    "urllib": ["urllib.error.URLError: <urlopen error Tunnel connection failed: 403 Blocked (not_allowed): b.test:"],
    "requests": ["requests.exceptions.ProxyError", "Tunnel connection failed: 403 Blocked (not_allowed): b.test:"],
    "httpx": ["httpx.ProxyError: 403 Blocked (not_allowed): b.test:"],
    "aiohttp": ["ClientHttpProxyError: 403, message='Blocked (not_allowed): b.test:"],
}
HINT = "is in no allow rule - to allow it: --allow b.test:"


@pytest.fixture(params=sorted(GET))
def library(request: pytest.FixtureRequest) -> tuple[str, Any]:
    """The library's name and an interpreter that has it; urllib needs no other."""
    name = str(request.param)
    return name, request.getfixturevalue("python" if name == "urllib" else "python_clients")


def test_plain(doorward: Any, web: Any, library: tuple[str, Any]) -> None:
    name, python = library
    get = (*python.shown, *web.reach(), "--", python.path, "-c", GET[name])
    allowed = doorward(*get, web.url())
    assert (allowed.status, allowed.output.strip(), allowed.reasons) == (0, "hello", [])
    refused = doorward(*get, web.url("b.test"))
    assert (refused.status, refused.reasons) == (1, ["not_allowed"])
    refused.says(*PLAIN[name], HINT)
    assert f"to allow it: --allow b.test:{web.port}" in refused.err
    assert web.paths == ["/"]


def test_tunnel(doorward: Any, tls: Any, authority: Any, library: tuple[str, Any]) -> None:
    """The status phrase of the 403 reaches the person in every one of them."""
    name, python = library
    get = (*python.shown, *tls.reach(), "--", python.path, "-c", GET[name])
    allowed = doorward(*get, tls.url(), env=authority.trusted())
    assert (allowed.status, allowed.output.strip(), allowed.reasons) == (0, "hello", [])
    refused = doorward(*get, tls.url("b.test"), env=authority.trusted())
    assert refused.status == 1
    assert set(refused.reasons) == {"not_allowed"}
    refused.says(*TUNNEL[name], HINT)
    assert tls.paths == ["/"]


def test_aiohttp_without_trust_env_fails_fast(doorward: Any, web: Any, python_clients: Any) -> None:
    """P-EV-09: it ignores the variables, so it looks the name up itself. Captured, it gets there; else that fails at
    once."""
    words = (python_clients.path, "-c", GET["aiohttp"], web.url(), "direct")
    captured = doorward(*python_clients.shown, *web.reach(), "--", *words)
    assert (captured.status, captured.reasons, web.paths) == (0, [], ["/"])
    web.paths.clear()
    begin = time.monotonic()
    seen = doorward(
        *python_clients.shown, *web.reach(), "-c", "network.transparent=false", "--", python_clients.path, "-c",
        GET["aiohttp"], web.url(), "direct"
    )
    assert time.monotonic() - begin < 9  # a resolver that gets no answer takes ten seconds, resolv.conf(5)
    assert (seen.status, seen.reasons, web.paths) == (1, [], [])
    seen.says("ClientConnectorDNSError: Cannot connect to host", "[Temporary failure in name resolution]")
    (hint,) = seen.document["hints"]
    assert "ClientSession(trust_env=True)" in hint["message"] and hint["remedy"] == "-c network.transparent=true"
    told = doorward(
        *python_clients.shown, *web.reach(), "-c", "network.transparent=false", "--", python_clients.path, "-c",
        GET["aiohttp"], web.url()
    )
    assert (told.status, web.paths) == (0, ["/"]), "with the option that the hint names"


def test_the_variables_build_every_client(doorward: Any, python_clients: Any) -> None:
    """P-EV-02: none of the constructors chokes on NO_PROXY or on a proxy variable, and loopback stays direct."""
    script = (
        "import asyncio, requests, httpx, aiohttp, urllib.request\n"
        "httpx.Client().close()\n"
        "async def main():\n"
        "    async with httpx.AsyncClient(), aiohttp.ClientSession(trust_env=True):\n"
        "        pass\n"
        "asyncio.run(main())\n"
        "with requests.Session() as session:\n"
        "    for url in ('http://a.test/', 'https://a.test/'):\n"
        "        print(sorted(session.merge_environment_settings(url, {}, None, None, None)['proxies'].items()))\n"
        "    for url in ('http://localhost:1/', 'http://127.0.0.1:1/', 'http://[::1]:1/'):\n"
        "        print(url, dict(session.merge_environment_settings(url, {}, None, None, None)['proxies']))\n"
        "print(urllib.request.getproxies()['https'])\n"
    )
    outer = {"NO_PROXY": "[::1],fd00::/8,*", "all_proxy": "socks5h://stale.test:1"}
    seen = doorward(*python_clients.shown, "--", python_clients.path, "-c", script, env=outer)
    assert seen.status == 0, seen.output
    lines = seen.output.splitlines()
    assert all("('http', 'http://127.0.0.1:3128')" in line for line in lines[:2])
    assert all("('https', 'http://127.0.0.1:3128')" in line for line in lines[:2])
    assert [line.split()[1] for line in lines[2:4]] == ["{}", "{}"]
    assert lines[-1] == "http://127.0.0.1:3128"

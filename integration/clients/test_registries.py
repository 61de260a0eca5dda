"""pip, uv, npm and apt against the registries this machine is configured for, each asked from the tool itself.

Refused needs no network: a name in no rule is never looked up. Allowed is skipped where the registry does not answer.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

PORTS = {"http": 80, "https": 443}
TRUST = ("SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE")
SAMPLE = "publicsuffixlist"
"""A small project that doorward itself depends on, so that every index it installs from has it."""


@pytest.fixture
def trusted() -> dict[str, str]:
    """Where this machine's tools are told to find authorities, if they are."""
    return {name: os.environ[name] for name in TRUST if name in os.environ}


def _asked(*words: str) -> str:
    """What a tool says of its configuration, outside."""
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False, cwd="/",
        env={**os.environ, "COLUMNS": "1000", "NO_COLOR": "1"},
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"{words[0]} does not tell its configuration")
    return done.stdout.decode("utf-8", "replace")


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url.strip())
    if parts.scheme not in PORTS or not parts.hostname:
        pytest.skip("the tool is configured for something that is no web address")
    return parts.hostname, parts.port or PORTS[parts.scheme]


def _granted(*places: tuple[str, int]) -> list[str]:
    """Options that allow these places at the addresses the machine's resolver gives, whatever class those are."""
    words = []
    for host, port in places:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:
            pytest.skip("the registry's name does not resolve here")
        addresses = json.dumps(sorted({str(entry[4][0]) for entry in found}))
        words += ["--allow", f'{{host = "{host}:{port}", addresses = {addresses}}}']
    return words


def _allowed(seen: Any) -> None:
    """It worked; or nothing was refused and the registry does not answer, which is no matter of ours."""
    assert seen.reasons == [], seen.err
    if seen.status != 0:
        pytest.skip(f"the registry does not answer: {seen.output[-300:]}")


def _refused(seen: Any, *places: tuple[str, int]) -> None:
    assert seen.status != 0
    assert set(seen.reasons) == {"not_allowed"}
    assert {(entry["host"], entry["port"]) for entry in seen.document["refusals"]} <= set(places)
    assert "to allow it: --allow " in seen.err


def test_pip_by_its_preset(doorward: Any, python: Any, trusted: dict[str, str]) -> None:
    pip = [python.path, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--retries", "1", SAMPLE]
    # @pip asks the pip it finds first
    env = {**trusted, "PATH": f"{python.folder / 'bin'}:{doorward.env['PATH']}", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    refused = doorward(*python.shown, "--", *pip, env=env)
    if refused.status == 0:
        pytest.skip("pip is configured for local packages only")
    assert set(refused.reasons) == {"not_allowed"}
    refused.says("403 Blocked (not_allowed): ", "ERROR: No matching distribution found for")
    assert not list(doorward.workspace.glob(f"{SAMPLE}*"))
    _allowed(doorward(*python.shown, "--allow", "@pip", "--", *pip, env=env))
    assert list(doorward.workspace.glob(f"{SAMPLE}*"))


def test_uv(doorward: Any, python_clients: Any, trusted: dict[str, str]) -> None:
    """uv has an index of its own, and says which where it fails."""
    uv = [str(python_clients.folder / "bin" / "uv"), "pip", "install", "--no-config", "--no-cache", "--no-deps"]
    uv += ["--python", python_clients.path, "--target", "taken", "--native-tls", SAMPLE]
    env = {**trusted, "UV_HTTP_RETRIES": "0"}
    refused = doorward(*python_clients.shown, "--", *uv, env=env)
    assert refused.reasons, refused.output
    index = (str(refused.document["refusals"][0]["host"]), int(refused.document["refusals"][0]["port"]))
    _refused(refused, index)
    refused.says("tunnel error: unsuccessful")
    # the index names the host its files come from; the second refusal tells it
    half = doorward(*python_clients.shown, *_granted(index), "--", *uv, env=env)
    if half.status != 0 and not half.reasons:
        pytest.skip(f"the index does not answer: {half.output[-300:]}")
    files = [(str(entry["host"]), int(entry["port"])) for entry in half.document["refusals"][:1]]
    _allowed(doorward(*python_clients.shown, *_granted(index, *files), "--", *uv, env=env))
    assert (doorward.workspace / "taken" / SAMPLE).exists()


def _pins(seen: Any) -> list[str]:
    """A registry that resolves into the machine's own network is opened by hand, as its user would: a pin for each name
    that the guard kept shut. A pin allows nothing, so what is observed is what no rule allows."""
    hosts = {str(each["host"]) for each in seen.document["refusals"] if each["reason"] == "not_allowed_local"}
    found = {host: str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0]) for host in sorted(hosts)}
    table = ", ".join(f"{json.dumps(host)} = {json.dumps(address)}" for host, address in found.items())
    return ["-c", f"network.hosts={{{table}}}"] if found else []


@pytest.mark.parametrize("tool", ["npm", "pip"])
def test_observe_learn_and_run_under_what_was_learned(
    doorward: Any, client: Callable[[str], str], python: Any, trusted: dict[str, str], tool: str
) -> None:
    """A small real project from the registry the tool is configured for: recorded once, then allowed exactly that."""
    project = {"name": "demo", "version": "1.0.0", "dependencies": {"is-odd": "3.0.1"}}
    added = "http://added.test/added-1.0.tgz"
    if tool == "npm":
        # asked outside, since the user inside has no settings
        env = {**trusted, "npm_config_registry": _asked(client("npm"), "config", "get", "registry").strip()}
        words = ["npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=0"]
        (doorward.workspace / "package.json").write_text(json.dumps(project))
    else:
        env = {**trusted, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1"}
        words = [python.path, "-m", "pip", "install", "--no-deps", "--retries", "0", "--target", "taken"]
        words += ["-r", "needs.txt"]
        (doorward.workspace / "needs.txt").write_text(f"{SAMPLE}\n")

    pins: list[str] = []
    for name in ("first", "second", "third"):  # an index tells of another host when it is reached
        watched = doorward("--observe", "--name", name, *python.shown, *pins, "--", *words, env=env)
        if not (more := _pins(watched)):
            break
        pins += more
    _allowed(watched)
    if not (rules := json.loads(doorward.command("allowlist", "learn", "--json", name))["rules"]):
        pytest.skip(f"{tool} is configured for local packages only")
    assert all(each["covered_by"] is None for each in rules)
    doorward.command("allowlist", "learn", "--write", f"{doorward.env['DOORWARD_HOME']}/config.toml", name)

    for folder in ("node_modules", "taken"):
        shutil.rmtree(doorward.workspace / folder, ignore_errors=True)
    again = doorward("--fail-on-deny", *python.shown, *pins, "--", *words, env=env)
    assert (again.status, again.reasons) == (0, []), again.output
    taken = "node_modules/is-number" if tool == "npm" else f"taken/{SAMPLE}"  # what is-odd needs
    assert (doorward.workspace / taken).is_dir()

    if tool == "npm":
        project["dependencies"] = {"is-odd": "3.0.1", "added": added}
        (doorward.workspace / "package.json").write_text(json.dumps(project))
    else:
        (doorward.workspace / "needs.txt").write_text(f"{SAMPLE}\nadded @ {added}\n")
    other = doorward(*python.shown, *pins, "--", *words, env=env)
    _refused(other, ("added.test", 80))
    assert "Blocked (not_allowed): added.test:80 is in no allow rule" in other.output


NODE_AGENT = """
const { EnvHttpProxyAgent, setGlobalDispatcher } = require("undici");
setGlobalDispatcher(new EnvHttpProxyAgent());
"""


def test_node_fetch_with_the_agent_of_undici(
    doorward: Any, web: Any, tls: Any, authority: Any, client: Callable[[str], str], trusted: dict[str, str]
) -> None:
    """What docs/clients.md advises for a Node that does not know NODE_USE_ENV_PROXY."""
    place = _place(_asked(client("npm"), "config", "get", "registry"))
    npm = ["npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=0", "undici@6"]
    _allowed(doorward(*_granted(place), "--", *npm, env=trusted))
    (doorward.workspace / "proxy.cjs").write_text(NODE_AGENT)
    fetch = "fetch(process.argv[1]).then(async r => console.log(r.status, (await r.text()).trim()))"
    node = ["node", "--require", "./proxy.cjs", "-e", fetch]
    for origin in (web, tls):
        seen = doorward(*origin.reach(), "--", *node, origin.url(), env=authority.trusted())
        assert (seen.status, seen.reasons) == (0, []), seen.output
        assert seen.output.rstrip().endswith("200 hello")
        refused = doorward(*origin.reach(), "--", *node, origin.url("b.test"), env=authority.trusted())
        assert refused.reasons == ["not_allowed"]
    assert web.paths == tls.paths == ["/"]


def test_apt(doorward: Any, client: Callable[[str], str], tmp_path: Path) -> None:
    """`apt-get download` with the lists the machine has; it writes into the workspace only."""
    apt = [client("apt-get"), "-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=0"]
    apt += ["-o", f"Dir::Cache={doorward.workspace}/cache/"]
    (doorward.workspace / "cache" / "archives" / "partial").mkdir(parents=True)
    printed = _asked(*apt[:1], "download", "--print-uris", "hostname")
    urls = re.findall(r"'(https?://[^']+)'", printed)
    if not urls:
        pytest.skip("apt has no lists, or none over http")
    place = _place(urls[0])
    words = [*apt, "download", "hostname"]
    refused = doorward("--", *words)
    _refused(refused, place)
    refused.says("E: Failed to fetch http")
    assert not list(doorward.workspace.glob("*.deb"))
    _allowed(doorward(*_granted(place), "--", *words))
    assert list(doorward.workspace.glob("hostname_*.deb"))

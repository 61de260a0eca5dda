"""What the proxy process imports: its start counts, so a heavy module must not slip in."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "argparse", "asyncio", "base64", "dataclasses", "datetime", "idna", "importlib.metadata", "importlib.resources",
    "inspect", "logging", "pathlib", "selectors", "shutil", "socket", "ssl", "subprocess", "tempfile", "threading",
    "tomllib", "urllib", "uuid",
}  # fmt: skip


def imported(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_the_process_imports_nothing_heavy() -> None:
    loaded = imported("import doorward.proxy.process, doorward.proxy.runs")
    assert "doorward.proxy.server" in loaded
    assert loaded & HEAVY == imported("pass") & HEAVY


def test_what_the_first_look_up_waits_for_loads_no_typing() -> None:
    code = (
        "from doorward.proxy import inside, process\n"
        "for part in (*process._PARTS, *inside._OF_FIRST_CLIENTS, *inside._OF_DATAGRAMS): __import__(part)"
    )
    assert not imported(code) & {"typing", "re", "enum", "contextlib"}


READY = """
import _socket, json, threading
control, ours = _socket.socketpair()
handover, other = _socket.socketpair()
from doorward.proxy.process import run_proxy

def ask():
    global at_ready
    ours.send(json.dumps({"type": "configure", "policy": "1", "settings": %s, "hold": True}).encode() + b"\\n")
    said = ours.recv(1000)
    assert b"ready" in said, said
    at_ready = set(sys.modules)
    ours.close()

threading.Thread(target=ask).start()
run_proxy(control, handover)
for name in set(sys.modules) - at_ready:
    del sys.modules[name]
"""


def test_ready_needs_no_protocol() -> None:
    """A policy is read with the rules loaded and nothing else; the rest is imported while the sandbox starts."""
    row = {"rule": "a.test", "source": "flag", "where": "--allow"}
    loaded = imported(READY % {"allow": [row], "deny": [], "can_ask": False})
    assert "doorward.allowlists.ruleset" in loaded
    later = {"http1_message", "http1_write", "target", "refusal", "records", "server", "client_hello", "dial"}
    assert not loaded & {"httptools", *(f"doorward.proxy.{name}" for name in later)}


def test_ready_needs_no_rules_where_none_are_given() -> None:
    """What says nothing cannot be wrong, so it is read when it is needed, while the sandbox starts."""
    loaded = imported(READY % {"allow": [], "deny": [], "hosts": {}, "upstream_proxy": None, "can_ask": False})
    assert not [name for name in loaded if name.startswith("doorward.allowlists")]


def test_serving_needs_no_heavy_module_of_python() -> None:
    """What is written in Python and only helps the writer is not loaded for a run whose rules are names: `typing` and
    what it brings (httptools would), `functools` with `collections`, `ipaddress`."""
    loaded = imported("import doorward.proxy.process, doorward.proxy.runs")
    assert "doorward.proxy.server" in loaded
    unwanted = {"collections", "contextlib", "enum", "functools", "ipaddress", "re", "typing", "warnings"}
    assert loaded & unwanted == imported("pass") & unwanted


def test_a_refusal_needs_no_heavy_module_of_python() -> None:
    """A client waits for its first answer while they would be imported."""
    loaded = imported("""
import doorward.proxy.runs, doorward.proxy.attribution
from doorward.allowlists.host import Name
from doorward.proxy.policy import policy_from_settings
from doorward.proxy.refusal import refusal_from

decision = policy_from_settings({}).decide(Name("a.test"), 443)
assert decision.hint == "--allow a.test", decision
""")
    unwanted = {"collections", "contextlib", "enum", "functools", "ipaddress", "re", "typing", "warnings"}
    assert loaded & unwanted == imported("pass") & unwanted


def test_the_first_name_and_the_first_captured_connection_need_no_typing() -> None:
    loaded = imported("from doorward.proxy import name_server, transparent, attribution, runs")
    unwanted = {"contextlib", "enum", "re", "typing", "warnings"}  # addresses are read here, and that takes `functools`
    assert "doorward.proxy.stand_ins" in loaded
    assert loaded & unwanted == imported("pass") & unwanted


def test_the_parser_alone_is_the_package_s() -> None:
    """What was loaded without the package is what the package has, and nothing stands in for anything afterwards."""
    code = """
from doorward.proxy import llhttp
assert not {"httptools", "httptools.parser", "typing"} & set(sys.modules)
import httptools, typing
assert httptools.HttpRequestParser is llhttp.HttpRequestParser
assert httptools.HttpParserError is llhttp.HttpParserError
assert httptools.parse_url(b"http://a.test/b").path == b"/b"
print(typing.Optional[int])
"""
    assert "typing.Optional[int]" in imported(code)


def test_the_parser_comes_with_the_package_where_it_does_not_come_alone() -> None:
    code = """
import httptools
from doorward.proxy import llhttp
assert llhttp.HttpResponseParser is httptools.HttpResponseParser
"""
    assert "httptools.parser" in imported(code)


def test_the_doors_lower_floors_alone() -> None:
    """A folder imports only from floors below it (DESIGN.md §3)."""
    others = ("doorward.sessions", "doorward.gates", "doorward.launcher")
    loaded = imported("import doorward.proxy.process, doorward.proxy.runs")
    assert not [name for name in loaded if name.startswith(others)]

"""GraphQL by operation, and what is recorded of requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest


def post(port: int, body: str, kind: str = "application/json") -> bytes:
    head = f"POST /graphql HTTP/1.1\r\nHost: api.test:{port}\r\nContent-Type: {kind}\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("query", "passes"),
    [
        ("{ viewer { login } }", True),
        ("mutation { addComment }", True),
        ("mutation viewer { deleteRepository }", False),
        ("query A { viewer } mutation B { deleteRepository }", False),
        ("{ nonsense", False),
    ],
)
def test_graphql_operations(start: Any, query: str, passes: bool) -> None:
    pytest.importorskip("graphql")
    server = start.server("api.test")
    rule = {"host": f"api.test:{server.port}", "paths": ["/graphql"], "graphql": ["query", "mutation.add*"]}
    door = start([rule])
    answer = door.ask("api.test", server.port, post(server.port, json.dumps({"query": query})))
    assert answer.startswith(b"HTTP/1.1 200 " if passes else b"HTTP/1.1 403 "), answer
    assert len(server.seen) == passes
    if passes:
        assert json.loads(server.seen[0][3]) == {"query": query}
    else:
        assert door.of("refusal")[0]["reason"] == "path_not_allowed"


def test_a_body_too_long_to_be_judged(start: Any) -> None:
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "graphql": ["query"]}])
    answer = door.ask("api.test", server.port, post(server.port, json.dumps({"query": "{ a }", "x": "y" * (2 << 20)})))
    assert answer.startswith(b"HTTP/1.1 413 ") and server.seen == []


def test_what_is_recorded_and_its_archive(run: Any, start: Any) -> None:
    if sys.platform != "linux":
        pytest.skip("not Linux")
    server = start.server("api.test")
    there = f"https://api.test:{server.port}"
    script = (
        f'curl -sS -o /dev/null -H "Cookie: sid=hunter2" "{there}/a?token=hunter2&b=c"; '
        f"curl -sS -o /dev/null -d hello {there}/b; curl -sS -o /dev/null -X DELETE {there}/c"
    )
    rule = ("--allow", f'{{host = "api.test:{server.port}", methods = ["GET", "POST"]}}')
    ran = run(*rule, "-c", "inspect.record=bodies", "--name", "recorded", "--", "sh", "-c", script)
    assert ran.status == 0, ran.output + ran.err
    done = subprocess.run(
        [sys.executable, "-P", "-m", "doorward", "show", "--har", "recorded"],
        env={**os.environ, "DOORWARD_HOME": str(run.home)},
        cwd=run.workspace,
        capture_output=True,
        timeout=60,
        check=True,
    )
    saw = subprocess.run(
        [sys.executable, "-P", "-m", "doorward", "explain", "recorded", "--saw", "hunter2", "--json"],
        env={**os.environ, "DOORWARD_HOME": str(run.home)},
        cwd=run.workspace,
        capture_output=True,
        timeout=60,
        check=True,
    )
    places = json.loads(saw.stdout)["places"]
    assert ("request", "token held exactly this", "fingerprint") in [
        (place["where"], place["what"], place["how"]) for place in places
    ]
    entries = json.loads(done.stdout)["log"]["entries"]
    assert "hunter2" not in json.dumps([each["request"] for each in entries])  # this server's answers hold it
    assert [each["request"]["method"] for each in entries] == ["GET", "POST"]
    assert [each["response"]["status"] for each in entries] == [200, 200]
    assert entries[0]["request"]["url"].startswith(f"{there}/a?token=") and "b=c" in entries[0]["request"]["url"]
    assert entries[1]["request"]["postData"]["text"] == "hello"
    assert json.loads(entries[0]["response"]["content"]["text"])["method"] == "GET"


def test_nothing_is_recorded_unless_it_is_asked_for(start: Any) -> None:
    server = start.server("api.test")
    door = start([{"host": f"api.test:{server.port}", "methods": ["GET"]}])
    message = f"GET /secret-path HTTP/1.1\r\nHost: api.test:{server.port}\r\nConnection: close\r\n\r\n"
    assert door.ask("api.test", server.port, message.encode()).startswith(b"HTTP/1.1 200 ")
    door.wait_for("network")
    assert "secret-path" not in json.dumps(door.items)

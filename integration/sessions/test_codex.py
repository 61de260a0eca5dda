"""The real Codex lists and reads our sessions, and what it writes is imported: through its app server, on loopback.

Codex is another product and large (npm package `@openai/codex`), so it is no tool of the tests: where `codex` is not on
PATH, and DOORWARD_TEST_CODEX does not name it, these are skipped. What 0.171.0 wrote is kept in `tests/sessions/codex`
and imported by every run of the tests.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from origin import HttpOrigin, QuietHandler

CODEX = os.environ.get("DOORWARD_TEST_CODEX") or shutil.which("codex")
DEADLINE = 60
# Codex lists interactive sources unless it is told others; ours say that they come from `exec`
HELLO = "A stub's hello."
SOURCES = ["cli", "vscode", "exec", "appServer"]

pytestmark = pytest.mark.skipif(CODEX is None, reason="no codex on PATH, and DOORWARD_TEST_CODEX names none")


class _Model(QuietHandler):
    """Answers every request of the Responses API with the same message."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": HELLO}]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        body = b"".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            for event in (
                {"type": "response.created", "response": {"id": "1"}},
                {"type": "response.output_item.done", "item": {"id": "2", **message}},
                {"type": "response.completed", "response": {"id": "1", "usage": usage}},
            )
        )
        self.answer(body, "text/event-stream")


class AppServer:
    """Codex's app server with a home of its own, spoken to in JSON lines."""

    def __init__(self, home: Path, port: int) -> None:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            'model = "stub"\nmodel_provider = "stub"\n[model_providers.stub]\nname = "stub"\nwire_api = "responses"\n'
            f'base_url = "http://127.0.0.1:{port}/v1"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
        )
        assert CODEX is not None
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([CODEX, "app-server"], env=env, cwd=home, **pipes)  # type: ignore[call-overload]
        self._heard: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self._number = 0
        self.call("initialize", clientInfo={"name": "test", "version": "1"}, capabilities={"experimentalApi": True})
        self._send({"method": "initialized"})

    def _read(self) -> None:
        for line in self._process.stdout:
            self._heard.put(json.loads(line))

    def _send(self, message: dict[str, Any]) -> None:
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def call(self, method: str, **params: Any) -> Any:
        """The result of a call."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            heard = self._heard.get(timeout=DEADLINE)
            if heard.get("id") == self._number:
                return heard["result"]

    def until(self, method: str) -> None:
        """Wait for a notification."""
        while self._heard.get(timeout=DEADLINE).get("method") != method:
            pass

    def close(self) -> None:
        """End it."""
        self._process.stdin.close()
        self._process.wait(DEADLINE)
        self._reader.join(DEADLINE)
        self._process.stdout.close()


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[Any]:
    """Starts an app server whose home is the folder given; all end with the test."""
    server = HttpOrigin(_Model)
    started: list[AppServer] = []

    def start(home: Path) -> AppServer:
        started.append(AppServer(home, server.port))
        return started[-1]

    try:
        yield start
    finally:
        for each in started:
            each.close()
        server.close()


def test_codex_lists_and_reads_our_sessions(doorward: Any, codex: Any, tmp_path: Path) -> None:
    session = doorward("run", "--json", "--", "echo", "one").document["session"]
    doorward("resume", session, "--", "echo", "two")
    archived = doorward("run", "--json", "--", "echo", "aside").document["session"]
    doorward("archive", archived)
    doorward("sessions", "prune", "--apply")
    fork = doorward("fork", "--at", "2", session).out.decode().strip()
    doorward("resume", fork, "--", "echo", "forked")
    home = tmp_path / "codex"
    shutil.copytree(doorward.home / "sessions", home / "sessions")
    shutil.copytree(doorward.home / "archived_sessions", home / "archived_sessions")
    server = codex(home)
    listed = {
        thread["id"]: thread["preview"]
        for old in (False, True)
        for thread in server.call("thread/list", sourceKinds=SOURCES, archived=old)["data"]
    }
    assert listed == {session: "echo one", archived: "echo aside", fork: "echo forked"}
    turns = server.call("thread/read", threadId=session, includeTurns=True)["thread"]["turns"]
    said = [item["content"][0]["text"] for turn in turns for item in turn["items"] if item["type"] == "userMessage"]
    assert said == ["echo one", "echo two"]


@pytest.mark.parametrize("mode", ["legacy", "paginated"])
def test_what_codex_writes_is_imported(doorward: Any, codex: Any, tmp_path: Path, mode: str) -> None:
    home = tmp_path / "codex"
    server = codex(home)
    thread = server.call("thread/start", cwd=str(tmp_path), historyMode=mode, approvalPolicy="never")["thread"]["id"]
    for text in ("first question", "second question"):
        server.call("turn/start", threadId=thread, input=[{"type": "text", "text": text}])
        server.until("turn/completed")
    fork = server.call("thread/fork", threadId=thread, excludeTurns=True)["thread"]["id"]
    server.call("turn/start", threadId=fork, input=[{"type": "text", "text": "third question"}])
    server.until("turn/completed")
    imported = doorward("sessions", "import", "--json", str(home))
    assert imported.status == 0, imported.err
    assert {row["id"] for row in imported.document} == {thread, fork}
    for session, turns in ((thread, 2), (fork, 3)):
        shown = doorward("show", session).out.decode()
        assert "turn 2  second question" in shown
        assert shown.count("agent: A stub's hello.") == turns
        assert doorward("verify", session).status == 0
    assert [row["id"] for row in doorward("sessions", "--json", "--search", "third").document] == [fork]

"""A model that says what the test tells it to: Anthropic's Messages API over SSE, on loopback, one answer a request.

A program of its own, so that it can be run with the agent in a network namespace that has nothing but loopback:

    python messages_stub.py SCRIPT LOG AGENT [ARG…]

SCRIPT is a JSON file, a list of `[tool, call, input]`; used up, the model says "done". LOG gets a JSON object: `status`
and `err` of the agent, `tools` (what it told the model of each call, by its id), `paths` (what it asked for).
"""

from __future__ import annotations

import fcntl
import http.server
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _UP = 0x8913, 0x8914, 1  # <linux/sockios.h>, IFF_UP of netdevice(7)
_DEADLINE_S = 100


def loopback_up() -> None:
    """`ip link set lo up`: a new network namespace has it down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        asked = fcntl.ioctl(sock, _SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0))
        (flags,) = struct.unpack("16xh14x", asked)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


def events(number: int, step: list[Any] | None, model: str) -> bytes:
    """One answer: a use of a tool, or a text."""
    message = {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": "done"}
    if step is not None:
        tool, call, given = step
        block = {"type": "tool_use", "id": call, "name": tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
    stop = {"stop_reason": "end_turn" if step is None else "tool_use", "stop_sequence": None}
    sent = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in sent).encode()


class Stub(http.server.ThreadingHTTPServer):
    """Only requests that offer the model a shell are answered from the script: agents ask for titles besides."""

    daemon_threads = True

    def __init__(self, script: list[list[Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []

    def step(self, body: dict[str, Any]) -> list[Any] | None:
        if not any(tool.get("name") == "Bash" for tool in body.get("tools") or ()):
            return None
        self.asked.append(body)
        number = len(self.asked)
        return self.script[number - 1] if number <= len(self.script) else None

    def tools(self) -> dict[str, str]:
        """What the model was told of each call."""
        found = {}
        for message in (each for body in self.asked for each in body["messages"]):
            for part in message["content"] if isinstance(message["content"], list) else ():
                if part.get("type") == "tool_result":
                    found[part["tool_use_id"]] = json.dumps(part["content"], ensure_ascii=False)
        return found


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self._send(404, "application/json", b"{}")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        self.server.paths.append(self.path)
        if not self.path.startswith("/v1/messages"):
            self._send(404, "application/json", b"{}")
        elif "count_tokens" in self.path:
            self._send(200, "application/json", b'{"input_tokens": 1}')
        else:
            step = self.server.step(body)
            self._send(200, "text/event-stream", events(len(self.server.paths), step, str(body.get("model"))))

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def main(script: str, log: str, *agent: str) -> int:
    loopback_up()
    stub = Stub(json.loads(Path(script).read_text()))
    threading.Thread(target=stub.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{stub.server_address[1]}"
    done = subprocess.run(
        agent, env={**os.environ, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=_DEADLINE_S, check=False,
    )  # fmt: skip
    told = {"status": done.returncode, "err": done.stderr + done.stdout, "tools": stub.tools(), "paths": stub.paths}
    Path(log).write_text(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

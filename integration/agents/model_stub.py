"""A model that says what the test tells it to: OpenAI's Responses API over SSE, on loopback, one answer a request."""

from __future__ import annotations

import json
from typing import Any

from origin import HttpOrigin, QuietHandler


class ModelStub:
    """Each request is answered with the next item of the script, and when it is used up with "done"."""

    def __init__(self, script: list[dict[str, Any]]) -> None:
        self.requests: list[dict[str, Any]] = []
        stub = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.answer(b'{"models": []}')

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                stub.requests.append(json.loads(body))
                number = len(stub.requests)
                item = script[number - 1] if number <= len(script) else _said("done")
                self.answer(_events(number, item), "text/event-stream")

        self._server = HttpOrigin(Handler)
        self.url = f"http://127.0.0.1:{self._server.port}/v1"

    def __enter__(self) -> ModelStub:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def outputs(self) -> dict[str, str]:
        """What the agent told the model that each call had returned."""
        found = {}
        for request in self.requests:
            for item in request["input"]:
                if item.get("type") in ("function_call_output", "custom_tool_call_output"):
                    found[item["call_id"]] = str(item["output"])
        return found


def shell(call: str, command: str) -> dict[str, Any]:
    """The model wants a command run."""
    return {
        "type": "function_call", "call_id": call, "name": "exec_command",
        "arguments": json.dumps({"cmd": command, "yield_time_ms": 30_000}),
    }  # fmt: skip


def patch(call: str, text: str) -> dict[str, Any]:
    """The model wants files changed."""
    return {"type": "custom_tool_call", "call_id": call, "name": "apply_patch", "input": text}


def _said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": text}]}


def _events(number: int, item: dict[str, Any]) -> bytes:
    usage = {
        "input_tokens": 0, "input_tokens_details": None, "output_tokens": 0, "output_tokens_details": None,
        "total_tokens": 0,
    }  # fmt: skip
    events = [
        {"type": "response.created", "response": {"id": f"r{number}"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": f"r{number}", "usage": usage}},
    ]
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()

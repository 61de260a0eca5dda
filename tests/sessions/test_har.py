"""The HTTP archive: one entry an exchange, in the shape the format wants."""

from __future__ import annotations

from typing import Any

from doorward.sessions.har import har_of

EXCHANGE: dict[str, Any] = {
    "type": "http_exchange", "connection": "x-1", "host": "a.test", "port": 8443, "started_at": 1.5, "duration_s": 0.25,
    "request": {
        "method": "POST", "target": "/x?a=b&c=", "protocol": "HTTP/1.1", "headers": [["Content-Type", "text/plain"]],
        "body_bytes": 3, "body": "abc", "body_whole": True,
    },
    "response": {
        "status": 302, "phrase": "Found", "protocol": "HTTP/1.1", "headers": [["Location", "/y"]], "body_bytes": 2,
        "body_base64": "//4=", "body_whole": True,
    },
}  # fmt: skip


def test_an_entry() -> None:
    archive = har_of([{"type": "connection_opened"}, EXCHANGE], "1")["log"]
    assert (archive["version"], archive["creator"]) == ("1.2", {"name": "doorward", "version": "1"})
    (entry,) = archive["entries"]
    assert entry["startedDateTime"] == "1970-01-01T00:00:01.500+00:00" and entry["time"] == 250
    assert entry["request"]["url"] == "https://a.test:8443/x?a=b&c="
    assert entry["request"]["queryString"] == [{"name": "a", "value": "b"}, {"name": "c", "value": ""}]
    assert entry["request"]["postData"] == {"mimeType": "text/plain", "text": "abc"}
    assert entry["response"]["redirectURL"] == "/y"
    assert entry["response"]["content"] == {"size": 2, "mimeType": "", "text": "//4=", "encoding": "base64"}
    for key in ("cookies", "headers", "headersSize", "bodySize", "httpVersion"):
        assert key in entry["request"] and key in entry["response"]


def test_an_exchange_that_broke_off() -> None:
    broken = {key: value for key, value in EXCHANGE.items() if key != "response"} | {"error": "reset"}
    (entry,) = har_of([broken], "1")["log"]["entries"]
    assert entry["response"]["status"] == 0 and entry["_error"] == "reset"

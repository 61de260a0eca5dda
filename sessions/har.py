"""Inspected requests of a session as an HTTP archive (HAR 1.2, http://www.softwareishard.com/blog/har-12-spec/).

Made from `http_exchange` events, which are there where `inspect.record` asked for them. What was not recorded is not
made up: sizes that nobody measured are -1, as the format wants it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl


def har_of(payloads: Iterable[Mapping[str, Any]], version: str) -> dict[str, Any]:
    """The archive; `payloads` are those of events, of which others than exchanges are left out."""
    entries = [_entry(each) for each in payloads if each.get("type") == "http_exchange" and "request" in each]
    creator = {"name": "doorward", "version": version}
    return {"log": {"version": "1.2", "creator": creator, "entries": entries}}


def _entry(payload: Mapping[str, Any]) -> dict[str, Any]:
    started = datetime.datetime.fromtimestamp(payload["started_at"], datetime.UTC)
    milliseconds = round(payload.get("duration_s", 0) * 1000, 3)
    entry = {
        "startedDateTime": started.isoformat(timespec="milliseconds"),
        "time": milliseconds,
        "request": _request(payload),
        "response": _response(payload),
        "cache": {},
        "timings": {"send": 0, "wait": milliseconds, "receive": 0},
        "_connection": payload.get("connection"),
    }
    if "error" in payload:
        entry["_error"] = payload["error"]
    return entry


def _request(payload: Mapping[str, Any]) -> dict[str, Any]:
    request = payload["request"]
    port = "" if payload["port"] == 443 else f":{payload['port']}"
    host = f"[{payload['host']}]" if ":" in payload["host"] else payload["host"]
    target = request["target"]
    query = parse_qsl(target.partition("?")[2], keep_blank_values=True)
    found = {
        "method": request["method"],
        "url": f"https://{host}{port}{target}",
        "httpVersion": request["protocol"],
        "cookies": [],
        "headers": _pairs(request["headers"]),
        "queryString": [{"name": name, "value": value} for name, value in query],
        "headersSize": -1,
        "bodySize": request.get("body_bytes", 0),
    }
    if "body" in request or "body_base64" in request:
        found["postData"] = {
            "mimeType": _header(request["headers"], "content-type"),
            "text": request.get("body", request.get("body_base64")),
            **({} if "body" in request else {"_encoding": "base64"}),
        }
    return found


def _response(payload: Mapping[str, Any]) -> dict[str, Any]:
    response = payload.get("response", {"status": 0, "phrase": "", "protocol": "", "headers": []})
    content = {"size": response.get("body_bytes", 0), "mimeType": _header(response["headers"], "content-type")}
    if "body" in response:
        content["text"] = response["body"]
    elif "body_base64" in response:
        content |= {"text": response["body_base64"], "encoding": "base64"}
    return {
        "status": response["status"],
        "statusText": response["phrase"],
        "httpVersion": response["protocol"],
        "cookies": [],
        "headers": _pairs(response["headers"]),
        "content": content,
        "redirectURL": _header(response["headers"], "location"),
        "headersSize": -1,
        "bodySize": response.get("body_bytes", -1),
    }


def _pairs(headers: Iterable[Any]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers]


def _header(headers: Iterable[Any], wanted: str) -> str:
    return next((value for name, value in headers if name.lower() == wanted), "")

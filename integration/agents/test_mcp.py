"""`doorward mcp` and a wrapped server, driven by the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from integration.agents.conftest import DEADLINE, Place, doorward

mcp = pytest.importorskip("mcp", reason="the MCP SDK is not installed: pip install 'doorward[mcp]'")

Call = Callable[..., Awaitable[dict[str, Any]]]

_SERVER = """
import os, sys, urllib.request
try:
    from mcp.server.mcpserver import MCPServer
except ModuleNotFoundError:
    from mcp.server.fastmcp import FastMCP as MCPServer
server = MCPServer("small", log_level="ERROR")

@server.tool()
def touch(path: str) -> str:
    try:
        open(path, "w").close()
    except OSError as error:
        return error.strerror
    return "made"

@server.tool()
def fetch(url: str) -> str:
    try:
        return urllib.request.urlopen(url, timeout=20).read().decode()
    except Exception as error:
        return str(getattr(error, "code", error))

@server.tool()
def echo(text: str) -> str:
    return text

server.run()
"""


def _driven(place: Place, argv: list[str], steps: Callable[[Call, Any], Awaitable[None]]) -> None:
    async def client() -> None:
        parameters = mcp.StdioServerParameters(command=argv[0], args=argv[1:], env=place.env, cwd=place.project)
        async with mcp.stdio_client(parameters) as (reader, writer), mcp.ClientSession(reader, writer) as session:
            await session.initialize()

            async def call(tool: str, **arguments: object) -> dict[str, Any]:
                result = await session.call_tool(tool, arguments)
                failed = getattr(result, "is_error", getattr(result, "isError", None))
                assert failed is False, result
                text = result.content[0].text
                return json.loads(text) if text.startswith("{") else {"text": text}

            await steps(call, session)

    asyncio.run(asyncio.wait_for(client(), DEADLINE))


def test_a_refusal_is_an_ordinary_result(place: Place) -> None:
    async def steps(call: Call, session: Any) -> None:
        listed = await session.list_tools()
        assert {tool.name for tool in listed.tools} == {"exec", "check", "sessions"}
        first = await call("exec", command="echo hi; cat", input="there")
        assert (first["exit_code"], first["output"], first["next_offset"]) == (0, "hi\nthere", None)
        host = await call("exec", command="curl -sS http://b.test/")
        assert [each["host"] for each in host["refusals"]] == ["b.test"]
        assert host["success"] is True
        write = await call("exec", command=["touch", "/opt/x"])
        assert write["exit_code"] == 126
        assert "outside the workspace" in write["reason"]
        asked = await call("exec", command="rm -rf build")
        assert (asked["exit_code"], asked["verdict"]) == (126, "deny")
        assert {each["session"] for each in (first, host, write, asked)} == {first["session"]}
        assert [each["turn"] for each in (first, host, write, asked)] == [1, 2, 3, 4]
        for wrong in ({"command": []}, {"command": "true", "cwd": "/not/there"}, {"command": "a\0b"},
                      {"command": "true", "timeout_s": -1}):  # fmt: skip
            failed = await call("exec", **wrong)
            assert failed["success"] is False or failed["exit_code"] != 0, wrong
        assert (await call("exec", command="echo on"))["output"] == "on\n"

    _driven(place, doorward("mcp", "--allow", "a.test"), steps)


def test_check_and_what_was_recorded(place: Place) -> None:
    async def steps(call: Call, session: Any) -> None:
        assert (await call("check", command="ls -la"))["verdict"] == "allow"
        asked = await call("check", command="rm -rf build")
        assert asked["verdict"] == "ask"
        assert "rm deletes" in asked["reason"]
        denied = await call("check", command=["make"], writes=["/etc/x"])
        assert denied["verdict"] == "deny"
        assert (await call("check", command="true", network_to=["b.test"]))["success"] is False
        assert (await call("sessions"))["sessions"] == []
        ran = await call("exec", command="echo hi")
        [listed] = (await call("sessions"))["sessions"]
        assert listed["id"] == ran["session"]
        assert "echo hi" in (await call("sessions", session=ran["session"]))["text"]
        for wrong in ({"session": "nope"}, {"session": ran["session"], "turn": 9}, {"session": "x", "offset": -1}):
            assert (await call("sessions", **wrong))["success"] is False

    _driven(place, doorward("mcp"), steps)


@pytest.mark.parametrize("lines", [3_000, 60_000])
def test_long_output_comes_in_pages(place: Place, lines: int) -> None:
    """Once within what a record holds, once as a blob; no character is cut in two."""

    async def steps(call: Call, session: Any) -> None:
        whole = "".join(f"zeile ü {number}\n" for number in range(lines))
        seen = await call("exec", command=f"seq 0 {lines - 1} | sed 's/^/zeile ü /'")
        pages = [seen["output"]]
        while (offset := seen["next_offset"]) is not None:
            seen = await call("sessions", session=(await call("sessions"))["sessions"][0]["id"], turn=1, offset=offset)
            pages.append(seen["output"])
        assert "".join(pages) == whole
        assert len(pages) == len(whole.encode()) // 16_000 + 1

    _driven(place, doorward("mcp"), steps)


def test_a_call_that_is_cancelled_ends_its_command_and_the_session_goes_on(place: Place) -> None:
    fifo = place.project / "fifo"
    os.mkfifo(fifo)

    async def steps(call: Call, session: Any) -> None:
        first = await call("exec", command="echo hi")
        waiting = asyncio.create_task(call("exec", command="exec 3> fifo; echo here >&3; exec sleep 600"))
        with await asyncio.to_thread(fifo.open) as alive:
            assert await asyncio.to_thread(alive.readline) == "here\n"
            waiting.cancel()
            # the end of the file is the end of the last process that holds it
            assert await asyncio.to_thread(alive.read) == ""
        after = await call("exec", command="echo on")
        assert (after["output"], after["session"], after["turn"]) == ("on\n", first["session"], 3)

    _driven(place, doorward("mcp"), steps)


def test_without_the_sdk_the_remedy_is_named(place: Place) -> None:
    (place.base / "mcp.py").write_text("raise ModuleNotFoundError('mcp')")
    done = place.run(*doorward("mcp"), PYTHONPATH=str(place.base))
    assert done.returncode == 2
    assert "doorward[mcp]" in done.stderr


def test_a_mistake_in_the_options_is_told_at_once(place: Place) -> None:
    done = place.doorward("mcp", "--allow", "*.com")
    assert done.returncode == 2
    assert done.stdout == ""


def test_somebody_elses_server_behind_the_doors(place: Place) -> None:
    """Its streams are untouched, so a client sees no difference but what is refused."""
    (place.project / "server.py").write_text(_SERVER)

    async def steps(call: Call, session: Any) -> None:
        big = "ü" * 200_000
        assert (await call("echo", text=big))["text"] == big
        assert (await call("touch", path="inside"))["text"] == "made"
        assert (await call("touch", path="/opt/x"))["text"] in ("Read-only file system", "Permission denied")
        assert (await call("fetch", url="http://b.test/"))["text"] == "403"

    # a /tmp of its own would hide an interpreter that lies there
    needed = (sys.prefix, str(Path(mcp.__file__).parents[1]))
    shown = [word for folder in needed if folder.startswith("/tmp/") for word in ("--add-dir", folder)]
    argv = doorward("run", "--no-record-output", "--allow", "a.test", *shown, "--", sys.executable, "server.py")
    _driven(place, argv, steps)
    assert (place.project / "inside").exists()
    assert not Path("/opt/x").exists()
    [session] = place.sessions()
    assert session["refused"] == 1
    assert set(os.listdir(place.project)) == {"server.py", "inside"}

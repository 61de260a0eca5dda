"""`doorward mcp`: the tools `exec`, `check` and `sessions` for any MCP client, over standard input and output."""

from __future__ import annotations

import sys
from typing import Any

from doorward.commands.run_options import POLICY_OPTIONS, RUN_OPTIONS, opening_of
from doorward.errors import UsageError
from doorward.options import HelpWanted, Parsed, help_text, parse

_OPTIONS = (*POLICY_OPTIONS, *(option for option in RUN_OPTIONS if option.name in ("session", "name")))


def main(args: list[str]) -> int:
    """Serve until standard input ends."""
    try:
        parsed = parse("mcp", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward mcp [options]",
                "An MCP server on standard input and output: run commands behind the doors, ask the gates, read what\n"
                "was recorded. The options are those its commands run with.",
                _OPTIONS,
                ("doorward mcp --allow @pip",),
            )
        )
        return 0
    if parsed.words:
        raise UsageError(f"doorward mcp: {parsed.words[0]!r} is no option; a server of its own: doorward run -- SERVER")
    server_class = _server_class()

    import asyncio

    asyncio.run(_serve(server_class, parsed))
    return 0


def _server_class() -> Any:
    """The SDK's: `MCPServer` since its version 2, `FastMCP` before. Raises UsageError."""
    try:
        try:
            from mcp.server.mcpserver import MCPServer

            return MCPServer
        except ModuleNotFoundError:
            from mcp.server.fastmcp import FastMCP

            return FastMCP
    except ModuleNotFoundError:
        raise UsageError(
            "doorward mcp: the MCP SDK is not installed in this Python; pip install 'doorward[mcp]' (or: mcp)"
        ) from None


async def _serve(server_class: Any, parsed: Parsed) -> None:
    from doorward.agents.mcp_tools import TOOLS, Tools

    tools = Tools(opening_of("mcp", parsed))
    await tools.opened()  # a mistake in the options is told now, and not at the first call
    server = server_class("doorward", log_level="ERROR")
    for name, description in TOOLS.items():
        server.add_tool(getattr(tools, name), name=name, description=description)
    try:
        await server.run_stdio_async()
    finally:
        await tools.close()

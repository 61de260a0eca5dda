"""P-EV-12, files: a proxy in a tool's own file goes before the variables; what docs/clients.md advises helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

DEAD = "http://127.0.0.1:9"
PROXY = "http://127.0.0.1:3128"


class Tool(NamedTuple):
    """A file below the home folder, what stands in it, the command, and the words that help (`advice` in the docs)."""

    file: str
    content: str
    command: tuple[str, ...]
    advice: tuple[str, ...]


TOOLS = {
    "curl": Tool(".curlrc", f'proxy = "{DEAD}"\n', ("curl", "-sS", "--max-time", "20", "URL"), ("curl", "-q")),
    "wget": Tool(
        ".wgetrc", f"http_proxy = {DEAD}\ntries = 1\n", ("wget", "-qO-", "--tries=1", "URL"), ("wget", "--no-config")
    ),
    "git": Tool(
        ".gitconfig",
        f"[http]\n\tproxy = {DEAD}\n",
        ("git", "ls-remote", "URL"),
        ("git", "-c", f"http.proxy={PROXY}"),
    ),
    "npm": Tool(
        ".npmrc",
        f"proxy={DEAD}\nhttps-proxy={DEAD}\n",
        ("npm", "ping", "--fetch-retries=0", "--registry", "URL"),
        ("npm", f"--proxy={PROXY}", f"--https-proxy={PROXY}"),
    ),
}


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_dead_proxy_in_a_tools_own_file(doorward: Any, web: Any, client: Callable[[str], str], name: str) -> None:
    """The request without the advice never arrives; with it, it meets the rules (here: an origin that has no such
    page will do, a request that arrived is the proof)."""
    client(name)
    tool = TOOLS[name]
    (doorward.user / tool.file).write_text(tool.content)
    words = [word.replace("URL", web.url(path="/x")) for word in tool.command]
    dead = doorward(*web.reach(), "--", *words)
    assert (dead.reasons, web.paths) == ([], []), dead.output
    assert dead.status != 0
    doorward(*web.reach(), "--", *tool.advice, *words[1:])
    assert web.paths

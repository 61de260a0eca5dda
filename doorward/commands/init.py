"""`doorward init`: a commented configuration for this project, with presets for the tools it uses."""

from __future__ import annotations

import json
import os
import sys

from doorward.errors import EngineError, Refused
from doorward.options import HelpWanted, Option, help_text, parse
from doorward.project_tools import fetch_preset, proposal, secrets_of, tools_of
from doorward.summary import printable
from doorward.working_folder import working_folder

_OPTIONS = (
    Option("write", "write .doorward/config.toml; without it the text is only printed"),
    Option("cd", "the project is there", "DIR", "C"),
    Option("json", "what was found, as one JSON document"),
)
_FILE = ".doorward/config.toml"


def main(args: list[str]) -> int:
    """Print or write the proposal. Raises UsageError, Refused (a file is there already), EngineError."""
    try:
        parsed = parse("init", _OPTIONS, args)
    except HelpWanted:
        what = "Propose a configuration for this project: presets for its tools, and files that commands need not read."
        examples = ("doorward init", "doorward init --write")
        sys.stdout.write(help_text("doorward init [--write]", what, _OPTIONS, examples))
        return 0
    folder = working_folder(parsed.last("cd") or None)
    names = os.listdir(folder)
    tools, secrets, fetch = tools_of(names), secrets_of(names), fetch_preset(_remote(folder))
    text = proposal(tools, secrets, fetch)
    path = os.path.join(folder, _FILE)
    written = parsed.has("write")
    if written:
        _write(path, text)
    if parsed.has("json"):
        document = {
            "presets": [{"preset": f"@{tool.preset}", "because": list(tool.because)} for tool in tools],
            "secrets": secrets,
            "fetch": None if fetch is None else f"@{fetch}",
            "written": path if written else None,
        }
        sys.stdout.write(json.dumps(document) + "\n")
        return 0
    if not written:
        sys.stdout.write(text)
    said = f"written: {path}; it counts once the project is trusted: doorward trust" if written else (
        f"nothing was written; `doorward init --write` makes {_FILE} of this"
    )  # fmt: skip
    sys.stderr.write(printable(f"doorward: {said}") + "\n")
    return 0


def _remote(folder: str) -> str:
    """The address of `origin`, read by git itself; "" without one."""
    import subprocess

    words = ["git", "-C", folder, "config", "--get", "remote.origin.url"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _write(path: str, text: str) -> None:
    """Make the file; one that is there is never touched."""
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
        if os.path.islink(folder):
            raise Refused(f"doorward init: {folder} is a link; a project's configuration is only made where it is")
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        remedy = "edit it, or use `doorward allowlist add --project`"
        raise Refused(f"doorward init: {path} is there already; {remedy}") from None
    except OSError as error:
        raise EngineError(f"cannot write {path}: {error.strerror}") from None

"""From argv to what CreateProcess takes: the program's file, one command line, one block of variables. Pure.

Sources: "Parsing C command-line arguments" and "CreateProcessW" (learn.microsoft.com).
"""

import ntpath
from collections.abc import Callable, Mapping
from typing import Final

from doorward.launcher.interface import LaunchFailure
from doorward.launcher.windows_errors import store_alias
from doorward.named_tuple import NamedTuple

# CreateProcessW: lpCommandLine, its terminating NUL included.
_LONGEST: Final = 32767
_PATHEXT: Final = ".COM;.EXE;.BAT;.CMD"
# cmd.exe reads these again after the quoting of arguments is gone; no way to quote them is safe in every script.
_UNSAFE_IN_BATCH: Final = frozenset('"%^&|<>!()\r\n')


class Program(NamedTuple):
    """What is started: the file, and the whole command line."""

    path: str
    command_line: str


def find_program(
    argv: tuple[str, ...],
    env: Mapping[str, str],
    cwd: str,
    is_file: Callable[[str], bool],
    is_store_alias: Callable[[str], bool],
) -> Program | LaunchFailure:
    """Looks `argv[0]` up in PATH (never in the working folder) with the endings of PATHEXT.

    A store alias counts only if nothing else has the name, and is then explained.
    """
    if not argv or not argv[0]:
        return LaunchFailure("malformed", "There is no command to run.")
    if any("\0" in text for text in (*argv, cwd)):
        return LaunchFailure("malformed", "An argument holds a NUL character, which no program can be given.")
    variables = {name.upper(): value for name, value in env.items()}
    name = argv[0]
    endings = [ending for ending in variables.get("PATHEXT", _PATHEXT).split(";") if ending]
    if not any(name.upper().endswith(ending.upper()) for ending in endings):
        names = [name + ending.lower() for ending in endings]
    else:
        names = [name]
    if ntpath.dirname(name.replace("/", "\\")) or ntpath.splitdrive(name)[0]:
        folders = [cwd]
    else:
        folders = [folder.strip('"') for folder in variables.get("PATH", "").split(";") if folder]
    alias = ""
    for folder in folders:
        for each in names:
            path = ntpath.normpath(ntpath.join(folder, each.replace("/", "\\")))
            if is_store_alias(path):
                alias = alias or path
            elif is_file(path):
                return _started(path, argv, variables)
    if alias:
        return store_alias(alias)
    return LaunchFailure("not-found", f"{name}: command not found.")


def _started(path: str, argv: tuple[str, ...], variables: Mapping[str, str]) -> Program | LaunchFailure:
    if path.lower().endswith((".bat", ".cmd")):
        if any(not _UNSAFE_IN_BATCH.isdisjoint(text) for text in (path, *argv[1:])):
            return LaunchFailure(
                "malformed",
                f"{path} is a batch file, and an argument has a character that cmd.exe would take for its own.",
                "Start the program that the batch file starts.",
            )
        root = variables.get("SYSTEMROOT", r"C:\Windows")
        shell = ntpath.join(root, "System32", "cmd.exe")
        # /d: no AutoRun of the registry; /s: the outermost quotes are dropped and nothing else
        line = f'{_quoted(shell)} /d /s /c "{command_line((path, *argv[1:]))}"'
        found = Program(shell, line)
    else:
        found = Program(path, command_line((path, *argv[1:])))
    if len(found.command_line) >= _LONGEST:
        return LaunchFailure(
            "too-large", f"The command line has {len(found.command_line)} characters; Windows takes {_LONGEST - 1}."
        )
    return found


def command_line(argv: tuple[str, ...]) -> str:
    """One string that a C program takes apart into `argv` again."""
    return " ".join(map(_quoted, argv))


def _quoted(text: str) -> str:
    quotes = '"' if not text or any(letter in text for letter in " \t\n\v") else ""
    out = []
    backslashes = 0
    for letter in text:
        if letter == "\\":
            backslashes += 1
            continue
        # backslashes count only in front of a quote, where each is doubled
        out.append("\\" * (backslashes * 2 + 1 if letter == '"' else backslashes) + letter)
        backslashes = 0
    out.append("\\" * (backslashes * 2 if quotes else backslashes))
    return quotes + "".join(out) + quotes


def environment_block(env: Mapping[str, str]) -> str | LaunchFailure:
    """The variables as CREATE_UNICODE_ENVIRONMENT takes them: sorted by name, each ended by NUL, and one more NUL."""
    named: dict[str, tuple[str, str]] = {}
    for name, value in env.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            return LaunchFailure("malformed", f"The variable {name!r} cannot be passed on.")
        named[name.upper()] = (name, value)
    return "".join(f"{name}={value}\0" for _, (name, value) in sorted(named.items())) + "\0"

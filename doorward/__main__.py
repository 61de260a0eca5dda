"""`doorward` and `python -m doorward`: picks the command's module, and imports no other."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "run": "run a command behind the doors",
    "check": "what the gates would say, nothing run",
    "init": "propose a configuration for this project: presets for its tools",
    "proxy": "the network door alone: a proxy that reaches what its rules allow",
    "policy": "what rules files say about a command",
    "allowlist": "the network rules: show, test, add, remove, presets, learn",
    "approvals": "the questions that wait for an answer: list, show, allow, deny",
    "features": "the switches there are: list, enable, disable",
    "trust": "trust a project, or mark it untrusted",
    "hook": "answer a coding agent's hook; install, uninstall",
    "mcp": "an MCP server whose commands run behind the doors",
    "sessions": "the sessions there are, newest first",
    "show": "print a session's rollout",
    "summary": "what sessions reached and were refused, for a CI job's summary",
    "import": "another sandbox's settings as configuration of doorward's own",
    "explain": "which doors could refuse, and did; what can be rebuilt; where a value was seen",
    "replay": "a session again, at once, at its pace, or under other rules",
    "export": "one page of a session, readable offline",
    "resume": "one more command in a session, or where it stands",
    "fork": "a new session that goes on from a point of another",
    "rename": "name a session",
    "archive": "put a session aside",
    "unarchive": "bring an archived session back",
    "delete": "remove a session for good",
    "verify": "are rollouts as they were written",
    "doctor": "what this machine can enforce, and the remedy for what it cannot",
    "completion": "a script that completes these words in bash, zsh or fish",
}

_USAGE = """doorward runs a command you do not fully trust: confined, reaching only an allowlist, with a log.

  doorward run --allow @pip -- pip install six
  doorward run --allow example.com -- sh -c 'curl -sS https://example.com/'

What it stops: writes outside the workspace, network beyond the rules, credentials in the environment.
What it does not stop: anything the allowed hosts and the workspace themselves make possible.

"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status; argument errors are 2."""
    args = list(sys.argv[1:] if argv is None else argv)
    if sys.platform == "win32" and args and args[0] not in ("-h", "--help", "help", "-V", "--version", "version"):
        from doorward.commands.elsewhere import nothing_here

        return nothing_here(sys.platform)
    if sys.platform != "win32":
        from doorward import own_modules

        own_modules.install()
    if args and args[0] == "run":
        # the start-up path: the proxy is forked before anything else is imported
        import gc

        # one short-lived process that makes few cycles: collecting while modules are imported costs every run
        gc.disable()
        from doorward.commands import run

        return run.main(args[1:])
    return _other(args)


def _other(args: list[str]) -> int:
    from doorward.commands.dispatch import dispatch

    return dispatch(args, COMMANDS, _USAGE)


def script() -> None:
    """The console script. Ends without tearing the interpreter down: all that must be written has been."""
    import os

    status = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # its reader has left, or it was closed before the start
    os._exit(status)


if __name__ == "__main__":
    script()

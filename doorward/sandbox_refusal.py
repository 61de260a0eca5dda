"""What the operating system's door refused, in the keys of a network refusal, so that one reader serves both."""

from __future__ import annotations

import os

from doorward.launcher.interface import Denied, SandboxPolicy, Undone
from doorward.launcher.rules import is_system_folder

_NOT_GRANTED = ("/proc/", "/sys/", "/dev/")


def refusal_of_undone(undone: Undone) -> dict[str, object]:
    """The refusal of something made under a protected name, which was put back when the command had ended."""
    message = f"{undone.path} is protected: {undone.what}" + (f" ({undone.detail})" if undone.detail else "")
    return _refusal("protected_path", message, f"--add-dir {_word(undone.path)}", undone.path, "create")


def refusal_of_denied(denied: Denied, policy: SandboxPolicy) -> dict[str, object]:
    """The refusal of a call that the kernel did not let through."""
    grant, message, hint = denied.grant, "", f"--add-dir {_word(denied.grant)}"
    match denied.why:
        case "hidden":
            message, hint = "is hidden inside", f"leave out the --deny-read that matches {_word(grant)}"
        case "socket":
            message, hint = "is a socket of this machine", f"--allow-unix {_word(grant)}"
        case "private":
            message = f"is not there: the sandbox has its own /{grant.split('/')[1]}"
        case "protected" if any(os.path.join(policy.workspace, entry) == grant for entry in policy.read_only):
            message, hint = "is kept as it is by a rule", f"leave out --read-only {_word(grant)}"
        case "protected":
            message = "is protected" if grant == denied.path else f"is protected with {grant}"
        case _ if f"{grant}/".startswith(f"{policy.workspace.rstrip('/')}/"):
            message, hint = "cannot be written in this mode", "-s workspace-write"
        case _:
            message = "lies outside of what may be written"
    if f"{grant}/".startswith(_NOT_GRANTED):
        hint = ""
    elif denied.why == "outside" and is_system_folder(grant):
        # never writable as a whole; a file in it may be, where it is there to be written
        there = denied.operation == "write" and os.path.isfile(denied.path)
        hint = f"--add-dir {_word(denied.path)}" if there else ""
    reason = f"{denied.why}_{'path' if denied.why != 'socket' else 'not_allowed'}"
    return _refusal(reason, f"{denied.path} {message} ({denied.operation})", hint, denied.path, denied.operation)


def _refusal(reason: str, message: str, hint: str, path: str, operation: str) -> dict[str, object]:
    return {
        "status": "blocked",
        "host": None,
        "port": None,
        "protocol": None,
        "method": None,
        "decision": "deny",
        "reason": reason,
        "source": "sandbox",
        "rule": None,
        "message": message,
        "hint": hint,
        "path": path,
        "operation": operation,
        "class": "blocked-by-sandbox",
    }


def _word(path: str) -> str:
    from doorward.sessions.items import command_line

    return command_line((path,))

"""The options that `run`, `check` and the like share, and what they mean as configuration."""

from __future__ import annotations

from doorward.errors import UsageError
from doorward.options import Option, Parsed
from doorward.working_folder import working_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

POLICY_OPTIONS = (
    Option("sandbox", "what may be written (default workspace-write)", "MODE", "s",
           ("read-only", "workspace-write", "danger-full-access")),
    Option("ask-for-approval", "when a person is asked (default on-request)", "POLICY", "a",
           ("untrusted", "on-failure", "on-request", "never")),
    Option("cd", "run there; the folder is the workspace", "DIR", "C"),
    Option("add-dir", "one more folder that may be written", "DIR", repeat=True),
    Option("read-only", "never write to these, although they lie in the workspace", "PATH", repeat=True),
    Option("deny-read", "never read these", "PATH", repeat=True),
    Option("allow-unix", "a unix socket of the host that may be reached", "PATH", repeat=True),
    Option("network", "what can be reached at all (default: follows -s)", "MODE",
           choices=("off", "limited", "proxied", "full")),
    Option("allow", "a host, address or @preset that may be reached", "RULE", repeat=True),
    Option("deny", "one that may not, whatever else allows it", "RULE", repeat=True),
    Option("observe", "let pass what no rule allows, and record it; deny rules and the local guard hold"),
    Option("inspect", "look into every TLS tunnel, not only where a rule needs it"),
    Option("allow-loopback", "ports of this machine's loopback that appear inside", "PORT[,…]|all", repeat=True),
    Option("publish", "a server inside that this machine reaches", "PORT[:HERE]|auto", repeat=True),
    Option("pass-env", "hand this variable over although its name looks like a credential", "NAME", repeat=True),
    Option("enable", "a feature to switch on for this run", "FEATURE", repeat=True),
    Option("disable", "a feature to switch off for this run", "FEATURE", repeat=True),
    Option("config", "any configuration key", "KEY=VALUE", "c", repeat=True),
    Option("profile", "a profile of $DOORWARD_HOME/profiles", "NAME"),
    Option("require", "refuse to run with less than this (default full)", "LEVEL", choices=("full", "best-effort")),
    Option("explain-denials", "if the command fails, say what the sandbox refused it (makes changes of files slower)"),
    Option("memory", "no more memory than this (512M, 2G)", "SIZE"),
    Option("pids", "no more processes and threads than this", "N"),
    Option("cpu-time", "no more processor time than this (90s, 5m)", "DURATION"),
    Option("files", "no more open files a process than this", "N"),
    Option("user", "run the command as this user (root only)", "NAME"),
    Option("dangerously-bypass-approvals-and-sandbox", "no approvals, no sandbox; the rollout and `forbidden` stay"),
    Option("dangerously-bypass-hook-trust", "let hooks run that nobody trusted, for this call"),
)  # fmt: skip

RUN_OPTIONS = (
    *POLICY_OPTIONS,
    Option("session", "go on with this session (UUID or name)", "SESSION"),
    Option("name", "name the new session", "NAME"),
    Option("json", "print one JSON document, the observation, instead of the command's output"),
    Option("no-record-output", "do not read or record the command's output"),
    Option("timeout", "end the command after this long (TERM, then KILL 2 s later)", "SECONDS"),
    Option("fail-on-deny", "exit 121 if something was refused though the command exited 0"),
    Option("agent", "a coding agent runs this in its shell (agents/arrival.py)", "MARK", hidden=True),
    Option("approved", "a person's yes, given through an agent (agents/one_time_yes.py)", "SECRET", hidden=True),
)

_FLAGS = {
    "sandbox": "sandbox_mode",
    "ask-for-approval": "approval_policy",
    "network": "network.mode",
    "require": "require",
    "memory": "limits.memory",
    "cpu-time": "limits.cpu_time",
}
_NUMBERS = {"pids": "limits.pids", "files": "limits.files"}
_LISTS = {
    "add-dir": "filesystem.write",
    "read-only": "filesystem.read_only",
    "deny-read": "filesystem.deny_read",
    "allow-unix": "filesystem.allow_unix",
    "allow": "network.allow",
    "deny": "network.deny",
    "allow-loopback": "network.loopback",
    "publish": "network.publish",
    "pass-env": "env.pass",
}


def opening_of(command: str, parsed: Parsed) -> dict[str, Any]:
    """The document `opening.open_supervisor` reads, from the options given."""
    flags: dict[str, object] = {key: parsed.last(name) for name, key in _FLAGS.items() if parsed.has(name)}
    flags |= {key: _number(parsed.last(name)) for name, key in _NUMBERS.items() if parsed.has(name)}
    if parsed.has("explain-denials"):
        flags["sandbox.explain"] = True
    flags |= {key: list(parsed.all(name)) for name, key in _LISTS.items() if parsed.has(name)}
    if parsed.has("observe"):
        flags["network.observe"] = True
    if parsed.has("inspect"):
        flags["inspect.all"] = True
    for switch, on in (("enable", True), ("disable", False)):
        flags |= {f"features.{name}": on for name in parsed.all(switch)}
    return {
        "flags": flags,
        "overrides": list(parsed.all("config")),
        "cwd": parsed.last("cd") or None,
        "profile": parsed.last("profile") or None,
        "session": parsed.last("session") or None,
        "name": parsed.last("name") or None,
        "user": parsed.last("user") if parsed.has("user") else None,
        "bypass_hook_trust": parsed.has("dangerously-bypass-hook-trust"),
        "bypass": parsed.has("dangerously-bypass-approvals-and-sandbox"),
        "interactive": not parsed.has("json") and not parsed.has("agent"),
        "approved": parsed.last("approved") or None,
    }


def command_of(command: str, parsed: Parsed) -> tuple[tuple[str, ...], str]:
    """The command and its working folder. Raises UsageError without one, or for a folder that is not there."""
    if not parsed.words:
        raise UsageError(f"doorward {command}: no command given; doorward {command} -- CMD")
    return parsed.words, working_folder(parsed.last("cd") or None)


def _number(text: str) -> int | str:
    """What is no number stays text, and is told as a mistake where the key is checked."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else text


def seconds(command: str, name: str, text: str) -> float:
    """A positive number of seconds. Raises UsageError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise UsageError(f"doorward {command}: --{name} takes a positive number of seconds, not {text!r}")
    return value

"""A session keeps the sandbox it began with when it is gone on with: its profile is pinned, only a stricter one passes.

What was given when the session began holds again without being given again: mode, network mode, folder, writable and
hidden paths. Options may tighten it for a turn. Network rules are not part of it: each turn has its own, recorded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from doorward.configuration_schema import NETWORK_OF_MODE
from doorward.errors import EngineError, UsageError
from doorward.launcher.interface import Limits, SandboxPolicy
from doorward.named_tuple import NamedTuple
from doorward.sessions.home import Home, StoreError, default_home
from doorward.sessions.line import Line
from doorward.sessions.lookup import SessionLookupError, SessionRef, find_session

_MODES = ("read-only", "workspace-write", "danger-full-access", "unconfined")
"""Strictest first; `unconfined` is the bypass flag."""
_NETWORKS = ("off", "limited", "proxied", "full")
_REQUIRES = ("full", "best-effort")

Profile = Mapping[str, Any]


class Pinned(NamedTuple):
    """The session to go on with. `options` are those of the run, with what the profile adds."""

    id: str
    path: str
    profile: Profile
    options: Mapping[str, Any]
    agent: str | None = None
    """An agent's session, which may have several rollouts: `path` is the first."""

    def check(self, sandbox: SandboxPolicy, network: str) -> None:
        """Raises UsageError where `sandbox` is looser than what the session began with, or the mode `network` is."""
        looser = _looser(self.profile, sandbox, network)
        began, user = self.profile.get("user"), None if sandbox.user is None else sandbox.user.name
        if began is not None and user != began:
            looser.append(f"the user is {user}, and it began as {began}")
        if looser:
            raise UsageError(
                f"doorward: session {self.id} is pinned to the sandbox it began with, and this is looser: "
                f"{'; '.join(looser)}. Leave that out, or start a new session"
            )


def pinned_session(options: Mapping[str, Any], env: Mapping[str, str]) -> Pinned:
    """The session that `options` name. Raises UsageError: unknown, ambiguous, archived, or named anew; EngineError."""
    if options.get("name") is not None:
        raise UsageError("doorward: --session goes on with a session that has its name; --name is for a new one")
    try:
        home = Home(options.get("home") or default_home(env))
        agent = _agents(home, options["session"])
        found = find_session(home, options["session"]) if agent is None else agent
        if found.archived:
            raise UsageError(f"doorward: the session is archived; doorward unarchive {found.id}")
        profile = profile_of(home, found.id, found.path)
    except SessionLookupError as error:
        raise UsageError(f"doorward: {error.sentence}; {error.remedy}") from None
    except StoreError as error:
        raise EngineError(str(error)) from None
    reference = None if agent is None else str(options["session"])
    return Pinned(found.id, found.path, profile, _filled_in(options, profile), reference)


def _agents(home: Home, text: str) -> SessionRef | None:
    """The first rollout of an agent's session, where `text` is `AGENT:ID` and the agent's hook has begun it."""
    if ":" not in text:
        return None
    from doorward.agents.rollouts import first_rollout
    from doorward.sessions.ids import session_in

    path = first_rollout(home, text)
    identifier = None if path is None else session_in(os.path.basename(path))
    return None if path is None or identifier is None else SessionRef(identifier, text, path, archived=False)


def profile_of(home: Home, session: str, path: str) -> Profile:
    """The profile in a session's first record; for sessions of other writers an empty one, which pins nothing.

    Raises StoreError.
    """
    from doorward.sessions.reading import read_lines

    for line in read_lines(path):
        if isinstance(line, Line) and line.type == "session_meta" and line.payload.get("id") == session:
            profile = line.payload.get("sandbox_profile")
            return profile if isinstance(profile, dict) else {}
        if isinstance(line, Line) and line.type == "turn_context":
            # sessions from before the profile stood in the first record
            doorward = line.payload.get("doorward")
            sandbox = doorward.get("sandbox") if isinstance(doorward, dict) else None
            return sandbox if isinstance(sandbox, dict) else {}
    return {}


def _filled_in(options: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    """The profile's values as if they had been given as options again, except where something was given."""
    given: dict[str, object] = dict(options.get("flags", {}))
    filled = dict(given)
    mode, network = profile.get("mode"), profile.get("network")
    if mode in _MODES[:3] and "sandbox_mode" not in given:
        filled["sandbox_mode"] = mode
    if network in _NETWORKS and "network.mode" not in given:
        natural = NETWORK_OF_MODE.get(str(filled.get("sandbox_mode")), network)
        filled["network.mode"] = min(network, natural, key=_NETWORKS.index)
    if profile.get("require") in _REQUIRES and "require" not in given:
        filled["require"] = profile["require"]
    for key in ("write", "read_only", "deny_read", "allow_unix"):
        filled[f"filesystem.{key}"] = _joined(profile.get(key), given.get(f"filesystem.{key}"))
        if not filled[f"filesystem.{key}"]:
            del filled[f"filesystem.{key}"]
    filled |= {f"limits.{name}": value for name, value in _limits(profile).items() if f"limits.{name}" not in given}
    cwd = options.get("cwd")
    workspace = profile.get("workspace")
    if cwd is None and isinstance(workspace, str):
        if not os.path.isdir(workspace):
            raise UsageError(f"doorward: the session's folder {workspace} is gone; -C DIR names one below it")
        cwd = workspace
    user = options.get("user")
    if profile.get("user") is not None and user is None:
        user = profile["user"]
    return {**options, "flags": filled, "cwd": cwd, "user": user}


def _joined(*lists: object) -> list[object]:
    found: list[object] = []
    for each in lists:
        if isinstance(each, list | tuple):
            found += [entry for entry in each if entry not in found]
    return found


def _looser(profile: Profile, now: SandboxPolicy, network: str) -> list[str]:
    """What is looser, one phrase each."""
    found = []
    for key, scale, value in (
        ("mode", _MODES, str(now.mode)),
        ("network", _NETWORKS, network),
        ("require", _REQUIRES, now.require),
    ):
        pinned = profile.get(key)
        if pinned in scale and value in scale and scale.index(value) > scale.index(pinned):
            found.append(f"{key} is {value}, and it began with {pinned}")
    workspace = profile.get("workspace")
    writable = (str(workspace), *_texts(profile, "write"))
    if isinstance(workspace, str) and str(now.mode) != "read-only":
        found += [f"{path} would be writable" for path in (now.workspace, *now.write) if not _below(path, writable)]
    for key, what, kept in (
        ("deny_read", "hidden", now.deny_read),
        ("read_only", "read-only", now.read_only),
    ):
        found += [f"{path} would not be {what}" for path in _texts(profile, key) if path not in kept]
    for name, most in _limits(profile).items():
        limit = now.limits.set_values().get(name)
        if limit is None or limit > most:
            found.append(f"limits.{name} is {'none' if limit is None else limit}, and it began with {most}")
    if isinstance(workspace, str):
        found += [f"{path} could be reached" for path in now.allow_unix if path not in _texts(profile, "allow_unix")]
    return found


def _limits(profile: Profile) -> dict[str, int | float]:
    limits = profile.get("limits")
    return {} if not isinstance(limits, dict) else {
        name: value for name, value in limits.items() if name in Limits._fields and type(value) in (int, float)
    }  # fmt: skip


def _texts(profile: Profile, key: str) -> tuple[str, ...]:
    value: object = profile.get(key)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, Sequence) else ()


def _below(path: str, roots: Sequence[str]) -> bool:
    real = os.path.realpath(path)
    return any(path == root or f"{real}/".startswith(f"{os.path.realpath(root).rstrip('/')}/") for root in roots)

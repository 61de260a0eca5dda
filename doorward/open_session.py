"""`open_session` and its async twin: the options of `doorward run` as keyword arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from doorward.session import Session

if TYPE_CHECKING:
    from doorward.async_session import AsyncSession

Path = str | os.PathLike[str]
Rule = str | Mapping[str, object]


def open_session(
    *,
    allow: Sequence[Rule] = (),
    deny: Sequence[Rule] = (),
    sandbox: str | None = None,
    approval: str | None = None,
    network: str | None = None,
    cwd: Path | None = None,
    add_dirs: Sequence[Path] = (),
    read_only: Sequence[Path] = (),
    deny_read: Sequence[Path] = (),
    allow_loopback: Sequence[int | str] = (),
    publish: Sequence[int | str] = (),
    pass_env: Sequence[str] = (),
    hosts: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    profile: str | None = None,
    home: Path | None = None,
    session: str | None = None,
    name: str | None = None,
    user: str | None = None,
) -> Session:
    """Open a session: one policy, one rollout, one proxy, for many commands.

    `allow` and `deny` are network rules ("example.com", "*.example.com:8443", "@pip", or a table as in the
    configuration); `sandbox` is "read-only", "workspace-write" (default) or "danger-full-access"; `approval` is
    "untrusted", "on-request" (default), "on-failure" or "never" (nobody can be asked here, so an ask is a refusal);
    `allow_loopback` are ports of this machine's loopback that appear inside (or "all"), `publish` servers inside that
    it reaches (8000, "8000:18000" or "auto");
    `network` is "off", "proxied" or "full" and follows the sandbox mode; `cwd` is the workspace (default: here);
    `config` holds any other configuration keys, dotted; `home` replaces $DOORWARD_HOME; `session` goes on with an
    existing session by UUID or name, `name` names a new one; `user` is whom commands run as, where root asks.

    Raises UsageError for options that make no sense, EngineError if this machine cannot enforce them.
    """
    return Session(_options(locals()))


def open_session_async(
    *,
    allow: Sequence[Rule] = (),
    deny: Sequence[Rule] = (),
    sandbox: str | None = None,
    approval: str | None = None,
    network: str | None = None,
    cwd: Path | None = None,
    add_dirs: Sequence[Path] = (),
    read_only: Sequence[Path] = (),
    deny_read: Sequence[Path] = (),
    allow_loopback: Sequence[int | str] = (),
    publish: Sequence[int | str] = (),
    pass_env: Sequence[str] = (),
    hosts: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    profile: str | None = None,
    home: Path | None = None,
    session: str | None = None,
    name: str | None = None,
    user: str | None = None,
) -> AsyncSession:
    """As `open_session`, to be used with `async with`; errors are raised on entering."""
    from doorward.async_session import AsyncSession  # asyncio is paid for by its users only

    return AsyncSession(_options(locals()))


_KEYS = {
    "allow": "network.allow",
    "deny": "network.deny",
    "sandbox": "sandbox_mode",
    "approval": "approval_policy",
    "network": "network.mode",
    "add_dirs": "filesystem.write",
    "read_only": "filesystem.read_only",
    "deny_read": "filesystem.deny_read",
    "allow_loopback": "network.loopback",
    "publish": "network.publish",
    "pass_env": "env.pass",
    "hosts": "network.hosts",
}


def _plain(value: object) -> object:
    if isinstance(value, int):
        return value
    return dict(value) if isinstance(value, Mapping) else os.fsdecode(value)  # type: ignore[arg-type]


def _options(given: Mapping[str, Any]) -> dict[str, object]:
    """The document `opening.open_supervisor` reads, from the keyword arguments."""
    flags: dict[str, object] = {}
    for argument, key in _KEYS.items():
        value = given[argument]
        if value is None or value == ():
            continue
        if isinstance(value, str):
            flags[key] = value
        elif isinstance(value, Mapping):
            flags[key] = dict(value)
        else:
            flags[key] = [_plain(each) for each in value]
    flags.update(given["config"] or {})
    return {
        "flags": flags,
        "source": "api",
        "cwd": os.path.abspath(os.fsdecode(given["cwd"])) if given["cwd"] is not None else None,
        "home": os.path.abspath(os.fsdecode(given["home"])) if given["home"] is not None else None,
        "profile": given["profile"],
        "session": given["session"],
        "name": given["name"],
        "user": given["user"],
    }

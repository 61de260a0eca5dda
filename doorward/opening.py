"""From the options of a run or a library session to its supervisor: configuration, plan, rollout."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from doorward.configuration import Configuration, load
from doorward.errors import EngineError, UsageError
from doorward.gates.dial import NETWORK_OF_MODE, Dial, NetworkMode, SandboxMode, nothing_listed
from doorward.launcher.interface import Mode, Network, SandboxPolicy
from doorward.plan import Plan
from doorward.proxy_process import ProxyProcess
from doorward.session_log import SessionLog, TurnContext
from doorward.sessions.home import Home, StoreError, default_home
from doorward.sessions.items import codex_sandbox_policy, policy_digest
from doorward.supervisor import Supervisor

_NETWORK: dict[NetworkMode, Network] = {
    NetworkMode.OFF: "off",
    NetworkMode.PROXIED: "proxied",
    NetworkMode.FULL: "full",
}


def open_supervisor(options: Mapping[str, Any], proxy: ProxyProcess | None) -> Supervisor:
    """The supervisor for `options` (see `commands/run_options.opening_of`). Raises UsageError, EngineError."""
    plan = plan_for(options, os.environ)
    session, name = options.get("session"), options.get("name")
    open_log = _log_opener(plan.home, plan.dial.workspace, session, name)
    ask = None
    if options.get("interactive"):
        from doorward.ask import ask_on_terminal, can_ask

        ask = ask_on_terminal if can_ask() else None
    from doorward.launcher.backend import backend

    return Supervisor(plan, proxy, backend(), open_log, ask=ask)


def plan_for(options: Mapping[str, Any], env: Mapping[str, str]) -> Plan:
    """Read the configuration and decide everything that is decided before a session starts."""
    home, cwd, configuration = _loaded(options, env)
    return _plan(configuration, home, cwd, env, bypass=bool(options.get("bypass")))


def settings_for(options: Mapping[str, Any], env: Mapping[str, str]) -> tuple[dict[str, object], tuple[str, ...]]:
    """The network rules alone, as the proxy would be sent them, and notices for a person."""
    from doorward.network_settings import network_settings

    home, _, configuration = _loaded(options, env)
    return network_settings(configuration, home, env)


def _loaded(options: Mapping[str, Any], env: Mapping[str, str]) -> tuple[Home, str, Configuration]:
    from doorward.commands.run_options import working_folder

    try:
        home = Home(options.get("home") or default_home(env))
    except StoreError as error:
        raise EngineError(str(error)) from None
    cwd = working_folder(options.get("cwd"))
    configuration = load(
        home=home.path,
        cwd=cwd,
        env=env,
        profile=options.get("profile"),
        overrides=options.get("overrides", ()),
        flags=options.get("flags", {}),
        source=options.get("source", "flag"),
    )
    return home, cwd, configuration


def _plan(configuration: Configuration, home: Home, cwd: str, env: Mapping[str, str], *, bypass: bool) -> Plan:
    mode = SandboxMode(configuration.text("sandbox_mode"))
    chosen = configuration.optional_text("network.mode")
    network = NetworkMode(chosen) if chosen is not None else NETWORK_OF_MODE[mode]
    _check_workspace(cwd, home)
    write = _paths(configuration.strings("filesystem.write"), cwd)
    sandbox = SandboxPolicy(
        mode=Mode.UNCONFINED if bypass else Mode(mode),
        workspace=cwd,
        write=write,
        read_only=_paths(configuration.strings("filesystem.read_only"), cwd),
        deny_read=_paths(configuration.strings("filesystem.deny_read"), cwd),
        allow_unix=_paths(configuration.strings("filesystem.allow_unix"), cwd),
        network=_NETWORK[network],
        home=home.path,
        require="full" if configuration.text("require") == "full" else "best-effort",
        cache_dir=home.cache,
    )
    proxied = network is NetworkMode.PROXIED and not bypass
    settings: Mapping[str, object] = {}
    notices: tuple[str, ...] = ()
    decide_host: Callable[[str, int], str] = nothing_listed
    if proxied:
        from doorward.network_settings import host_decider, network_settings

        settings, notices = network_settings(configuration, home, env)
        decide_host = host_decider(settings)
    features = frozenset(name for name, on in configuration.features().items() if on)
    dial = Dial(
        workspace=cwd,
        sandbox_mode=mode,
        approval_policy=configuration.text("approval_policy"),
        writable_roots=tuple(os.path.realpath(path) for path in write),
        read_only=_literal(sandbox.read_only),
        hidden=_literal(sandbox.deny_read),
        home=os.path.realpath(home.path),
        network=chosen,
        features=features,
        project_trust=configuration.project_trust,
        bypass_approvals_and_sandbox=bypass,
        canonical=os.path.realpath,
        decide_host=decide_host,
    )
    context = TurnContext(
        approval_policy=configuration.text("approval_policy"),
        sandbox_policy=codex_sandbox_policy(
            str(mode), writable_roots=write, network_access=network is not NetworkMode.OFF
        ),
        settings={
            "network": str(network),
            "rules": settings,
            "sandbox": sandbox._asdict(),
            "features": sorted(features),
        },
        digest=policy_digest({"sandbox": sandbox._asdict(), "bypass": bypass}),
    )
    return Plan(
        home=home,
        sandbox=sandbox,
        dial=dial,
        proxied=proxied,
        proxy_settings=settings,
        inherit=configuration.text("env.inherit"),
        pass_env=tuple(configuration.strings("env.pass")),
        context=context,
        notices=(*configuration.notices, *notices),
    )


def _paths(entries: Sequence[str], cwd: str) -> tuple[str, ...]:
    """Absolute paths (globs stay globs); `~` is the caller's home."""
    return tuple(os.path.join(cwd, os.path.expanduser(entry)) for entry in entries)


def _literal(paths: Sequence[str]) -> tuple[str, ...]:
    """Those the gates can compare with a declared write; what a glob matches is the kernel's to hold."""
    return tuple(os.path.realpath(path) for path in paths if not any(char in path for char in "*?["))


_SYSTEM_FOLDERS = frozenset(
    ("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt", "/opt",
     "/proc", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/usr/local", "/var", "/var/tmp")
)  # fmt: skip
_SYSTEM_TREES = (
    *("/boot/", "/dev/", "/etc/", "/proc/", "/sys/"),
    *(f"/usr/{part}/" for part in ("bin", "include", "lib", "lib64", "libexec", "sbin", "share")),
)


def _check_workspace(cwd: str, home: Home) -> None:
    """A workspace may be written: it is never the system, nor where doorward keeps its records (DESIGN §4)."""
    if cwd in _SYSTEM_FOLDERS or f"{cwd}/".startswith(_SYSTEM_TREES):
        raise UsageError(
            f"doorward: {cwd} is a system folder and cannot be the workspace; "
            "change to a project folder, or name one with -C"
        )
    store = os.path.realpath(home.path)
    if cwd == store or cwd.startswith(store + "/"):
        raise UsageError(f"doorward: {cwd} is where doorward keeps its records; the workspace must be another folder")


def _log_opener(home: Home, cwd: str, session: str | None, name: str | None) -> Any:
    if session is None:
        return lambda: SessionLog.create(home, cwd=cwd, name=name)
    if name is not None:
        raise UsageError("doorward: --session goes on with a session that has its name; --name is for a new one")
    from doorward.sessions.lookup import SessionLookupError, find_session

    try:
        found = find_session(home, session)
    except SessionLookupError as error:
        raise UsageError(f"doorward: {error.sentence}; {error.remedy}") from None
    if found.archived:
        raise UsageError(f"doorward: the session is archived; doorward unarchive {found.id}")
    return lambda: SessionLog.resume(home, found.path)

"""From the options of a run or a library session to its plan and its supervisor."""

from __future__ import annotations

import os
import sys

from doorward.configuration import Configuration, load
from doorward.configuration_schema import NETWORK_OF_MODE
from doorward.errors import EngineError, UsageError
from doorward.launcher.interface import Door, Limits, Mode, SandboxPolicy
from doorward.network_settings import asks_for_inspection, network_settings
from doorward.plan import Plan
from doorward.proxy_process import ProxyProcess
from doorward.sessions.home import Home, StoreError, default_home
from doorward.supervisor import Supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from doorward.gates.policy_rules import Policy
    from doorward.launcher.protocols import Backend


def open_supervisor(options: Mapping[str, Any], proxy: ProxyProcess | None, door: Backend) -> Supervisor:
    """The supervisor for `options` (see `commands/run_options.opening_of`). Raises UsageError, EngineError."""
    plan = plan_for(options, os.environ)
    worker = None
    if proxy is not None and plan.inspection is not None:
        from doorward.inspection_run import RunInspection  # only for those who need it

        worker = RunInspection(plan.inspection, proxy, other_user=plan.user is not None)
    if proxy is not None and plan.proxied:
        proxy.configure(plan.proxy_settings if worker is None else worker.settings(plan.proxy_settings))
    return Supervisor(
        plan,
        proxy,
        door,
        interactive=bool(options.get("interactive")),
        inspection=worker,
        approved=options.get("approved"),
    )


def plan_for(options: Mapping[str, Any], env: Mapping[str, str]) -> Plan:
    """Read the configuration and decide everything that is decided before a session starts."""
    pinned = None
    if options.get("session") is not None:
        from doorward.pinned_profile import pinned_session  # a new session has nothing it is pinned to

        pinned = pinned_session(options, env)
        options = pinned.options
    home, cwd, configuration = _loaded(options, env)
    _check_workspace(cwd, home)
    mode = configuration.text("sandbox_mode")
    bypass = bool(options.get("bypass"))
    chosen = configuration.optional_text("network.mode")
    user = None
    if (named := options.get("user")) is not None:
        from doorward.other_user import other_user  # for few runs only

        user = other_user(named)
    limited = chosen == "limited"
    if limited:
        chosen = "proxied"  # to the sandbox it is the same: what is let through is the proxy's to say
    sandbox = SandboxPolicy(
        mode=Mode.UNCONFINED if bypass else Mode(mode),
        workspace=cwd,
        write=_paths(configuration.strings("filesystem.write"), cwd),
        # as written: to the launcher a pattern without a slash matches at every depth
        read_only=configuration.strings("filesystem.read_only"),
        deny_read=configuration.strings("filesystem.deny_read"),
        allow_unix=_paths(configuration.strings("filesystem.allow_unix"), cwd),
        network=NETWORK_OF_MODE[mode] if chosen is None else chosen,  # type: ignore[arg-type]
        home=home.path,
        require=configuration.text("require"),  # type: ignore[arg-type]
        cache_dir=home.cache,
        local_binding=bool(configuration.value("macos.local_binding")),
        trust_service=bool(configuration.value("macos.trust_service")),
        user=None if user is None else user.identity,
        explain=configuration.value("sandbox.explain"),
        limits=Limits(*(configuration.value(f"limits.{name}") for name in Limits._fields)),
    )
    if pinned is not None:
        pinned.check(sandbox, "limited" if limited else sandbox.network)
    proxied = sandbox.network == "proxied" and not bypass
    if proxied:
        # elsewhere there is no network namespace to capture in
        door = Door(transparent=configuration.switch("network.transparent") and sys.platform == "linux")
        if configuration.value("network.loopback") or configuration.value("network.publish"):
            from doorward.granted_ports import granted  # for few runs only

            door = granted(configuration, door)
        sandbox = sandbox._replace(door=door)
    policy = _policy(configuration, home, env)
    settings, notices = network_settings(configuration, home, env, policy) if proxied else ({}, ())
    if proxied and configuration.asks_about_hosts():
        settings |= {"can_ask": True, "answer_time": configuration.number("approvals.timeout")}
    if policy is not None and sandbox.network == "full" and not bypass:
        from doorward.policy_loading import refuse_unheld

        refuse_unheld(policy)
    if proxied and any("udp:" in str(row["rule"]) for row in settings["allow"]):  # type: ignore[attr-defined]
        from doorward.granted_ports import relayed  # for few runs only

        sandbox = sandbox._replace(door=relayed(settings, sandbox.door))
    inspection = None
    if proxied and asks_for_inspection(configuration, settings):
        from doorward.inspection_settings import inspection_for  # only where it is asked for

        inspection = inspection_for(configuration, settings, home, env)
    if inspection is not None:
        settings["inspection"] = inspection.settings
        sandbox = inspection.shown_in(sandbox)
    sandbox = _without_the_key(sandbox, home)
    return Plan(
        home=home,
        configuration=configuration,
        sandbox=sandbox,
        proxied=proxied,
        proxy_settings=settings,
        bypass=bypass,
        bypass_hook_trust=bool(options.get("bypass_hook_trust")),
        session=None if pinned is None else pinned.path,
        agent=None if pinned is None else pinned.agent,
        name=options.get("name"),
        user=user,
        seal_to=_seal_to(configuration) if configuration.text("replay.env") == "sealed" else None,
        notices=(*configuration.notices, *notices),
        policy=policy,
        inspection=inspection,
    )


def _without_the_key(sandbox: SandboxPolicy, home: Home) -> SandboxPolicy:
    """No command reads the key that inspection signs with, whichever run made it. Another user could not anyway."""
    private = f"{home.path}/inspect/private"
    open_anyway = sandbox.mode in (Mode.DANGER_FULL_ACCESS, Mode.UNCONFINED)
    if sandbox.user is not None or open_anyway or not os.path.isdir(private):
        return sandbox
    return sandbox._replace(deny_read=(*sandbox.deny_read, private))


def _seal_to(configuration: Configuration) -> str:
    """The key that environments are sealed to. Raises UsageError without one, or without the library."""
    from doorward.sessions.sealing import SealError, check_public  # where it was asked for only

    key = configuration.optional_text("replay.seal_to")
    if key is None:
        raise UsageError(
            'doorward: replay.env = "sealed" needs the key it seals to, replay.seal_to; '
            "doorward sessions seal-key FILE makes one"
        )
    try:
        check_public(key)
    except SealError as error:
        raise UsageError(f"doorward: replay.seal_to: {error}") from None
    return key


def settings_for(options: Mapping[str, Any], env: Mapping[str, str]) -> tuple[dict[str, object], tuple[str, ...]]:
    """The network rules alone, as the proxy would be sent them, and notices for a person."""
    home, _, configuration = _loaded(options, env)
    settings, notices = network_settings(configuration, home, env, _policy(configuration, home, env))
    settings |= {
        "can_ask": configuration.asks_about_hosts(),
        "answer_time": configuration.number("approvals.timeout"),
        "approvals": {
            "notify": list(configuration.command("approvals.notify")),
            "desktop": configuration.switch("approvals.desktop"),
        },
    }
    if asks_for_inspection(configuration, settings):
        from doorward.configuration_error import ConfigurationError
        from doorward.inspection_settings import inspection_for

        try:
            inspection = inspection_for(configuration, settings, home, env)
        except UsageError as error:
            if options.get("door_alone") or isinstance(error, ConfigurationError):
                raise
            return settings, (*notices, str(error).removeprefix("doorward: "))
        if inspection is not None:
            # a door alone sees to its worker itself
            settings["inspection"] = inspection if options.get("door_alone") else inspection.settings
    return settings, notices


def policy_for(options: Mapping[str, Any], env: Mapping[str, str]) -> Policy | None:
    """The exec policy alone; None where there is no rules file. Raises UsageError."""
    home, _, configuration = _loaded(options, env)
    return _policy(configuration, home, env)


def _policy(configuration: Configuration, home: Home, env: Mapping[str, str]) -> Policy | None:
    if not (
        os.path.lexists(home.rules)
        or configuration.project_trust == "trusted"
        or configuration.value("policy.import_codex")
    ):
        return None  # most runs: nothing is imported to find nothing
    from doorward.policy_files import rule_folders
    from doorward.policy_loading import load_policy

    return load_policy(rule_folders(configuration, home, env), home)


def _loaded(options: Mapping[str, Any], env: Mapping[str, str]) -> tuple[Home, str, Configuration]:
    from doorward.working_folder import working_folder

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
        door_alone=bool(options.get("door_alone")),
    )
    return home, cwd, configuration


def _paths(entries: Sequence[str], cwd: str) -> tuple[str, ...]:
    """Absolute paths; `~` is the caller's home."""
    return tuple(os.path.join(cwd, os.path.expanduser(entry)) for entry in entries)


def _check_workspace(cwd: str, home: Home) -> None:
    """A workspace may be written: it is never the system, nor where doorward keeps its records (DESIGN §4)."""
    from doorward.working_folder import SYSTEM_FOLDERS, SYSTEM_TREES

    if cwd in SYSTEM_FOLDERS or f"{cwd}/".startswith(SYSTEM_TREES):
        raise UsageError(
            f"doorward: {cwd} is a system folder and cannot be the workspace; "
            "change to a project folder, or name one with -C"
        )
    store = os.path.realpath(home.path)
    if cwd == store or cwd.startswith(store + "/"):
        raise UsageError(f"doorward: {cwd} is where doorward keeps its records; the workspace must be another folder")

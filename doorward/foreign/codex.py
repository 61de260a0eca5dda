"""Settings of Codex (`config.toml`): sandbox, approvals, environment, trust, and permission profiles with a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doorward.foreign.equivalent import Equivalent, listed, name_rest, subtable

_MODES = ("read-only", "workspace-write", "danger-full-access")
_POLICIES = ("untrusted", "on-failure", "on-request", "never")
_ABOUT_FILES = {"write": "filesystem.write", "read": "filesystem.read_only", "none": "filesystem.deny_read",
                "deny": "filesystem.deny_read"}  # fmt: skip


def equivalent_of(settings: Mapping[str, Any]) -> Equivalent:
    """What the settings come to."""
    found = Equivalent()
    _choice(settings, "sandbox_mode", _MODES, found)
    _choice(settings, "approval_policy", _POLICIES, found)
    writing = subtable(settings, "sandbox_workspace_write", "", found)
    for root in listed(writing, "writable_roots", "sandbox_workspace_write", found):
        found.path("filesystem.write", root, "sandbox_workspace_write.writable_roots")
    if writing.get("network_access"):
        found.no(
            "sandbox_workspace_write.network_access",
            "it opens the whole network; allow hosts by name, or set network.mode = \"full\" yourself",
        )
    for key in ("exclude_tmpdir_env_var", "exclude_slash_tmp"):
        if key in writing:
            found.notices.append(f"{key}: the temporary folders of a run are always its own")
    _environment(subtable(settings, "shell_environment_policy", "", found), found)
    for path, project in subtable(settings, "projects", "", found).items():
        level = project.get("trust_level") if isinstance(project, Mapping) else None
        if level in ("trusted", "untrusted"):
            found.set("projects.*.trust_level", level, path)
    for name, profile in subtable(settings, "permissions", "", found).items():
        _permissions(name, profile, found)
    features = subtable(settings, "features", "", found)
    if features.get("guardian_approval") or features.get("smart_approvals"):
        found.set("features.guardian_approval", True)
    if settings.get("mcp_servers"):
        found.no("mcp_servers", "wrap each server's command yourself: doorward run -- SERVER")
    _elsewhere(settings, found)
    found.notices.append("policy rules need no import: policy.import_codex = true reads ~/.codex/rules as they are")
    return found


def _elsewhere(settings: Mapping[str, Any], found: Equivalent) -> None:
    """What is about the agent and not about confinement is passed over; the rest is named."""
    for key in ("default_permissions", "profile", "notify", "hooks", "allow_login_shell", "experimental_network"):
        if settings.get(key):
            found.no(key, "has no equivalent")
    for name, profile in subtable(settings, "profiles", "", found).items():
        if isinstance(profile, Mapping) and {"sandbox_mode", "approval_policy"} & profile.keys():
            found.no(f"profiles.{name}", f"write it as $DOORWARD_HOME/profiles/{name}.toml")


def _choice(settings: Mapping[str, Any], key: str, choices: tuple[str, ...], found: Equivalent) -> None:
    value = settings.get(key)
    if value in choices:
        found.set(key, value)
    elif value is not None:
        found.no(f"{key}: {value}", f"is none of {', '.join(choices)}")


def _environment(policy: Mapping[str, Any], found: Equivalent) -> None:
    inherit = policy.get("inherit")
    if inherit in ("all", "core", "none"):
        found.set("env.inherit", inherit)
    elif inherit is not None:
        found.no(f"shell_environment_policy.inherit: {inherit}", "is none of all, core, none")
    for name in listed(policy, "include_only", "shell_environment_policy", found):
        if isinstance(name, str) and name.replace("_", "a").isalnum():
            found.arrays["env.pass"].append(name)
        else:
            found.no(f"shell_environment_policy.include_only: {name}", "env.pass takes names, no patterns")
    for name in listed(policy, "exclude", "shell_environment_policy", found):
        found.no(f"shell_environment_policy.exclude: {name}", "what looks like a credential is withheld without a list")
    for name in subtable(policy, "set", "shell_environment_policy", found):
        found.no(f"shell_environment_policy.set.{name}", "set it where doorward is started")
    name_rest(policy, ("inherit", "include_only", "exclude", "set"), "shell_environment_policy", found)


def _permissions(name: str, profile: object, found: Equivalent) -> None:
    where = f"permissions.{name}"
    if not isinstance(profile, Mapping):
        found.no(where, "is no table")
        return
    network = subtable(profile, "network", where, found)
    for host, effect in subtable(network, "domains", f"{where}.network", found).items():
        if effect in ("allow", "deny"):
            found.host(effect, host, f"{where}.network.domains")
        else:
            found.no(f"{where}.network.domains.{host}", f"{effect!r} is neither allow nor deny")
    for path, effect in subtable(network, "unix_sockets", f"{where}.network", found).items():
        if effect == "allow":
            found.path("filesystem.allow_unix", path, f"{where}.network.unix_sockets")
    if network.get("mode") == "limited":
        found.set("network.mode", "limited")
    if network.get("allow_local_binding"):
        found.set("macos.local_binding", True)
    name_rest(
        network, ("enabled", "domains", "unix_sockets", "mode", "allow_local_binding"), f"{where}.network", found
    )
    for path, effect in subtable(profile, "filesystem", where, found).items():
        if path.startswith(":") or not isinstance(effect, str) or effect not in _ABOUT_FILES:
            found.no(f"{where}.filesystem.{path}", "has no equivalent; the workspace is writable, the rest readable")
        else:
            found.path(_ABOUT_FILES[effect], path, f"{where}.filesystem")

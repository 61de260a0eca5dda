"""What one start needs of bubblewrap and of the shim: arguments, masks, names to look after."""

from __future__ import annotations

import os

from doorward.launcher.bubblewrap import (
    MAX_ARGUMENTS,
    Bubblewrap,
    Masks,
    environment_arguments,
    mount_arguments,
    namespace_arguments,
)
from doorward.launcher.interface import Command, SandboxUnavailable, Stdio
from doorward.launcher.launch import Plan
from doorward.launcher.masks import keep_masks
from doorward.launcher.mounts import Kind
from doorward.launcher.streams import files_to_hold
from doorward.launcher.survey import Survey

# Arguments on bubblewrap's own command line, and some to spare.
_FIXED_ARGUMENTS = 40
# Files by which names are found, see `name_files`.
_NAME_FILES = ("/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf")


def make_plan(
    bubblewrap: Bubblewrap | None,
    found: Survey,
    command: Command,
    stdio: Stdio,
    cache_dir: str,
    *,
    user: bool,
    limited: bool,
    names: bool = False,
) -> Plan:
    """The plan for one start. `user` asks for a user namespace, `limited` for no capabilities, `names` for the
    command's own files about names. Raises SandboxUnavailable."""
    if bubblewrap is None:
        return Plan(watched=found.watched)
    mounts = found.plan.mounts
    hiding = [mount for mount in mounts if mount.step.startswith("hide-")]
    masks = keep_masks(cache_dir) if hiding else Masks("", "")
    # with a terminal the session is the shim's, which has it as its controlling terminal
    session = stdio.terminal is None
    options = namespace_arguments(bubblewrap, user=user, network=False, confined=limited, session=session)
    options += ("--chdir", command.cwd)
    replacing = [word for pair in found.replaced for word in ("--ro-bind", *pair)]
    laid = [*mount_arguments([mount for mount in mounts if not mount.step.startswith("hide-")], masks), *replacing]
    variables = environment_arguments(command.env)
    room = MAX_ARGUMENTS - _FIXED_ARGUMENTS - len(options)
    carrier: tuple[str, ...] = ()
    carried = ""
    if len(laid) + len(variables) + len(command.argv) > room:
        carrier, carried = _carry(found, command)
        variables = []
    room -= len(variables) + len(carrier or command.argv)
    if len(laid) > room:
        raise SandboxUnavailable(
            f"The policy needs {len(mounts)} mounts, more than bubblewrap takes ({MAX_ARGUMENTS} arguments).",
            "Name directories in place of single files.",
        )
    return Plan(
        arguments=(*options, *laid, *variables),
        masks=tuple(
            (source, targets)
            for source, step in ((masks.file, "hide-file"), (masks.directory, "hide-directory"))
            if (targets := tuple(mount.path for mount in hiding if mount.step == step))
        ),
        carrier=carrier,
        carried=carried,
        watched=found.watched,
        held=tuple(files_to_hold(stdio, found.plan)),
        names=_name_files(found) if names else (),
        fleeting=tuple(mount.path for mount in hiding if mount.path in found.sockets),
        copied=found.copied,
    )


def _name_files(found: Survey) -> tuple[tuple[str, str], ...]:
    """Those that exist and can be seen. Where the whole root is the host's they stay the host's."""
    if found.plan.kind("/") is not Kind.READ:
        return ()
    resolved = ((name, os.path.realpath(name)) for name in _NAME_FILES)
    return tuple((name, path) for name, path in resolved if os.path.isfile(path) and found.plan.visible(path))


def _carry(found: Survey, command: Command) -> tuple[tuple[str, ...], str]:
    from doorward.launcher import long_command  # rare

    carrier = long_command.carrier(found.plan)
    if not carrier:
        raise SandboxUnavailable(
            "The command has more arguments and variables than bubblewrap takes, and no Python is visible "
            "inside that could carry them.",
            "Show one with --read-only, or pass the arguments through a file.",
        )
    return tuple(carrier), long_command.carried(command)

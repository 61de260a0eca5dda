"""A command as the gates see it."""

from __future__ import annotations

import os

from doorward.gates.action import Action
from doorward.programs import which

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def shell_action(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Action:
    """A command with where PATH finds it, so that a rule for `git` is not taken for `./git`."""
    program = which(argv[0], env.get("PATH", os.defpath), cwd) if argv else None
    return Action("shell", tuple(argv), cwd, env, program=program)

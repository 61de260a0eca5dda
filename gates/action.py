"""What is about to run, as the gates see it."""

from __future__ import annotations

from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """What asks to run: a command, or a hook of somebody's configuration."""

    SHELL = "shell"
    HOOK = "hook"


class Action(NamedTuple):
    """One command before it starts. Text is `str` with surrogateescape, as `os.fsdecode` gives it.

    `kind` is a Kind or its text. `cwd` is absolute. `writes` are declared paths, relative ones against `cwd`;
    `network_to` are declared (host, port) pairs. `needs_feature` names a feature that must be in effect.
    `program` is where the caller found `argv[0]` on PATH (absolute; None: not looked for), `hook_hash` the content
    hash of a hook, by which its trust is kept.
    """

    kind: str
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = {}
    writes: tuple[str, ...] = ()
    network_to: tuple[tuple[str, int], ...] = ()
    needs_feature: str | None = None
    program: str | None = None
    hook_hash: str | None = None

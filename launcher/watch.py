"""One name that a shim looks after while a command runs. A module of its own: the shim loads it, and not what finds
such names."""

from __future__ import annotations

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


class Watch(NamedTuple):
    """A name the shim looks after: `path` is `root` (an existing directory) plus `name`.

    absent: must not exist · link: must be a symlink to `target` · repository: a git directory that did
    not exist before the run, whose hooks and settings must be harmless at its end (`target` is "config" where
    the root has a file of that name, which git would read if the root itself became one) · submodules: those of the
    git directory that `target` starts with, unless its index still has the stamp that follows, but for the ones
    named then, must be harmless at the end.
    """

    kind: Literal["absent", "link", "repository", "submodules"]
    root: str
    name: str
    target: str = ""
    granted: tuple[str, ...] = ()  # paths in a new repository that stay as the command made them

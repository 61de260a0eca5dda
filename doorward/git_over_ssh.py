"""GIT_SSH_COMMAND where only the proxy leads out: ssh knows no proxy variable, but takes a command that does.

Imported only by runs without capture.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_OWN = ("GIT_SSH_COMMAND", "GIT_SSH")
"""Variables by which a person says how git is to use ssh (git(1)); whoever did keeps what they said."""


def git_ssh_command(variables: Mapping[str, str]) -> str | None:
    """The value for a sandbox with these variables; None where one of theirs is in force."""
    if any(variables.get(name) for name in _OWN):
        return None
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ssh_proxy.py")
    # -I -S: nothing of the workspace, and nothing installed, is imported; ssh replaces %h and %p (ssh_config(5))
    words = " ".join(_quoted(word) for word in (os.path.realpath(sys.executable), "-I", "-S", script))
    return f"ssh -o {_quoted(f'ProxyCommand={words} %h %p')}"


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'" if not word.replace("/", "").replace("-", "").isalnum() else word

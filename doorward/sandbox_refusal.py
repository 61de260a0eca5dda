"""What the operating system's door refused, in the keys of a network refusal, so that one reader serves both."""

from __future__ import annotations

from doorward.launcher.interface import Undone


def refusal_of_undone(undone: Undone) -> dict[str, object]:
    """The refusal of something made under a protected name, which was put back when the command had ended."""
    return {
        "status": "blocked",
        "host": None,
        "port": None,
        "protocol": None,
        "method": None,
        "decision": "deny",
        "reason": "protected_path",
        "source": "sandbox",
        "rule": None,
        "message": f"{undone.path} is protected: {undone.what}" + (f" ({undone.detail})" if undone.detail else ""),
        "hint": f"--add-dir {undone.path}",
        "path": undone.path,
        "class": "blocked-by-sandbox",
    }

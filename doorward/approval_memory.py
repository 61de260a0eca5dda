"""Keeps an "always": a policy rule for a command, a network rule for a host, a hook's hash, where a person would."""

from __future__ import annotations

from doorward.errors import EngineError, UsageError
from doorward.sessions.home import Home, StoreError, private_folder

RULES_FILE = "default.rules"


def rules_path(home: Home) -> str:
    """The file that command rules go into; Codex calls its own the same."""
    return f"{home.rules}/{RULES_FILE}"


def keep_command(home: Home, rule: str) -> str:
    """Add a line to `rules/default.rules`, unless it is there. Returns "" or one sentence about what went wrong."""

    def change(text: str) -> str:
        if rule in text.splitlines():
            return text
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{rule}\n"

    return _changed(home, rules_path(home), change)


def keep_host(home: Home, rule: str) -> str:
    """Add a rule to `network.allow` in `config.toml`. Returns "" or one sentence about what went wrong."""
    from doorward.toml_edit import entries_of, with_added

    def change(text: str) -> str:
        if rule in entries_of(text, "network", "allow"):
            return text
        return with_added(text, "network", "allow", [rule])

    return _changed(home, home.config, change)


def keep_hook(home: Home, digest: str) -> str:
    """Add a hook's hash to `hooks.trusted`. Returns "" or one sentence about what went wrong."""
    from doorward.toml_edit import entries_of, with_added

    def change(text: str) -> str:
        known = entries_of(text, "hooks", "trusted")
        return text if digest in known else with_added(text, "hooks", "trusted", [digest])

    return _changed(home, home.config, change)


def _changed(home: Home, path: str, change: object) -> str:
    from doorward.configuration_file import UnusableFile
    from doorward.toml_edit import Uneditable, change_file

    try:
        home.ensure()
        private_folder(home.rules)
        change_file(path, change)  # type: ignore[arg-type]
    except (StoreError, EngineError, UsageError, Uneditable, UnusableFile) as error:
        return f"{path} was not changed: {error}"
    return ""

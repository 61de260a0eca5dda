"""The person's own configuration file, as the commands that change it find it."""

from __future__ import annotations

import os
from collections.abc import Callable

from doorward.errors import EngineError, UsageError
from doorward.sessions.home import Home, StoreError, default_home


def own_home() -> Home:
    """$DOORWARD_HOME. Raises EngineError where none can be told."""
    try:
        return Home(default_home(os.environ))
    except StoreError as error:
        raise EngineError(str(error)) from None


def change_own_file(home: Home, change: Callable[[str], str]) -> bool:
    """Put `change(text)` in the place of `config.toml`; True if that differs. Raises UsageError for a file that cannot
    be edited, and EngineError; then nothing was written."""
    from doorward.configuration_file import UnusableFile
    from doorward.toml_edit import Uneditable, change_file

    try:
        home.ensure()
        return change_file(home.config, change)
    except StoreError as error:
        raise EngineError(str(error)) from None
    except UnusableFile as error:
        raise UsageError(f"doorward: {error.problem}; nothing was written") from None
    except Uneditable as error:
        raise UsageError(f"doorward: {home.config} was not changed: {error}") from None

"""An agent's settings file: where it is, changed in one step, with what stood there before kept beside it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from doorward.agents.hook_settings import UnusableSettings, with_hooks, without_hooks, words_in
from doorward.errors import EngineError, UsageError

BACKUP = ".before-doorward"
_LARGEST = 4 << 20


def settings_path(agent: str, folder: str | None, env: Mapping[str, str]) -> str:
    """The file that holds the hooks: the project's in `folder`, or with None the person's own.

    Claude Code's project file is the one that is not committed: the hook's command names this machine's doorward.
    """
    if agent == "claude-code":
        own = env.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
        return f"{own}/settings.json" if folder is None else f"{folder}/.claude/settings.local.json"
    own = env.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    return f"{own}/hooks.json" if folder is None else f"{folder}/.codex/hooks.json"


class SettingsFile:
    """One file, read. Raises UsageError for what cannot be edited, EngineError for what cannot be read."""

    def __init__(self, path: str, agent: str) -> None:
        self.path = path
        self._real = os.path.realpath(path)
        self._backup = self._real + BACKUP
        self._agent = agent
        self.before = _read(self._real)

    def installed(self, words: list[str]) -> str:
        """The text with doorward's hooks. Raises UsageError."""
        try:
            return with_hooks(self._base(), self._agent, words)
        except UnusableSettings as error:
            raise UsageError(f"doorward: {self.path} was not changed: {error}") from None

    def uninstalled(self) -> str | None:
        """The text without them, exactly what stood there before if nobody has changed it since; None: no file."""
        try:
            if self.before is None or not words_in(self.before, self._agent):
                raise UsageError(f"doorward: {self.path} has no hook of doorward's")
            base = self._base()
            return None if base == "" else base
        except UnusableSettings as error:
            raise UsageError(f"doorward: {self.path} was not changed: {error}") from None

    def _base(self) -> str:
        """The text without doorward's hooks, "" for no file."""
        if self.before is None:
            return ""
        words = words_in(self.before, self._agent)
        if not words:
            return self.before
        kept = _read(self._backup) or ""
        try:
            if with_hooks(kept, self._agent, words) == self.before:
                return kept
        except UnusableSettings:
            pass  # somebody changed what was kept
        return without_hooks(self.before, self._agent)

    def install(self, text: str) -> None:
        """Put `text` there, and keep what stood there before. Raises EngineError; then nothing has changed."""
        base = self._base()
        folder = os.path.dirname(self._real)
        try:
            os.makedirs(folder, exist_ok=True)
            if base:
                _replace(self._backup, base, self._mode())
            _replace(self._real, text, self._mode())
        except OSError as error:
            raise EngineError(f"{self.path} was not changed: {error.strerror}") from None

    def uninstall(self, text: str | None) -> None:
        """Put `text` there, None: no file, and drop what was kept. Raises EngineError."""
        try:
            if text is None:
                os.unlink(self._real)
            else:
                _replace(self._real, text, self._mode())
            if os.path.lexists(self._backup):
                os.unlink(self._backup)
        except OSError as error:
            raise EngineError(f"{self.path} was not changed: {error.strerror}") from None

    def _mode(self) -> int:
        return stat.S_IMODE(os.stat(self._real).st_mode) if self.before is not None else 0o600


def _read(path: str) -> str | None:
    """Raises UsageError, EngineError."""
    try:
        with open(path, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"doorward: {path} is not a regular file")
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EngineError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise UsageError(f"doorward: {path} is larger than {_LARGEST} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"doorward: {path} was not changed: it is not UTF-8") from None


def _replace(path: str, text: str, mode: int) -> None:
    """In one step: whoever reads the file sees the old text or the new. Raises OSError."""
    fresh = f"{path}.doorward-new"
    try:
        os.unlink(fresh)  # of one that was killed
    except FileNotFoundError:
        pass
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise

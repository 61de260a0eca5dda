"""The network rules of the door alone, read from every layer, and whether a file of them has changed since.

Files are looked at, not listened to: a stat(2) of each once a second notices what inotify does not, such as a link that
points elsewhere (a mounted ConfigMap), a file system of another machine, a file that was not there before.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from doorward.allowlists.rule import MalformedRule
from doorward.allowlists.settings import MalformedSettings
from doorward.configuration import PROJECT_FILE, SYSTEM_FILE
from doorward.errors import EngineError, UsageError
from doorward.proxy.limits import MalformedLimit
from doorward.proxy.parent import MalformedParent
from doorward.proxy.policy import Policy, policy_from_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.brokering import Brokered, Brokering
    from doorward.inspection_settings import Inspection

_NOTHING = "no rule allows anything, so everything is refused; --allow HOST, or network.allow in a configuration file"

Signature = tuple[tuple[int, ...] | None, ...]


class Loaded(NamedTuple):
    """`settings` as another process reads them, `policy` as this one does; `notices` are for a person. `inspection`
    where something is inspected, with the credentials it puts in."""

    settings: Mapping[str, object]
    policy: Policy
    notices: tuple[str, ...]
    inspection: Inspection | None = None
    brokered: Brokered | None = None


class WatchedConfiguration:
    """`options` are what was said on the command line: flags, overrides, profile."""

    def __init__(self, options: Mapping[str, Any], env: Mapping[str, str]) -> None:
        # whatever else is configured, this network is proxied: it is what the command does
        self._options = {**options, "door_alone": True}
        self._env = env
        self._files: tuple[str, ...] = ()
        self._loaded: Signature = ()
        self._seen: Signature = ()
        self._brokering: Brokering | None = None

    def load(self) -> Loaded:
        """Read every layer. Raises UsageError with the place of everything that is wrong."""
        from doorward.opening import settings_for
        from doorward.sessions.home import StoreError, default_home

        try:
            self._files = tuple(_files(default_home(self._env), self._options.get("profile")))
            self._loaded = self._seen = self._signature()  # before reading: what changes meanwhile is a change
            settings, notices = settings_for(self._options, self._env)
            inspection: Inspection | None = settings.pop("inspection", None)  # type: ignore[assignment]
            brokered = None if inspection is None else self._broker(inspection)
            if inspection is not None and brokered is not None:
                settings["inspection"] = {**inspection.settings, "secrets": brokered.secrets}
            policy = policy_from_settings(settings)
        except EngineError as error:
            raise UsageError(f"doorward: {error.sentence}") from None
        except (StoreError, MalformedRule, MalformedSettings, MalformedLimit, MalformedParent) as error:
            raise UsageError(f"doorward: {error}") from None
        nothing = () if policy.rules.allow else (_NOTHING,)
        return Loaded(settings, policy, (*notices, *policy.notices, *nothing), inspection, brokered)

    def _broker(self, inspection: Inspection) -> Brokered:
        """Read the credentials anew. Raises UsageError."""
        from doorward.brokering import Brokering  # only where something is inspected

        self._brokering = self._brokering or Brokering()
        return self._brokering.of(inspection.credentials, self._env)

    def changed(self) -> bool:
        """Whether a file is another than when it was loaded. A file that still changed since the last call is being
        written: it counts at the next."""
        now = self._signature()
        settled = now == self._seen
        self._seen = now
        return settled and now != self._loaded

    def _signature(self) -> Signature:
        return tuple(map(_state, self._files))


def _files(home: str, profile: str | None) -> Iterable[str]:
    """Every file that may be a layer, there or not."""
    yield SYSTEM_FILE
    yield os.path.join(home, "config.toml")
    if profile is not None:
        yield os.path.join(home, "profiles", f"{profile}.toml")
    try:
        folder = os.getcwd()
    except OSError:
        return
    while True:
        yield os.path.join(folder, PROJECT_FILE)
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _state(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

"""What a run changed on the disk of a Windows machine, written down before it is changed and undone afterwards.

One file a run, in doorward's own folder. A run that was killed leaves its file; the next run finds that the process
is gone and undoes it. Two runs in one workspace share their entries: the last one takes them away.
"""

import errno
import json
import os
from typing import TYPE_CHECKING, Any

from doorward.launcher import windows_paths as paths
from doorward.launcher.windows_errors import ApiError
from doorward.launcher.windows_plan import LOW_LABEL, NO_LABEL, WindowsPlan

if TYPE_CHECKING:
    from doorward.launcher.windows_api import WindowsApi
    from doorward.launcher.windows_files import WindowsFiles

# winerror.h: file and path not found
_GONE = (2, 3)


class Journal:
    """The changes of one run. `apply` once, `undo` at its end."""

    def __init__(
        self, api: "WindowsApi", files: "WindowsFiles", folder: str, plan: WindowsPlan, temporary: str
    ) -> None:
        self._api = api
        self._files = files
        self._folder = folder
        self._plan = plan
        self._path = os.path.join(folder, f"{api.pid}-{os.urandom(8).hex()}.json")
        self._temporary = temporary

    def apply(self) -> None:
        """Writes down what will be changed, then changes it. Raises OSError, ApiError (nothing stays changed then)."""
        if not self._plan.changes:
            return
        others = [entry for entry in _entries(self._api, self._folder) if entry["alive"]]
        changed = list(dict.fromkeys(change.path for change in self._plan.changes))
        labelled = [change.path for change in self._plan.changes if change.label]
        content = {
            "pid": self._api.pid,
            "started": self._api.started_at(self._api.pid),
            "sid": self._plan.capability,
            "paths": changed,
            "labels": {path: self._label_before(path, others) for path in labelled},
            "absent": list(self._plan.absent),
            "temporary": self._temporary,
        }
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        partial = f"{self._path}.new"
        with open(partial, "w", encoding="ascii") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, self._path)
        try:
            for change in self._plan.changes:
                if change.label:
                    self._api.set_label(change.path, change.label)
                else:
                    self._api.add_entry(
                        change.path, self._plan.capability, change.access, change.mode, change.inheritance
                    )
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """Takes the run's entries away again, where no other run needs them. Raises ApiError after trying them all."""
        for entry in _entries(self._api, self._folder):
            if entry["file"] == self._path:
                _undo(self._api, self._files, self._folder, entry)

    def _label_before(self, path: str, others: list[dict[str, Any]]) -> str:
        found = self._api.label(path)
        if found == LOW_LABEL:
            # ours, put there by a run that still goes on: what was before is in its journal
            for entry in others:
                for known, label in entry["labels"].items():
                    if paths.key(known) == paths.key(path):
                        return str(label)
        return found


def sweep(api: "WindowsApi", files: "WindowsFiles", folder: str) -> tuple[str, ...]:
    """Undoes what killed runs have left. Notices about what a person should look at.

    A protected name that such a run may have made is not removed: by now it may be the user's own.
    """
    notices: list[str] = []
    for entry in _entries(api, folder):
        if entry["alive"]:
            continue
        made = [path for path in entry["absent"] if files.look(path)]
        notices += [
            f"{path} did not exist before a run that was killed; if you did not make it, remove it." for path in made
        ]
        try:
            _undo(api, files, folder, entry)
        except ApiError as error:
            notices.append(f"Access control entries of a killed run could not be removed: {error}.")
    return tuple(notices)


def _undo(api: "WindowsApi", files: "WindowsFiles", folder: str, entry: dict[str, Any]) -> None:
    needed = {
        (paths.key(path), other["sid"])
        for other in _entries(api, folder)
        if other["alive"] and other["file"] != entry["file"]
        for path in other["paths"]
    }
    failed: ApiError | None = None
    for path in reversed(entry["paths"]):
        if (paths.key(path), entry["sid"]) in needed:
            continue
        try:
            api.remove_entries(path, entry["sid"])
            if path in entry["labels"]:
                api.set_label(path, entry["labels"][path] or NO_LABEL)
        except ApiError as error:
            if error.number not in _GONE:
                failed = failed or error
    if entry["temporary"]:
        files.remove_temporary(entry["temporary"])
    if failed is not None:
        raise failed  # its journal stays, so that the next run tries again
    os.unlink(entry["file"])


def _entries(api: "WindowsApi", folder: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return found
    for name in names:
        if not name.endswith(".json"):
            continue
        path = os.path.join(folder, name)
        try:
            with open(path, encoding="ascii") as file:
                entry: dict[str, Any] = json.load(file)
        except FileNotFoundError:
            continue  # its run has just ended
        except ValueError as error:
            raise OSError(errno.EINVAL, f"{path} is damaged; remove it once the entries it names are gone") from error
        entry["file"] = path
        entry["alive"] = entry["started"] is not None and api.started_at(entry["pid"]) == entry["started"]
        found.append(entry)
    return found

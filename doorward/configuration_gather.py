"""Lays the layers over each other: each value checked against its row, kept with where it came from."""

from __future__ import annotations

import os

from doorward.configuration_schema import ARRAYS, KEY, KEYS, NETWORK_OF_MODE, Key, Kind, Project, Tree, tree
from doorward.gates.features import RENAMED
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:  # loaded where there is a mistake to tell
    from collections.abc import Callable, Mapping
    from functools import partial
    from typing import Any, Final

    from doorward.configuration_error import Problem

    Placing = Callable[[tuple[str | int, ...]], "Place"]
else:
    from _functools import partial  # `functools` itself loads four more modules

    Placing = object

_BARE: Final = r"[A-Za-z0-9_-]+"


class Origin(NamedTuple):
    """Where a value came from. `source`: builtin, file, flag or api; `where` names the place for a person, such as
    "config.toml:12", "--allow", "-c network.allow"."""

    source: str
    where: str


class Entry(NamedTuple):
    """One entry of an array, or one `(name, value)` of a table, with its own origin."""

    value: Any
    origin: Origin


class Setting(NamedTuple):
    """One value as it stands; `rank` is that of the layer that set it."""

    value: Any
    origin: Origin
    rank: int


BUILT_IN: Final = Origin("builtin", "built-in")


class Place(NamedTuple):
    """Where a value stands: for problems a file (or option) and line, for origins the short form."""

    file: str
    line: int | None
    origin: Origin



class OwnFeature(NamedTuple):
    """What one layer says about a feature that is not doorward's."""

    name: str
    value: object
    rank: int
    place: Placing
    layer: str


class Gathering:
    """What the layers say, in the order in which they are added, and every mistake in them."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.problems: list[Problem] = []
        self.values: dict[str, Setting] = {}
        self.entries: dict[str, list[tuple[Entry, int]]] = {}
        self.projects: dict[str, str] = {}
        """Level by real path."""
        self.stages: dict[str, str] = {}
        """An embedding application's own features: stage by name."""
        self.notices: list[str] = []
        self.own_features: list[OwnFeature] = []
        """Switches of features that are not doorward's; a later layer may yet register them."""
        self._env = env
        self._tree: Tree | None = None

    def add(self, document: Mapping[str, object], rank: int, place: Placing, *, layer: str) -> None:
        """Lay one layer over what is there. `layer` is "home" or "project" for the two with rules of their own."""
        if self._tree is None:
            self._tree = tree()
        before = {key.name: self.effective(key) for key in KEYS if key.project is Project.TIGHTEN}
        self._walk(self._tree, (), document, rank, place, layer, before)

    def effective(self, key: Key) -> object:
        """The value of a scalar key as the layers so far have it."""
        if key.name in self.values:
            return self.values[key.name].value
        if key.name == "network.mode":
            return NETWORK_OF_MODE[str(self.effective(KEY["sandbox_mode"]))]
        return key.default

    def _walk(
        self,
        node: Tree,
        path: tuple[str, ...],
        table: Mapping[str, object],
        rank: int,
        place: Placing,
        layer: str,
        before: Mapping[str, object],
    ) -> None:
        for name, value in table.items():
            here = (*path, name)
            below = node.get(name, node.get("*"))
            if below is None and path == ("features",):
                if name in RENAMED:
                    self.notices.append(f"{place(here).origin.where}: features.{name} is now features.{RENAMED[name]}")
                    here, below = (*path, RENAMED[name]), node[RENAMED[name]]
                else:
                    self.own_features.append(OwnFeature(name, value, rank, place, layer))
                    continue
            if below is None:
                self._problem(place, here, "there is no such key", _suggestion(here))
            elif isinstance(below, Key):
                self._set(below, here, value, rank, place, layer, before)
            elif isinstance(value, dict):
                self._walk(below, here, value, rank, place, layer, before)
            else:
                from doorward.configuration_value import shown

                inside = ", ".join(f"{dotted(here)}.{key}" for key in below)
                self._problem(place, here, f"is a table, not {shown(value)}", f"its keys are {inside}")

    def _set(
        self,
        key: Key,
        path: tuple[str, ...],
        value: object,
        rank: int,
        place: Placing,
        layer: str,
        before: Mapping[str, object],
    ) -> None:
        if key.home_only and layer != "home":
            what = "projects" if path[0] == "projects" else "hooks"
            self._problem(place, path, f"only $DOORWARD_HOME/config.toml can say which {what} are trusted", None)
            return
        if layer == "project" and key.project is Project.NOTHING:
            self._problem(place, path, "a project's own file cannot set this", "set it in $DOORWARD_HOME/config.toml")
            return
        from doorward.configuration_value import checked  # only where some layer says something

        mistakes = len(self.problems)
        kept = checked(key, value, self._env, partial(self._complain, place, path))
        if len(self.problems) > mistakes:
            return
        if key.kind in ARRAYS:
            assert isinstance(kept, tuple)
            rows = self.entries.setdefault(_stored(key, path), [])
            rows += [(Entry(each, place((*path, index)).origin), rank) for index, each in enumerate(kept)]
        elif key.kind is Kind.ADDRESSES:
            self._pin(key, path, kept, rank, place, layer)
        elif key.name == "projects.*.trust_level":
            self._trust(path, str(kept), place)
        elif key.name == "feature_stages.*":
            if f"features.{path[1]}" in KEY:
                self._problem(place, path, "is doorward's own feature, whose stage cannot be set", None)
            self.stages[path[1]] = str(kept)
        elif layer == "project" and _looser(key, str(kept), str(before.get(key.name))):
            self._problem(
                place, path, f"a project can only make this stricter, and below it stands {before[key.name]}", None
            )
        else:
            self.values[_stored(key, path)] = Setting(kept, place(path).origin, rank)

    def settle_features(self) -> None:
        """After the last layer: take the switches of features that were registered; the others are mistakes."""
        for name, value, rank, place, layer in self.own_features:
            path = ("features", name)
            if layer == "project":
                self._problem(
                    place, path, "a project's own file cannot set this", "set it in $DOORWARD_HOME/config.toml"
                )
            elif name not in self.stages:
                register = f'an application\'s own is registered with feature_stages.{dotted((name,))} = "experimental"'
                self._problem(place, path, "there is no such key", _suggestion(path) or register)
            elif not isinstance(value, bool):
                from doorward.configuration_value import checked

                row = Key(f"features.{name}", Kind.SWITCH, False, "")
                checked(row, value, self._env, partial(self._complain, place, path))
            else:
                self.values[f"features.{name}"] = Setting(value, place(path).origin, rank)

    def _complain(
        self, place: Placing, path: tuple[str, ...], inner: tuple[str | int, ...], text: str, right: str | None
    ) -> None:
        self._problem(place, (*path, *inner), text, right)

    def _pin(self, key: Key, path: tuple[str, ...], pins: Any, rank: int, place: Placing, layer: str) -> None:
        rows = self.entries.setdefault(key.name, [])
        for name, address in pins.items():
            known = [(entry, at) for entry, at in rows if entry.value[0].lower() == name.lower()]
            if layer == "project" and any(entry.value[1] != address for entry, _ in known):
                message = f"a project cannot move a name that {known[0][0].origin.where} pins"
                self._problem(place, (*path, name), message, None)
                continue
            for row in known:
                rows.remove(row)
            rows.append((Entry((name, address), place((*path, name)).origin), rank))

    def _trust(self, path: tuple[str, ...], level: str, place: Placing) -> None:
        folder = path[1]
        if not folder.startswith("/"):
            self._problem(place, path, "a project is named by its whole path", None)
            return
        real = os.path.realpath(folder)
        if self.projects.setdefault(real, level) != level:
            self._problem(
                place, path, f"the same folder stands above as {self.projects[real]}", "leave one of them out"
            )

    def _problem(self, place: Placing, path: tuple[str | int, ...], message: str, suggestion: str | None) -> None:
        from doorward.configuration_error import Problem

        at = place(path)
        self.problems.append(Problem(at.file, at.line, dotted(path), message, suggestion))


def _stored(key: Key, path: tuple[str, ...]) -> str:
    """The name a value is kept under: the key's, with the name that stands for the star."""
    return ".".join(path) if "*" in key.name else key.name


def _looser(key: Key, value: str, than: str) -> bool:
    return key.project is Project.TIGHTEN and key.choices.index(value) < key.choices.index(than)


def dotted(path: tuple[str | int, ...]) -> str:
    """A path as TOML spells it; an array's entry as its array."""
    import re  # not needed by most runs

    return ".".join(part if re.fullmatch(_BARE, part) else f'"{part}"' for part in path if isinstance(part, str))


def _suggestion(path: tuple[str, ...]) -> str | None:
    """The nearest key: of that name elsewhere, else spelled like it, else with a last part spelled like it."""
    from doorward.configuration_error import nearest

    names = [key.name for key in KEYS if "*" not in key.name]
    full, last = ".".join(path), path[-1]
    by_last = {name.rpartition(".")[2]: name for name in names}
    near = by_last.get(last.replace("-", "_")) or nearest(full, names) or by_last.get(nearest(last, by_last) or "")
    return f"did you mean {near}?" if near else None

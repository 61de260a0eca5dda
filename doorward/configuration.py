"""The strict, layered configuration: what holds for a run, and where every value came from.

Layers, lowest first: built-in; /etc/doorward/config.toml; $DOORWARD_HOME/config.toml; the trusted project's
.doorward/config.toml; the profile; `-c`; the command line's own options. A higher layer replaces a value and adds to an
array. An unknown key, a wrong type, a bad value or a contradiction is an error; all of them are told at once.
"""

from __future__ import annotations

import os

from doorward.configuration_gather import BUILT_IN, Entry, Gathering, Origin, Place, Setting
from doorward.configuration_schema import ARRAYS, KEY, KEYS, Kind
from doorward.gates.features import FEATURES
from doorward.gates.wording import trusting
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:  # what a run without files, `-c` and mistakes does not need is loaded by those who do
    from collections.abc import Mapping, Sequence
    from types import MappingProxyType
    from typing import Any, Final

    from doorward.configuration_error import Problem
else:
    MappingProxyType = type(type.__dict__)  # as `types` has it, which would be one more module

SYSTEM_FILE: Final = "/etc/doorward/config.toml"
PROJECT_FILE: Final = ".doorward/config.toml"

_SYSTEM, _HOME, _PROJECT, _PROFILE, _COMMAND_LINE = 1, 2, 3, 4, 5
_PROFILE_NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"


class Configuration(NamedTuple):
    """All that was configured; immutable. Keys are dotted; a key that does not exist raises KeyError.

    `project_trust` is "trusted", "untrusted" or "unknown", `project_root` the folder that was named ("" for unknown);
    `notices` are sentences a person should see; `stages` are those of an embedding application's own features.
    """

    values: Mapping[str, Setting]
    rows: Mapping[str, tuple[Entry, ...]]
    project_trust: str
    project_root: str
    notices: tuple[str, ...]
    stages: Mapping[str, str] = MappingProxyType({})

    def value(self, key: str) -> Any:
        """The value, or its default (None for an unset key without one); an array as a tuple, `network.hosts` as a
        dict."""
        kind = KEY[key].kind
        if kind in ARRAYS:
            return tuple(entry.value for entry in self.entries(key))
        if kind is Kind.ADDRESSES:
            return self.table(key)
        return self.values[key].value if key in self.values else KEY[key].default

    def is_set(self, key: str) -> bool:
        """True if a layer above the built-in one says something about `key`."""
        return KEY[key].name in self.values or bool(self.rows.get(key))

    def origin(self, key: str) -> Origin:
        """Where the value comes from; for an array or table, where its last entry does."""
        if KEY[key].name in self.values:
            return self.values[key].origin
        rows = self.rows.get(key)
        return rows[-1].origin if rows else BUILT_IN

    def entries(self, key: str) -> tuple[Entry, ...]:
        """The entries of an array of all layers, lowest layer first, each `(value, origin)`; of `network.hosts` each
        `((name, address), origin)`."""
        if KEY[key].kind not in ARRAYS and KEY[key].kind is not Kind.ADDRESSES:
            raise KeyError(f"{key} is no array")
        return tuple(
            Entry(_copied(entry.value), entry.origin) if isinstance(entry.value, dict) else entry
            for entry in self.rows.get(key, ())
        )

    def text(self, key: str) -> str:
        """A value that is always text."""
        value = self.value(key)
        assert isinstance(value, str), key
        return value

    def optional_text(self, key: str) -> str | None:
        """A value that is text or unset."""
        value = self.value(key)
        assert value is None or isinstance(value, str), key
        return value

    def switch(self, key: str) -> bool:
        """A value that is true or false."""
        value = self.value(key)
        assert isinstance(value, bool), key
        return value

    def number(self, key: str) -> float:
        """A value that is a number."""
        value = self.value(key)
        assert isinstance(value, int | float), key
        return float(value)

    def command(self, key: str) -> tuple[str, ...]:
        """A command's words, () where it is unset."""
        value = self.value(key)
        assert value is None or isinstance(value, tuple), key
        return value or ()

    def has_hooks(self) -> bool:
        """True if some layer has a hook."""
        return any(name.startswith("hooks.") and name != "hooks.trusted" for name in self.rows)

    def asks_about_hosts(self) -> bool:
        """True if a host that no rule names is put to a person: through the queue, and while it is asked for. Under
        `never` nobody is asked, under `on-failure` nobody before it has failed."""
        return self.switch("approvals.queue") and self.text("approval_policy") in ("untrusted", "on-request")

    def strings(self, key: str) -> tuple[str, ...]:
        """An array of text."""
        value = self.value(key)
        assert isinstance(value, tuple), key
        return value

    def table(self, prefix: str) -> dict[str, Any]:
        """`network.hosts` as name to address; of any other table the keys that some layer sets."""
        if prefix in KEY and KEY[prefix].kind is Kind.ADDRESSES:
            return dict(entry.value for entry in self.rows.get(prefix, ()))
        if not any(key.name.startswith(f"{prefix}.") for key in KEYS):
            raise KeyError(prefix)
        return {
            name.removeprefix(f"{prefix}."): setting.value
            for name, setting in self.values.items()
            if name.startswith(f"{prefix}.")
        }

    def features(self) -> dict[str, bool]:
        """Every feature, an embedding application's own too, and whether it is in effect."""
        own = {
            name: stage != "removed" and f"features.{name}" in self.values and self.values[f"features.{name}"].value
            for name, stage in self.stages.items()
        }
        return {feature.name: self.value(f"features.{feature.name}") for feature in FEATURES} | own


def _copied(table: dict[str, Any]) -> dict[str, Any]:
    """A caller's own copy of a rule's table: plain for JSON, and no way to change the configuration."""
    return {name: list(value) if isinstance(value, list) else value for name, value in table.items()}


def load(
    home: str,
    cwd: str,
    env: Mapping[str, str],
    profile: str | None = None,
    overrides: Sequence[str] = (),
    flags: Mapping[str, object] = MappingProxyType({}),
    *,
    source: str = "flag",
    system: str = SYSTEM_FILE,
    door_alone: bool = False,
) -> Configuration:
    """Read every layer. Raises ConfigurationError with all problems of all of them.

    `home` is $DOORWARD_HOME, `cwd` the workspace, both absolute; `env` gives HOME for paths that begin with `~`;
    `overrides` are the `-c` texts; `flags` maps dotted keys to what options said, `source` "api" if they are a
    library caller's arguments. `door_alone`: it is for a proxy without a sandbox, where `network.mode` shuts and opens
    nothing.
    """
    gathering = Gathering(env)
    _file(gathering, system, system, _SYSTEM, "system")
    _file(gathering, os.path.join(home, "config.toml"), "config.toml", _HOME, "home")
    trust, root, notices = _project(gathering, cwd, home)
    if profile is not None:
        _profile(gathering, home, profile)
    for text in overrides:
        _override(gathering, text)
    for key, value in flags.items():
        _flag(gathering, key, value, source)
    if gathering.own_features:
        gathering.settle_features()
    if not gathering.problems:
        gathering.problems += _contradictions(gathering, door_alone)
    if gathering.problems:
        from doorward.configuration_error import ConfigurationError

        raise ConfigurationError(gathering.problems)
    return Configuration(
        MappingProxyType(gathering.values),
        MappingProxyType({name: tuple(entry for entry, _ in rows) for name, rows in gathering.entries.items()}),
        trust,
        root,
        (*notices, *gathering.notices, *_fading_features(gathering)),
        MappingProxyType(gathering.stages),
    )


def _fading_features(gathering: Gathering) -> list[str]:
    """A notice for every feature that is switched on and should not be counted on."""
    found = []
    for name, stage in gathering.stages.items():
        setting = gathering.values.get(f"features.{name}")
        if setting is not None and setting.value and stage in ("deprecated", "removed"):
            effect = "which will go" if stage == "deprecated" else "so this does nothing"
            found.append(f"{setting.origin.where}: the feature {name} is {stage}, {effect}")
    return found


def _file(gathering: Gathering, path: str, short: str, rank: int, layer: str) -> bool:
    """Add a file's layer; False where there is none. `short` is how origins name it."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass  # reading it will tell
    import tomllib  # 10 ms, paid only by those who have a file

    from doorward.configuration_error import Problem
    from doorward.configuration_file import UnusableFile, read_text
    from doorward.configuration_lines import lines_of

    try:
        text = read_text(path)
    except UnusableFile as error:
        gathering.problems.append(error.problem)
        return True
    if text is None:
        return False
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        import re

        line = re.search(r"line (\d+)", str(error))
        number = int(line[1]) if line else text.count("\n") + 1
        message = re.sub(r" \(at .*\)$", "", str(error))
        gathering.problems.append(Problem(path, number, "", f"is not valid TOML: {message}"))
        return True
    except RecursionError:
        gathering.problems.append(Problem(path, None, "", "is nested deeper than any configuration is"))
        return True
    lines = lines_of(text)

    def place(at: tuple[str | int, ...]) -> Place:
        line = next((lines[at[:end]] for end in range(len(at), 0, -1) if at[:end] in lines), None)
        return Place(path, line, Origin("file", short if line is None else f"{short}:{line}"))

    gathering.add(document, rank, place, layer=layer)
    return True


def _project(gathering: Gathering, cwd: str, home: str) -> tuple[str, str, tuple[str, ...]]:
    """Add the trusted project's file. The trust, the folder it was given to, and a notice if there is a file that
    nobody has said anything about."""
    found = None
    if gathering.projects:
        from doorward.configuration_project import trust_of

        found = trust_of(cwd, gathering.projects)
    if found is not None:
        trust, root = found
        file = os.path.join(root, PROJECT_FILE)
        if trust == "trusted" and os.path.realpath(os.path.dirname(file)) != os.path.realpath(home):
            _file(gathering, file, PROJECT_FILE, _PROJECT, "project")
        return trust, root, ()
    unread = _unread_file(cwd, home)
    if unread is None:
        return "unknown", "", ()
    remedy = trusting(os.path.dirname(os.path.dirname(unread)))
    notice = f"{unread} is not read, since the project is not trusted; `{remedy}` trusts it"
    return "unknown", "", (notice,)


def _unread_file(cwd: str, home: str) -> str | None:
    """The project configuration a person might expect to count: the nearest one from `cwd` upwards, or None."""
    folder = cwd
    while True:
        file = os.path.join(folder, PROJECT_FILE)
        if os.path.lexists(file) and os.path.realpath(os.path.dirname(file)) != os.path.realpath(home):
            return file
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _profile(gathering: Gathering, home: str, name: str) -> None:
    import re  # not needed by most runs

    folder = os.path.join(home, "profiles")
    file = os.path.join(folder, f"{name}.toml")
    if re.fullmatch(_PROFILE_NAME, name) and _file(gathering, file, f"profiles/{name}.toml", _PROFILE, "profile"):
        return
    try:
        known = sorted(each.removesuffix(".toml") for each in os.listdir(folder) if each.endswith(".toml"))
    except OSError:
        known = []
    from doorward.configuration_error import Problem

    there = f"there are: {', '.join(known)}" if known else f"there is none yet in {folder}"
    gathering.problems.append(Problem(f"--profile {name}", None, "", "there is no such profile", there))


def _override(gathering: Gathering, text: str) -> None:
    from doorward.configuration_override import MalformedOverride, parse_override

    try:
        path, value = parse_override(text)
    except MalformedOverride as error:
        from doorward.configuration_error import Problem

        gathering.problems.append(Problem(f"-c {text}", None, "", str(error)))
        return
    where = f"-c {text.partition('=')[0].strip()}"
    _one(gathering, path, value, Place(where, None, Origin("flag", where)))


def _flag(gathering: Gathering, name: str, value: object, source: str) -> None:
    key = KEY.get(name)
    where = key.option if key is not None and key.option and source == "flag" else name
    if name.startswith("features.") and isinstance(value, bool) and source == "flag":
        where = f"{'--enable' if value else '--disable'} {name.removeprefix('features.')}"
    _one(gathering, tuple(name.split(".")), value, Place(where, None, Origin(source, where)))


def _one(gathering: Gathering, path: tuple[str, ...], value: object, place: Place) -> None:
    document: Any = value
    for part in reversed(path):
        document = {part: document}
    gathering.add(document, _COMMAND_LINE, lambda at: place, layer="command line")


def _contradictions(gathering: Gathering, door_alone: bool) -> list[Problem]:
    rules = [] if door_alone else _rules_that_would_not_hold(gathering)
    return [*rules, *_both_open_and_closed(gathering), *_reviewers_that_exclude_each_other(gathering)]


def _reviewers_that_exclude_each_other(gathering: Gathering) -> list[Problem]:
    """Two reviewers, or an endpoint without a model."""
    names = ("guardian.command", "guardian.endpoint", "guardian.rater")
    given = [name for name in names if name in gathering.values and gathering.values[name].value]
    if not given:
        return []
    from doorward.configuration_error import Problem

    where = gathering.values[given[-1]].origin.where
    if len(given) > 1:
        return [Problem(where, None, given[-1], f"{given[0]} is set too, and one reviewer is asked", "leave one out")]
    if given == ["guardian.endpoint"] and "guardian.model" not in gathering.values:
        return [Problem(where, None, given[0], "needs to know which model to ask", "set guardian.model")]
    return []


def _rules_that_would_not_hold(gathering: Gathering) -> list[Problem]:
    """Rules are enforced by the proxy alone. With the network open none of them holds; with the network off an allow
    that is no older than the switch was meant to work and does not."""
    setting = gathering.values.get("network.mode") or gathering.values.get("sandbox_mode")
    mode = str(gathering.effective(KEY["network.mode"]))
    if mode in ("proxied", "limited"):
        return []
    watching = gathering.values.get("network.observe")
    rank = setting.rank if setting is not None else 0
    because = f"network {mode} ({setting.origin.where if setting is not None else BUILT_IN.where})"
    from doorward.configuration_error import Problem

    found = []
    if watching is not None and watching.value:
        found.append(
            Problem(
                watching.origin.where,
                None,
                "network.observe",
                f"there is nothing to watch with {because}",
                "add --network proxied, or leave it out",
            )
        )
    opening = ("network.allow", "network.loopback", "network.publish")
    for key in (*opening, "network.deny") if mode == "full" else opening:
        for entry, at in gathering.entries.get(key, ()):
            if mode == "full" or at >= rank:
                value = entry.value["host"] if isinstance(entry.value, dict) else entry.value
                shown = value if isinstance(value, str) else ":".join(map(str, value))  # a port's entry is numbers
                found.append(
                    Problem(
                        entry.origin.where,
                        None,
                        key,
                        f"the rule {shown} would not hold with {because}",
                        "add --network proxied, or leave the rule out",
                    )
                )
    return found


def _both_open_and_closed(gathering: Gathering) -> list[Problem]:
    """One path, written twice in one layer, once to open and once to close it."""
    opened = gathering.entries.get("filesystem.write", ())
    if not opened:
        return []
    from doorward.configuration_error import Problem

    return [
        Problem(
            closed.origin.where,
            None,
            key,
            f"{closed.value} also stands in filesystem.write ({entry.origin.where})",
            "leave one of them out",
        )
        for key in ("filesystem.read_only", "filesystem.deny_read")
        for closed, rank in gathering.entries.get(key, ())
        for entry, at in opened
        if entry.value == closed.value and at == rank
    ]

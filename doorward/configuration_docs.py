"""Writes docs/configuration.md from the schema: `python -m doorward.configuration_docs > docs/configuration.md`."""

from collections.abc import Iterable

from doorward.configuration_schema import KEYS, Key, Kind, Project

_HEAD = """\
# Configuration

<!-- Written by `python -m doorward.configuration_docs`; change doorward/configuration_schema.py instead. -->

doorward runs without any configuration. What is here says what may differ from the defaults, and for whom.

## Layers

Lowest first. A higher layer replaces a value of a lower one and *adds* to an array: rules, paths and names of all
layers count together, and a deny of any layer beats every allow.

1. built-in
2. `/etc/doorward/config.toml`
3. `$DOORWARD_HOME/config.toml` (default `~/.doorward/config.toml`)
4. `.doorward/config.toml` in the project, if you trust the project
5. `$DOORWARD_HOME/profiles/NAME.toml` with `--profile NAME`
6. `-c key=value`, and the options of the command line

`-c` takes a dotted key and a TOML value; a bare word is taken as text: `-c network.mode=off`,
`-c 'network.allow=["a.test"]'`, `-c 'network.hosts."db.test"=127.0.0.1'`.

## Strict

An unknown key, a wrong type, a bad value and a rule that would not be enforced are errors, told all at once, each with
its file, line and nearest valid spelling; exit status 2, and nothing runs. So are a file that belongs to another user
(other than root), one that everybody can write to, and a link to a file that is not there.

Rules are held by the proxy. With `network.mode = "full"` none would hold, so every `network.allow` and `network.deny`
is an error then; with `"off"` an allow is one if it stands in the same layer or a higher one.

## Projects and trust

A project's own `.doorward/config.toml` is read only if the project is trusted. `doorward trust` says so for the folder
you are in (`doorward trust PATH` for another; `--untrusted` and `--forget` take it back), by writing into
`$DOORWARD_HOME/config.toml`

```toml
[projects."/path/of/the/project"]
trust_level = "trusted"
```

Folders below it inherit; the nearest folder that is named counts. Links and other spellings of a path are the same
project, and a linked git worktree counts as its repository. The file is read from the folder that is named and from no
other. It can tighten and add as the tables say; what it may not set, or would loosen, is an error.
"""


def render() -> str:
    """The whole page."""
    sections = {"Top level": [key for key in KEYS if "." not in key.name]}
    for key in KEYS:
        if "." in key.name:
            sections.setdefault(f"`[{key.name.rpartition('.')[0]}]`", []).append(key)
    return _HEAD + "".join(f"\n## {title}\n\n{_table(keys)}" for title, keys in sections.items())


def _table(keys: Iterable[Key]) -> str:
    lines = ["| key | value | default | option | in a project |", "|---|---|---|---|---|"]
    told = []
    for key in keys:
        default = "" if key.default is None else f"`{_toml(key.default)}`"
        option = ", ".join(f"`{each}`" for each in key.option.split(", ")) if key.option else ""
        project = "only in `$DOORWARD_HOME`" if key.home_only else str(key.project)
        name = key.name.rpartition(".")[2]
        lines.append(f"| `{name}` | {_values(key)} | {default} | {option} | {project} |")
        told.append(f"- `{name}`: {key.doc}.")
    return "\n".join([*lines, "", *told, ""])


def _values(key: Key) -> str:
    if key.kind is not Kind.CHOICE:
        return str(key.kind)
    listed = ", ".join(f'`"{choice}"`' for choice in key.choices)
    return f"{listed} (loosest first)" if key.project is Project.TIGHTEN else listed


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "[]" if value == () else f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    print(render(), end="")

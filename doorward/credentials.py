"""Credentials that a command works with and never holds: where each comes from, where it may go, what stands for it.

    [credentials.github]
    env = "GITHUB_TOKEN"              # or file = …, command = […], keyring = "SERVICE/USER"
    hosts = ["api.github.example"]
    place = "header"                  # or basic, query, cookie, aws
    name = "Authorization"            # of the header, parameter or cookie
    variable = "GITHUB_TOKEN"         # what holds the placeholder inside

The value is read outside, before the run starts, and goes to the inspection worker and the door through sockets. No
message here repeats any of it.
"""

from __future__ import annotations

import os
import re
import secrets
import string

from doorward.errors import UsageError
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from doorward.configuration import Configuration

SHORTEST = 8
"""Letters and digits of the shortest value that is brokered: a placeholder of fewer could stand somewhere by chance."""

LONGEST = 8192

_COMMAND_S = 30
_SOURCES = ("env", "file", "command", "keyring")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KEPT = re.compile(r"(?:[A-Za-z]{1,8}[_-]){1,3}|AKIA|ASIA|AIza|eyJ")
_DEFAULT_NAMES = {"header": "authorization", "basic": "authorization", "aws": "authorization"}


class Credential(NamedTuple):
    """What the configuration says of one. `source` is a key of the table, `given` its value; `hosts` are patterns as in
    rules, () where rules that name it are to say; `variable` is "" where no variable holds the placeholder; `by_rule`:
    it is put into requests that rules allow which name it, and into no others."""

    name: str
    source: str
    given: object
    hosts: tuple[str, ...]
    place: str
    field: str
    variable: str
    by_rule: bool = False

    def value(self, env: Mapping[str, str]) -> str:
        """Raises UsageError that names the credential and why it cannot be had."""
        try:
            found = _SOURCE[self.source](self.given, env)
        except _NotThere as error:
            raise UsageError(f"doorward: credentials.{self.name}: {error}") from None
        wrong = _wrong(found)
        if wrong:
            raise UsageError(f"doorward: credentials.{self.name}: what its {self.source} gives {wrong}")
        return found


def credentials_of(configuration: Configuration) -> tuple[Credential, ...]:
    """All that are configured. Raises UsageError with what is wrong with one."""
    tables: dict[str, dict[str, object]] = {}
    for path, value in configuration.table("credentials").items():
        name, _, key = path.rpartition(".")
        tables.setdefault(name, {})[key] = value
    for path, rows in configuration.rows.items():
        if path.startswith("credentials."):
            tables.setdefault(path.split(".")[1], {})["hosts"] = tuple(row.value for row in rows)
    return tuple(_credential(name, table) for name, table in sorted(tables.items()))


def placeholder_for(value: str) -> str:
    """Something of the same shape: its length, its kinds of characters, and a prefix by which programs tell tokens
    apart (`ghp_`, `sk-live-`, `AKIA`). Never the value itself."""
    kept = _KEPT.match(value)
    start = kept.end() if kept is not None and len(value) - kept.end() >= SHORTEST else 0
    while True:
        made = value[:start] + "".join(map(_like, value[start:]))
        if made != value:
            return made


def _like(mark: str) -> str:
    for kind in (string.ascii_lowercase, string.ascii_uppercase, string.digits):
        if mark in kind:
            return secrets.choice(kind)
    return mark


def _credential(name: str, table: Mapping[str, object]) -> Credential:
    def wrong(problem: str) -> UsageError:
        return UsageError(f"doorward: credentials.{name}: {problem}")

    if _NAME.fullmatch(name) is None:
        raise wrong("a credential's name is letters, digits, - and _")
    given = [source for source in _SOURCES if source in table]
    if len(given) != 1:
        raise wrong(f"it needs one source: {', '.join(_SOURCES)}")
    hosts = table.get("hosts", ())
    assert isinstance(hosts, tuple)
    if not all(isinstance(host, str) and not host.startswith(("{", "@")) for host in hosts):
        raise wrong("its hosts are patterns, as text")
    place = str(table.get("place", "header"))
    field = str(table.get("name", _DEFAULT_NAMES.get(place, ""))).strip()
    if _TOKEN.fullmatch(field) is None:
        raise wrong(f"place = {place!r} needs the name of the {place}")
    source = given[0]
    variable = str(table.get("variable", table["env"] if source == "env" else ""))
    if variable and _VARIABLE.fullmatch(variable) is None:
        raise wrong(f"{variable!r} is no variable's name")
    return Credential(
        name,
        source,
        table[source],
        tuple(str(host) for host in hosts),
        place,
        field.lower() if place in ("header", "basic") else field,
        variable,
    )


def _wrong(value: str) -> str:
    if sum(map(str.isalnum, value)) < SHORTEST:
        return f"is shorter than {SHORTEST} letters and digits, too short to be told from other text"
    if len(value) > LONGEST:
        return f"is longer than {LONGEST} characters"
    if not value.isascii() or not value.isprintable():
        return "has characters that cannot stand in a header"
    return ""


class _NotThere(Exception):
    """Why; one clause, without anything of the value."""


def _from_env(given: object, env: Mapping[str, str]) -> str:
    value = env.get(str(given))
    if value is None:
        raise _NotThere(f"the variable {given} is not set")
    return value


def _from_file(given: object, env: Mapping[str, str]) -> str:
    path = os.path.expanduser(str(given))
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(LONGEST + 2).removesuffix("\n").removesuffix("\r")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise _NotThere(f"{given} cannot be read: {why}") from None


def _from_command(given: object, env: Mapping[str, str]) -> str:
    import subprocess

    assert isinstance(given, list | tuple)
    words = [str(word) for word in given]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_S,
            cwd="/",  # not the workspace: what a command could have put there must not be run
            env=dict(env),
            check=False,
        )
        found = done.stdout.decode("utf-8")
    except OSError as error:
        raise _NotThere(f"{words[0]} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise _NotThere(f"{words[0]} did not end within {_COMMAND_S} s") from None
    except UnicodeDecodeError:
        raise _NotThere(f"{words[0]} printed something that is not text") from None
    if done.returncode != 0:
        raise _NotThere(f"{words[0]} failed with exit status {done.returncode}")
    return found.removesuffix("\n").removesuffix("\r")


def _from_keyring(given: object, env: Mapping[str, str]) -> str:
    try:
        import keyring
    except ImportError:
        raise _NotThere("the keyring needs a library: pip install keyring") from None
    service, _, user = str(given).rpartition("/")
    if not service:
        raise _NotThere(f"keyring = {given!r} is not SERVICE/USER")
    try:
        found = keyring.get_password(service, user)
    except Exception as error:  # each backend has its own
        raise _NotThere(f"the keyring does not open: {type(error).__name__}") from None
    if found is None:
        raise _NotThere(f"the keyring has nothing for {given}")
    return str(found)


_SOURCE = {"env": _from_env, "file": _from_file, "command": _from_command, "keyring": _from_keyring}

"""Which configuration file `doorward allowlist add` and `remove` change, and what else is in effect beside it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from doorward.allowlists.rule import MalformedRule, Origin, Rule, parse_rule
from doorward.commands.allowlist import printable_lines
from doorward.configuration import PROJECT_FILE, load
from doorward.configuration_error import ConfigurationError
from doorward.configuration_file import UnusableFile, read_text
from doorward.configuration_gather import Gathering, Place
from doorward.configuration_gather import Origin as Placed
from doorward.configuration_lines import lines_of
from doorward.configuration_project import trust_of, upwards
from doorward.configuration_schema import KEY
from doorward.errors import EngineError, UsageError
from doorward.gates.wording import trusting
from doorward.named_tuple import NamedTuple
from doorward.options import Parsed
from doorward.sessions.home import Home, StoreError, default_home, private_folder
from doorward.working_folder import working_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.allowlists.rule import RuleEffect

_PROFILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # what --profile of a run finds


class RuleFile(NamedTuple):
    """`layer` is home, project or profile; `unread` says why no run reads the file, if none does."""

    path: str
    layer: str
    unread: str = ""

    def check(self, text: str, effect: RuleEffect) -> None:
        """Raises UsageError if no run would take the file with this text."""
        # alone, a project's file cannot be held against the layers below it; loading did that
        gathering = _gathered(self.path, text, "home" if self.layer == "home" else "profile")
        if gathering.problems:
            raise ConfigurationError(gathering.problems)
        mode = str(gathering.effective(KEY["network.mode"]))
        if mode == "full" or (mode == "off" and effect == "allow"):
            setting = gathering.values.get("network.mode") or gathering.values["sandbox_mode"]
            raise UsageError(
                f"doorward: no rule would hold with network {mode} ({setting.origin.where}); "
                'set network.mode = "proxied" there first'
            )


def chosen_file(parsed: Parsed) -> RuleFile:
    """The file that --project or --profile name, else the home's. Raises UsageError."""
    home = _home()
    if parsed.has("project"):
        if parsed.has("profile"):
            raise UsageError("doorward allowlist: --project and --profile are two files; name one")
        return _project_file(home, working_folder(parsed.last("cd") or None))
    if parsed.has("cd"):
        raise UsageError("doorward allowlist: -C goes with --project")
    name = parsed.last("profile")
    if not parsed.has("profile"):
        return RuleFile(home.config, "home")
    if not _PROFILE_NAME.fullmatch(name):
        raise UsageError(f"doorward allowlist: {name!r} cannot be a profile's name: letters, digits, `_`, `-` and `.`")
    return RuleFile(f"{home.path}/profiles/{name}.toml", "profile")


def why_unread(path: str) -> str:
    """Why no run reads `path`, if it is the file of a project that is not trusted."""
    path, home = os.path.abspath(path), _home()
    if not path.endswith(f"/{PROJECT_FILE}") or os.path.realpath(os.path.dirname(path)) == os.path.realpath(home.path):
        return ""
    file = _project_file(home, os.path.dirname(os.path.dirname(path)))
    return file.unread if os.path.realpath(file.path) == os.path.realpath(path) else ""


@contextmanager
def folder_for(file: RuleFile) -> Iterator[None]:
    """The folder of the file is there inside; one that was made goes again if nothing came of it. Raises
    EngineError."""
    folder = os.path.dirname(file.path)
    there = os.path.isdir(folder)
    try:
        if file.layer == "project":
            os.makedirs(folder, exist_ok=True)
        else:
            home = _home().path
            os.makedirs(os.path.dirname(home), exist_ok=True)
            private_folder(home)
            private_folder(folder)
    except StoreError as error:
        raise EngineError(str(error)) from None
    except OSError as error:
        raise EngineError(f"cannot make {folder}: {error.strerror}") from None
    try:
        yield
    except BaseException:
        if not there:
            try:
                os.rmdir(folder)
            except OSError:
                pass  # somebody put something in
        raise


def rules_in_effect(parsed: Parsed, file: RuleFile, new: Iterable[Rule] = ()) -> list[Rule]:
    """The rules of every layer as a run would have them, presets left out. Raises UsageError; also where one of `new`,
    which are to be written to the file, names a credential it must not."""
    profile = parsed.last("profile") if file.layer == "profile" and os.path.lexists(file.path) else None
    folder = working_folder(parsed.last("cd") or None)
    configuration = load(home=_home().path, cwd=folder, env=os.environ, profile=profile)
    rules = []
    effects: tuple[RuleEffect, ...] = ("allow", "deny")
    for effect in effects:
        for entry, origin in configuration.entries(f"network.{effect}"):
            if isinstance(entry, str) and entry.startswith("@"):
                continue
            try:
                rules.append(parse_rule(entry, effect, Origin(origin.source, origin.where)))
            except MalformedRule as error:
                raise UsageError(printable_lines(f"doorward: {error}")) from None
    naming = [rule for rule in new if rule.credential]
    if naming:
        from doorward.credential_rules import bound
        from doorward.credentials import credentials_of

        where = PROJECT_FILE if file.layer == "project" else file.path
        named = {rule.credential for rule in naming}
        # another one may be without hosts as long as nothing is said here about it
        credentials = [each for each in credentials_of(configuration) if each.hosts or each.name in named]
        bound(credentials, [rule._replace(origin=Origin("file", where)) for rule in naming])
    return rules


def _home() -> Home:
    try:
        return Home(default_home(os.environ))
    except StoreError as error:
        raise EngineError(str(error)) from None


def _project_file(home: Home, folder: str) -> RuleFile:
    found = trust_of(folder, _trusted(home))
    if found is not None:
        trust, root = found
    else:
        trust, root = "unknown", _likely_root(home, folder)
    path = os.path.join(root, PROJECT_FILE)
    if os.path.realpath(os.path.dirname(path)) == os.path.realpath(home.path):
        raise UsageError(f"doorward allowlist: {path} is not a project's file but your own; leave out --project")
    for part in (os.path.dirname(path), path):
        if os.path.islink(part):
            raise UsageError(f"doorward allowlist: {part} is a link; a project's file is only changed where it is")
    unread = ""
    if trust == "unknown":
        unread = f"{path} is not read, since the project is not trusted; `{trusting(root)}` trusts it"
    elif trust != "trusted":
        unread = f"{path} is not read, since the project is marked as {trust}"
    return RuleFile(path, "project", unread)


def _trusted(home: Home) -> dict[str, str]:
    """What the home's file says about projects, whatever else is wrong with it."""
    try:
        text = read_text(home.config)
        return _gathered(home.config, text or "", "home").projects
    except UnusableFile as error:
        raise UsageError(f"doorward: {error.problem}") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"doorward: {home.config} is not valid TOML: {error}") from None


def _likely_root(home: Home, folder: str) -> str:
    """The project of a folder that nobody has said anything about: where its file is, else where its repository is."""
    for above in upwards(folder):
        own = os.path.realpath(os.path.join(above, ".doorward")) == os.path.realpath(home.path)
        if (os.path.lexists(os.path.join(above, PROJECT_FILE)) and not own) or os.path.lexists(
            os.path.join(above, ".git")
        ):
            return above
    return folder


def _gathered(path: str, text: str, layer: str) -> Gathering:
    """The file as one layer of the configuration, alone. Raises TOMLDecodeError."""
    document = tomllib.loads(text)
    lines = lines_of(text)

    def place(at: tuple[str | int, ...]) -> Place:
        line = next((lines[at[:end]] for end in range(len(at), 0, -1) if at[:end] in lines), None)
        return Place(path, line, Placed("file", path if line is None else f"{path}:{line}"))

    gathering = Gathering(os.environ)
    gathering.add(document, 0, place, layer=layer)
    return gathering

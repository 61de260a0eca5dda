"""@pip: the indexes pip is configured for, and the hosts their files come from.

pip itself is asked, so environment, every configuration file and a mirror count as they do for pip:

- `pip config list -v` gives the settings and the files they may come from. Of one setting pip takes the environment's,
  else the command's section, else `global`; an empty one is ignored (pip's ConfigOptionParser).
- Where no index is set, `pip download --help` prints the built-in one with the option.
- Each index's page for one project tells the file hosts; redirects on the way count.
- An index over plain http is left out unless it is loopback or a trusted host, as pip leaves it out.
- Local indexes (paths, file:) need no network and are skipped.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, urlsplit

from doorward.allowlists.addresses import AddressClass, classify
from doorward.allowlists.host import Address, Host, MalformedHost, authority_text, host_text, parse_rule_host
from doorward.allowlists.presets import (
    Fingerprint,
    Page,
    PresetExpansion,
    PresetHost,
    PresetUnavailable,
    Tools,
    may_be_preset,
)
from doorward.allowlists.simple_index import UnreadableIndex, file_links, project_pages

_PROGRAMS = (("pip",), ("pip3",), ("python3", "-m", "pip"))
_COMMANDS = ("install", "download", "wheel")  # the commands that fetch, each with a section of its own
_SAMPLES = ("pip", "setuptools", "wheel")  # projects that nearly every index has
_SCHEMES = {"http": 80, "https": 443}
_VARIABLES = ("PIP_*", "HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "VIRTUAL_ENV")

_SETTING = re.compile(r"(?P<section>:env:|[^.=]+)\.(?P<name>[^.=]+)=(?P<value>.*)")
_TRIED_FILE = re.compile(r"For variant '[^']*', will try loading '(?P<path>.*)'")
# the description is wrapped to the terminal's width, so the URL may be cut anywhere
_DEFAULT_INDEX = re.compile(r"--index-url\b(?:(?!--extra-index-url).)*?\(default\s+(?P<url>[^)]+)\)", re.DOTALL)
# user-info of a URL, which may be a credential
_USER = re.compile(r"//[^/\s]*@")

Settings = Mapping[tuple[str, str], str]


def expand(tools: Tools) -> PresetExpansion:
    """Raises PresetUnavailable when pip is missing, or when none of its indexes can be read."""
    program, output = _pip(tools)
    settings, files = read_settings(output)
    gathered = _Gathered(tools, settings)
    for url, why in _indexes(tools, program, settings):
        gathered.add_index(url, why)
    for url in _values(settings, "find-links"):
        gathered.add_links(url)
    if gathered.unread and not gathered.read:
        raise PresetUnavailable(
            f"no index that pip is configured for could be read: {gathered.unread[0]}",
            "check that pip works outside doorward, or name the hosts with --allow",
        )
    if _values(settings, "proxy"):
        gathered.notices.append(
            "pip's own setting `proxy` goes before the proxy variables, so pip will not use doorward's"
        )
    if not gathered.hosts and not gathered.notices:
        gathered.notices.append("pip is configured for local indexes only; @pip opens nothing")
    notices = tuple(dict.fromkeys((*gathered.notices, *gathered.unread)))
    return PresetExpansion(
        "pip", tuple(gathered.hosts.values()), notices, Fingerprint((program[0],), files, _VARIABLES)
    )


def read_settings(output: str) -> tuple[Settings, tuple[str, ...]]:
    """The settings by (section, name) and the configuration files tried, from `pip config list -v`."""
    settings: dict[tuple[str, str], str] = {}
    files: list[str] = []
    for line in output.splitlines():
        tried = _TRIED_FILE.fullmatch(line.strip())
        setting = _SETTING.fullmatch(line.strip())
        if tried is not None:
            files.append(tried["path"])
        elif setting is not None:
            settings[setting["section"], setting["name"].lower()] = _unquoted(setting["value"])
    return settings, tuple(dict.fromkeys(files))


def default_index(help_text: str) -> str | None:
    """The index that the help of a pip command prints as its default."""
    found = _DEFAULT_INDEX.search(help_text)
    return None if found is None else re.sub(r"\s+", "", found["url"])


def _pip(tools: Tools) -> tuple[tuple[str, ...], str]:
    for program in _PROGRAMS:
        output = tools.run([*program, "config", "list", "-v"])
        if output is not None:
            return program, output
    raise PresetUnavailable("pip is not found or does not run", "install pip, or name the hosts with --allow")


def _indexes(tools: Tools, program: tuple[str, ...], settings: Settings) -> Iterable[tuple[str, str]]:
    """URL and why, for every command that fetches; empty where pip is told to use no index."""
    without = [command for command in _COMMANDS if _flag(settings, command, "no-index")]
    commands = [command for command in _COMMANDS if command not in without]
    unset = [command for command in commands if _setting(settings, command, "index-url") is None]
    urls: dict[str, str] = {}
    for command in commands:
        url = _setting(settings, command, "index-url")
        if url is not None:
            urls.setdefault(url.strip(), "the index pip is configured for")
    if unset:
        url = default_index(tools.run([*program, unset[0], "--help"]) or "")
        if url is None:
            raise PresetUnavailable(
                "pip's help names no default index",
                "set index-url in pip's configuration, or name the hosts with --allow",
            )
        urls.setdefault(url, "pip's built-in index")
    for command in commands:
        for url in (_setting(settings, command, "extra-index-url") or "").split():
            urls.setdefault(url, "an extra index pip is configured for")
    return urls.items()


class _Gathered:
    """The hosts as they are found, each with the first reason."""

    def __init__(self, tools: Tools, settings: Settings) -> None:
        self.hosts: dict[tuple[Host, int], PresetHost] = {}
        self.notices: list[str] = []
        self.read: list[str] = []
        self.unread: list[str] = []
        self._tools = tools
        self._trusted = [text.lower() for text in _values(settings, "trusted-host")]
        self._ca_file = next((path for path in (_setting(settings, each, "cert") for each in _COMMANDS) if path), None)

    def add_index(self, url: str, why: str) -> None:
        if not self._add_configured(url, why):
            return
        shown = _without_user(url)
        root = url.rstrip("/")
        failure = "no page of it could be read"
        for page_url in (f"{root}/{quote(name)}/" for name in _SAMPLES):
            found, failure = self._files(page_url)
            if found:
                self.read.append(shown)
                return
        for page_url in self._listed(f"{root}/")[:1]:
            found, failure = self._files(page_url)
            if found:
                self.read.append(shown)
                return
        self.unread.append(f"{shown}: {failure}; only the index itself is opened")

    def add_links(self, url: str) -> None:
        """A page of links to archives, pip's find-links."""
        if self._add_configured(url, "a page of links pip is configured for"):
            found, failure = self._files(url)
            (self.read if found else self.unread).append(
                _without_user(url) if found else f"{_without_user(url)}: {failure}; only the page's host is opened"
            )

    def _add_configured(self, url: str, why: str) -> bool:
        """False for what pip does not reach over the network."""
        scheme = url.partition(":")[0].lower()
        if scheme not in _SCHEMES:
            return False
        place = _place(url)
        if place is None:
            self.notices.append(f"{_without_user(url)} is left out: it names no usable host")
            return False
        if scheme == "http" and not self._is_trusted(place) and not _is_loopback(place[0]):
            self.notices.append(
                f"{_without_user(url)} is left out, as pip leaves it out: plain http, and no trusted-host names it"
            )
            return False
        return self._add(place, why, configured=True)

    def _files(self, url: str) -> tuple[bool, str]:
        """Adds the hosts that the page's files and redirects lead to; False and why when there are none."""
        try:
            page = self._fetch(url)
            links = file_links(page.url, page.content_type, page.body)
        except (OSError, UnreadableIndex) as error:
            return False, _one_line(error)
        for link in links:
            place = _place(link)
            if place is not None:
                self._add(place, f"files of {_without_user(url)}", configured=False)
        return bool(links), "its page links to no file"

    def _listed(self, root: str) -> tuple[str, ...]:
        try:
            page = self._fetch(root)
            return project_pages(page.url, page.content_type, page.body)
        except (OSError, UnreadableIndex):
            return ()

    def _fetch(self, url: str) -> Page:
        place = _place(url)
        page = self._tools.fetch(url, ca_file=self._ca_file, verify=place is None or not self._is_trusted(place))
        for step in (*page.via, page.url):
            on_the_way = _place(step)
            if on_the_way is not None:
                self._add(on_the_way, f"redirected to from {_without_user(url)}", configured=False)
        return page

    def _add(self, place: tuple[Host, int], why: str, *, configured: bool) -> bool:
        known = self.hosts.get(place)
        if known is not None and (known.configured or not configured):
            return True
        if not may_be_preset(place[0], configured=configured):
            self.notices.append(f"{authority_text(*place)} ({why}) is left out: a preset never opens such an address")
            return False
        self.hosts[place] = PresetHost(*place, why, configured)
        return True

    def _is_trusted(self, place: tuple[Host, int]) -> bool:
        """trusted-host is HOST or HOST:PORT."""
        return host_text(place[0]) in self._trusted or authority_text(*place) in self._trusted


def _place(url: str) -> tuple[Host, int] | None:
    """Host and port of an http or https URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.hostname or ""
        found = parse_rule_host(f"[{host}]" if ":" in host else host)
    except (ValueError, MalformedHost):
        return None
    default = _SCHEMES.get(parts.scheme.lower())
    return None if default is None or port == 0 else (found, port or default)


def _is_loopback(host: Host) -> bool:
    if isinstance(host, Address):
        return classify(host.ip) is AddressClass.LOOPBACK
    return host.text == "localhost"


def _setting(settings: Settings, command: str, name: str) -> str | None:
    for section in (":env:", command, "global"):
        value = settings.get((section, name), "")
        if value.strip():
            return value
    return None


def _values(settings: Settings, name: str) -> tuple[str, ...]:
    """The words of a setting, for all commands that fetch."""
    words = (word for command in _COMMANDS for word in (_setting(settings, command, name) or "").split())
    return tuple(dict.fromkeys(words))


def _flag(settings: Settings, command: str, name: str) -> bool:
    # the words pip itself takes for yes (distutils' strtobool)
    return (_setting(settings, command, name) or "").lower() in {"y", "yes", "t", "true", "on", "1"}


def _unquoted(value: str) -> str:
    """pip prints each value as Python writes a string."""
    import ast

    try:
        plain = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
    return plain if isinstance(plain, str) else value


def _without_user(url: str) -> str:
    """The URL without user name and password, query and fragment, for messages."""
    return _USER.sub("//", re.split(r"[?#]", url)[0])


def _one_line(error: Exception) -> str:
    return _USER.sub("//", " ".join(str(error).split())) or type(error).__name__

"""The exact option that would allow a refused host. What it says always parses, and then allows."""

from __future__ import annotations

from doorward.allowlists.addresses import IPAddress
from doorward.allowlists.host import Host, authority_host
from doorward.allowlists.pattern import WEB_PORTS as WEB_PORTS
from doorward.allowlists.pattern import Kind, Pattern, has_port
from doorward.allowlists.rule import Origin, Rule, table_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# a set and not a pattern: the first refusal of a run would wait 3 ms for `re`
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-")


def entry_for(
    host: Host,
    port: int,
    addresses: Iterable[IPAddress] = (),
    methods: Iterable[str] = (),
    paths: Iterable[str] = (),
) -> str:
    """The narrowest entry that allows the host; with addresses, one that opens these past the guard too; with methods
    or paths, one for these alone."""
    entry = _with_port(authority_host(host), port)
    if not addresses and not methods and not paths:  # as for most, and a client waits
        return entry
    more = {"methods": list(methods), "paths": list(paths), "addresses": [str(ip) for ip in addresses]}
    more = {key: listed for key, listed in more.items() if listed}
    return table_text({"host": entry, **more}) if more else entry


def entry_for_www(host_text: str, port: int) -> str | None:
    """For `www.NAME` where NAME itself is allowed: `*.NAME`, the usual wish. None above a public suffix."""
    parent = host_text.removeprefix("www.")
    if "." not in parent:
        return None
    from doorward.allowlists.suffixes import suffix_kind

    if suffix_kind(parent) is not None:
        return None
    return _with_port(Pattern(Kind.BELOW, parent).text, port)


def allow_option(entry: str) -> str:
    """The entry as an option of `run`, `proxy` and `allowlist test`, quoted for a shell."""
    return f"--allow {_quoted(entry)}"


def undo_option(rule: Rule) -> str:
    """What takes a deny rule away."""
    source, where = rule.origin
    if source == "flag":
        return f"leave out {where}" if where.startswith("-c ") else f"leave out --deny {_quoted(rule.text)}"
    if source == "file":
        option = file_option(rule.origin)
        if option is None:
            return f"take {_quoted(rule.text)} out of {where}"
        dashes = "-- " if rule.text.startswith("-") else ""
        return f"doorward allowlist remove{option} --deny {dashes}{_quoted(rule.text)}"
    return ""


def file_option(origin: Origin) -> str | None:
    """The option, with a blank before it, with which `doorward allowlist` changes the file a rule is from; "" for the
    person's own file, None where it changes no such file."""
    import re  # only where words are made for a person

    file = re.sub(r":[0-9]+$", "", origin.where)
    if origin.source != "file" or file.startswith("/"):
        return None  # the machine's own
    if file == "config.toml":
        return ""
    if file == ".doorward/config.toml":
        return " --project"
    profile = re.fullmatch(r"profiles/(.+)\.toml", file)
    return None if profile is None else f" --profile {_quoted(profile[1])}"


def _with_port(pattern: str, port: int) -> str:
    return pattern if has_port(WEB_PORTS, port) else f"{pattern}:{port}"


def _quoted(text: str) -> str:
    if text and _PLAIN.issuperset(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"

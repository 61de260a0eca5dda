"""The exact option that would allow a refused host. What it says always parses, and then allows."""

import re
from collections.abc import Iterable

from doorward.allowlists.addresses import IPAddress
from doorward.allowlists.host import Host, Name
from doorward.allowlists.pattern import WEB_PORTS as WEB_PORTS
from doorward.allowlists.pattern import Kind, Pattern, has_port, pattern_for
from doorward.allowlists.rule import Rule, table_text
from doorward.allowlists.suffixes import suffix_kind

_PLAIN = re.compile(r"[A-Za-z0-9._:/-]+", re.ASCII)


def entry_for(host: Host, port: int, addresses: Iterable[IPAddress] = (), methods: Iterable[str] = ()) -> str:
    """The narrowest entry that allows the host; with addresses, one that opens these past the guard too; with methods,
    one for these alone."""
    entry = _with_port(host.text if isinstance(host, Name) else pattern_for(host).text, port)
    more = {"methods": list(methods), "addresses": [str(ip) for ip in addresses]}
    more = {key: listed for key, listed in more.items() if listed}
    return table_text({"host": entry, **more}) if more else entry


def entry_for_www(host_text: str, port: int) -> str | None:
    """For `www.NAME` where NAME itself is allowed: `*.NAME`, the usual wish. None above a public suffix."""
    parent = host_text.removeprefix("www.")
    if "." not in parent or suffix_kind(parent) is not None:
        return None
    return _with_port(Pattern(Kind.BELOW, parent).text, port)


def allow_option(entry: str) -> str:
    """The entry as an option of `run`, `proxy` and `allowlist test`, quoted for a shell."""
    return f"--allow {_quoted(entry)}"


def undo_option(rule: Rule) -> str:
    """What takes a deny rule away."""
    if rule.origin.source == "flag":
        return f"leave out --deny {_quoted(rule.text)}"
    if rule.origin.source == "file":
        return f"doorward allowlist remove {_quoted(rule.text)}"
    return ""


def _with_port(pattern: str, port: int) -> str:
    return pattern if has_port(WEB_PORTS, port) else f"{pattern}:{port}"


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text) is not None:
        return text
    return "'" + text.replace("'", "'\\''") + "'"

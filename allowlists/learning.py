"""The smallest rules for what was seen: exact hosts and ports, generalised only by stated rules. Pure.

- One rule a host and port; a host that was reached on 80 and 443, and on no other port, is written without one.
- An address becomes a rule for that address, and opens nothing else.
- What the rule that let it pass said besides (`addresses`, `tls`, `dns`) is kept, for without it the place stays shut.
- Methods and paths are written where all requests to the place were seen (inspection, plain HTTP).
- `wildcards` (off by default): where at least that many sibling names below one domain were seen, `*.DOMAIN` stands for
  them. Never for a registry's suffix, and never for a zone that strangers share (`*.github.io`).
"""

import tomllib
from collections.abc import Iterable, Mapping

from doorward.allowlists.host import Name, authority_host, parse_host
from doorward.allowlists.suffixes import suffix_kind
from doorward.named_tuple import NamedTuple

_WEB = (80, 443)


class Seen(NamedTuple):
    """One place that was used. `host` as a record has it, literals without brackets; `methods` and `paths` are empty
    where requests were not seen, as in a tunnel."""

    host: str
    port: int
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    rule: str = ""
    """The rule that let it pass, as a record has it."""


class Learned(NamedTuple):
    """One rule, with the places it stands for. `entry` is text, or a table where it says more than host and port."""

    entry: str | Mapping[str, object]
    places: tuple[tuple[str, int], ...]


def learn(seen: Iterable[Seen], *, wildcards: int = 0, methods: bool = False) -> list[Learned]:
    """The rules, sorted by host. `methods` writes down methods (and of one host few paths) where they are known."""
    ports: dict[str, dict[int, list[Seen]]] = {}
    for each in seen:
        ports.setdefault(each.host, {}).setdefault(each.port, []).append(each)
    besides = {
        (host, port): said for host, used in ports.items() for port, many in used.items() if (said := _besides(many))
    }
    learned: list[Learned] = []
    plain = {host: used for host, used in ports.items() if not any((host, port) in besides for port in used)}
    for domain, names in _siblings(plain, wildcards).items():
        used = sorted({port for name in names for port in ports[name]})
        for entry, stands_for in _entries(f"*.{domain}", used):
            places = tuple((name, port) for name in sorted(names) for port in stands_for if port in ports[name])
            learned.append(Learned(entry, places))
        for name in names:
            del ports[name]
    for host in ports:
        limited = methods and all(each.methods for many in ports[host].values() for each in many)
        if limited or host not in plain:
            for port, many in sorted(ports[host].items()):
                learned.append(_table(host, port, many if limited else (), besides.get((host, port), {})))
        else:
            for entry, stands_for in _entries(_rule_host(host), sorted(ports[host])):
                learned.append(Learned(entry, tuple((host, port) for port in stands_for)))
    return sorted(learned, key=lambda each: _sort_key(each.entry))


def _entries(host: str, used: list[int]) -> list[tuple[str, tuple[int, ...]]]:
    """Entries, each with the ports it stands for."""
    if tuple(used) == _WEB:
        return [(host, _WEB)]
    return [(f"{host}:{port}", (port,)) for port in used]


def _rule_host(host: str) -> str:
    return authority_host(parse_host(f"[{host}]" if ":" in host else host))


def _table(host: str, port: int, many: Iterable[Seen], besides: Mapping[str, object]) -> Learned:
    """A rule about requests (where `many` is not empty), or one that says more than host and port."""
    many = list(many)
    entry = f"{_rule_host(host)}:{port}"
    table: dict[str, object] = {"host": entry}
    if many:
        table["methods"] = sorted({method for each in many for method in each.methods})
    paths = sorted({path for each in many for path in each.paths})
    if paths and all(each.paths for each in many) and len(paths) <= _FEW_PATHS:
        table["paths"] = paths
    table |= besides
    return Learned(table if len(table) > 1 else entry, ((host, port),))


def _besides(many: Iterable[Seen]) -> dict[str, object]:
    """What the rules that let these pass said besides host and port, put together."""
    found: dict[str, object] = {}
    for rule in dict.fromkeys(each.rule for each in many if each.rule.startswith("{")):
        try:
            table = tomllib.loads(f"rule = {rule}")["rule"]
        except tomllib.TOMLDecodeError:
            continue  # a record of another version
        for key in ("addresses", "dns"):
            if isinstance(said := table.get(key), list):
                known = found.get(key, [])
                assert isinstance(known, list)
                found[key] = [*known, *(each for each in said if each not in known)]
        if isinstance(table.get("tls"), str):
            found["tls"] = table["tls"]
    return found


_FEW_PATHS = 8
"""More exact paths of one host than these are a program walking about; they are then left out of the rule."""


def _siblings(hosts: Iterable[str], wildcards: int) -> dict[str, list[str]]:
    """Names to be put under one wildcard, by the domain above them."""
    if wildcards < 2:
        return {}
    below: dict[str, list[str]] = {}
    for host in hosts:
        parsed = parse_host(f"[{host}]" if ":" in host else host)
        if isinstance(parsed, Name) and "." in parsed.text:
            below.setdefault(parsed.text.partition(".")[2], []).append(host)
    return {
        domain: names
        for domain, names in below.items()
        if len(names) >= wildcards and "." in domain and suffix_kind(domain) is None
    }


def _sort_key(entry: str | Mapping[str, object]) -> tuple[list[str], str]:
    text = entry if isinstance(entry, str) else str(entry["host"])
    host = text.removeprefix("*.").partition(":")[0]
    return (host.split(".")[::-1], text)

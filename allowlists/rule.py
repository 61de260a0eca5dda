"""One rule: what a person wrote, what it means, and where it came from.

An entry is text in the grammar of `pattern.py`, or a table with more to say:

    {host = "db.corp:5432", addresses = ["10.0.0.0/8"], tls = "any"}
    {host = "mirror.test:80", methods = ["GET", "HEAD"], paths = ["/pub/**"]}

`addresses` lists what the guard lets pass for these names; `tls = "any"` lifts the check of the TLS name; `methods`
and the conditions of `conditions.py` allow only requests that are seen and meet them, and so no tunnel that nobody
looks into. `credential` names one that is put into the requests it allows. A flag takes the same table as inline TOML.
Without a port an allow means 80 and 443, a deny every port.

`localhost` is the one name that brings its addresses: `localhost:8080` opens 127.0.0.1 and ::1 on that port, asked for
by that name and no other. An address rule opens the literal alone: with `127.0.0.1:4318`, `localhost:4318` is shut.
"""

from __future__ import annotations

from doorward.allowlists.addresses import IPNetwork, opens_local
from doorward.allowlists.methods import MalformedMethods, parse_methods, unknown_methods
from doorward.allowlists.pattern import (
    EVERY_PORT,
    WEB_PORTS,
    Kind,
    MalformedPattern,
    Pattern,
    Ports,
    parse_network,
    parse_pattern,
)
from doorward.allowlists.suffixes import SuffixKind, suffix_kind
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Literal

    from doorward.allowlists.conditions import Conditions

    RuleEffect = Literal["allow", "deny"]
    Tls = Literal["name", "any"]
    Entry = str | Mapping[str, object]
else:
    RuleEffect = Tls = str
    Entry = object

_CONDITIONS = ("paths", "query", "headers", "graphql")
_KEYS = ("host", "methods", *_CONDITIONS, "credential", "addresses", "tls", "dns")
_UDP = "udp:"


_BARE_KEY = r"[A-Za-z0-9_-]+"


class Origin(NamedTuple):
    """`source`: builtin, file, preset, flag, api or policy. `where`: `--allow`, `config.toml:12`, `@pip`."""

    source: str
    where: str


class Rule(NamedTuple):
    """`addresses` are the networks the rule opens past the guard besides a literal or block it names itself.

    `methods` are all that it allows, sorted; () for every method. `conditions` are what else a request must meet.
    Without either the rule opens tunnels too.
    """

    effect: RuleEffect
    text: str
    pattern: Pattern
    ports: Ports
    ports_named: bool
    origin: Origin
    addresses: tuple[IPNetwork, ...] = ()
    tls: Tls = "name"
    notices: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    conditions: Conditions | None = None
    udp: bool = False
    """About datagrams, and about nothing else; a deny without it is about them too."""
    dns: tuple[str, ...] = ()
    """Types of records, besides addresses, that may be asked about these names."""
    credential: str = ""
    """The credential that is put into what it allows; whether there is one of that name is not known here."""

    @property
    def limited(self) -> bool:
        """Whether it allows some requests only, so that requests must be seen."""
        return bool(self.methods) or self.conditions is not None

    @property
    def opened(self) -> tuple[IPNetwork, ...]:
        """Every network whose local addresses the rule opens."""
        return self.addresses if self.pattern.network is None else (self.pattern.network, *self.addresses)

    @property
    def described(self) -> str:
        """`the rule *.a.test (--allow)`, for messages."""
        return f"the rule {self.text} ({self.origin.where})"


class MalformedRule(ValueError):
    """An entry that cannot be used. `position` counts from 1 within its list; `suggestion` parses, or is None."""

    def __init__(
        self, entry: str, problem: str, *, origin: Origin, suggestion: str | None = None, position: int | None = None
    ) -> None:
        self.entry = entry
        self.problem = problem
        self.origin = origin
        self.suggestion = suggestion
        self.position = position
        super().__init__(entry, problem)

    def __str__(self) -> str:
        place = self.origin.where if self.position is None else f"{self.origin.where}, entry {self.position}"
        text = f"{place}: {self.entry!r} is no usable rule: {self.problem}"
        return text if self.suggestion is None else f"{text}; write {self.suggestion!r}"


class MalformedRules(MalformedRule):
    """Every bad entry of a configuration; as a MalformedRule it stands for the first."""

    def __init__(self, problems: Iterable[MalformedRule]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        super().__init__(
            first.entry, first.problem, origin=first.origin, suggestion=first.suggestion, position=first.position
        )

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        return "\n".join((f"{len(self.problems)} rules cannot be used:", *(f"  {each}" for each in self.problems)))


def loopback_of_localhost() -> tuple[IPNetwork, ...]:
    """What a rule for the exact name `localhost` opens."""
    from ipaddress import ip_network

    return ip_network("127.0.0.1"), ip_network("::1")


def parse_rule(entry: Entry, effect: RuleEffect, origin: Origin) -> Rule:
    """Raises MalformedRule naming what is wrong and the nearest valid spelling."""
    if isinstance(entry, str):
        if entry.startswith("{"):
            return _parse_table(_inline_table(entry, origin), entry, effect, origin)
        return _parse_text(entry, effect, origin)
    return _parse_table(entry, table_text(entry), effect, origin)


def parse_rules(entries: Iterable[Entry], effect: RuleEffect, origin: Origin) -> tuple[Rule, ...]:
    """All of one list. Raises MalformedRules with every bad entry and its position."""
    rules: list[Rule] = []
    problems: list[MalformedRule] = []
    for position, entry in enumerate(entries, 1):
        try:
            rules.append(parse_rule(entry, effect, origin))
        except MalformedRule as problem:
            problem.position = position
            problems.append(problem)
    if problems:
        raise MalformedRules(problems)
    return tuple(rules)


def table_text(table: Mapping[str, object]) -> str:
    """The table as inline TOML, as far as its values allow."""
    import json  # a TOML basic string is a JSON string for all text that a rule may hold
    import re

    def text(value: object) -> str:
        if isinstance(value, dict):
            return table_text({str(key): each for key, each in value.items()})
        return json.dumps(value, default=repr, ensure_ascii=False)

    def spelled(key: str) -> str:
        return key if re.fullmatch(_BARE_KEY, key) else json.dumps(key)

    return "{" + ", ".join(f"{spelled(key)} = {text(value)}" for key, value in table.items()) + "}"


def _parse_text(text: str, effect: RuleEffect, origin: Origin) -> Rule:
    if text.startswith("@"):
        raise MalformedRule(
            text, "a preset is expanded before rules are read, and only an allow takes one", origin=origin
        )
    datagrams = _of_datagrams(text, effect, origin)
    if datagrams is not None:
        return datagrams
    try:
        pattern, ports = parse_pattern(text)
    except MalformedPattern as problem:
        from doorward.allowlists.spelling import suggest

        suggestion = suggest(text, wildcard_above_suffix=effect == "deny")
        raise MalformedRule(text, str(problem), origin=origin, suggestion=suggestion) from None
    notices: tuple[str, ...] = ()
    addresses: tuple[IPNetwork, ...] = ()
    if effect == "allow":
        if pattern.kind is not Kind.EXACT:
            notices = _notices(text, pattern, origin)
        elif pattern.name == "localhost":
            addresses = loopback_of_localhost()
    if ports is None:
        return Rule(
            effect,
            text,
            pattern,
            WEB_PORTS if effect == "allow" else EVERY_PORT,
            False,
            origin,
            addresses,
            "name",
            notices,
        )
    return Rule(effect, text, pattern, ports, True, origin, addresses, "name", notices)


def _of_datagrams(text: str, effect: RuleEffect, origin: Origin) -> Rule | None:
    """The rule that `udp:HOST:PORT` is; None for another entry, such as a host called `udp`."""
    rest = text[len(_UDP) :]
    if not text.startswith(_UDP) or not rest or rest.replace("-", "").isdigit() or rest == "*":
        return None
    try:
        rule = _parse_text(rest, effect, origin)
    except MalformedRule as problem:
        near = problem.suggestion
        near = None if near is None or ":" not in near else _UDP + near
        raise MalformedRule(text, problem.problem, origin=origin, suggestion=near) from None
    if effect == "allow" and not rule.ports_named:
        raise MalformedRule(
            text, "a rule for datagrams names its port", origin=origin, suggestion=f"{text}:443"
        )
    return rule._replace(text=text, udp=True)


def _notices(text: str, pattern: Pattern, origin: Origin) -> tuple[str, ...]:
    """What a person should hear about a wide allow. Raises MalformedRule above a registry's suffix."""
    if pattern.kind is Kind.ANY:
        return (f"{text} ({origin.where}) opens EVERY public host; only private and metadata addresses stay shut",)
    if pattern.network is not None:
        if opens_local(pattern.network):
            return (f"{text} ({origin.where}) also opens local addresses inside it, such as private or loopback ones",)
        return ()
    from doorward.allowlists.spelling import above_registry_suffix, suggest  # for wildcards

    if above_registry_suffix(pattern):
        raise MalformedRule(
            text,
            f"{pattern.name} is a registry's suffix: the wildcard would open the sites of strangers",
            origin=origin,
            suggestion=suggest(text, wildcard_above_suffix=False),
        )
    if suffix_kind(pattern.name) is SuffixKind.SHARED:
        return (f"{text} ({origin.where}) opens a shared zone: anyone may have a name under {pattern.name}",)
    return ()


def _inline_table(entry: str, origin: Origin) -> Mapping[str, object]:
    import tomllib  # only for a table given on the command line

    try:
        table = tomllib.loads(f"rule = {entry}")
    except tomllib.TOMLDecodeError as problem:
        raise MalformedRule(entry, f"the table is not valid inline TOML: {problem}", origin=origin) from None
    rule = table["rule"]
    if len(table) != 1 or not isinstance(rule, dict):
        raise MalformedRule(entry, "the entry is more than one inline table", origin=origin)
    return rule


def _parse_table(table: Mapping[str, object], shown: str, effect: RuleEffect, origin: Origin) -> Rule:
    def wrong(problem: str, better: Mapping[str, object] | str | None = None) -> MalformedRule:
        return MalformedRule(shown, problem, origin=origin, suggestion=_usable(better, effect, origin))

    for key in table:
        if key not in _KEYS:
            raise wrong(f"a rule has no key {key!r}; it has {', '.join(_KEYS)}", _with_nearest_key(table, key))
    host = table.get("host")
    if not isinstance(host, str) or host.startswith("{"):
        raise wrong("the table needs a host, as text")
    try:
        rule = _parse_text(host, effect, origin)
    except MalformedRule as problem:
        raise wrong(
            problem.problem, None if problem.suggestion is None else {**table, "host": problem.suggestion}
        ) from None
    if effect == "deny" and len(table) > 1:
        raise wrong("a deny has nothing but its host: what it matches is shut for every method and address", host)
    tls = table.get("tls", "name")
    if tls != "name" and tls != "any":
        raise wrong('tls is "name" or "any"', {**table, "tls": "name"})
    methods, notices = _methods(table, shown, origin, wrong)
    conditions = _conditions_of(table, wrong)
    if (methods or conditions is not None) and tls == "any":
        without = {key: value for key, value in table.items() if key != "tls"}
        what = "methods" if methods else "conditions"
        raise wrong(f"tls is about tunnels, and a rule with {what} allows none", without)
    credential = _credential_of(table, wrong)
    if credential and tls == "any":
        raise wrong("a credential goes into requests inside TLS, and with tls nobody looks into a tunnel")
    types = _record_types(table, rule, wrong)
    if rule.udp and (methods or conditions is not None or types or credential):
        raise wrong("a rule for datagrams has nothing but its host, addresses and tls")
    listed = table.get("addresses", [])
    if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
        raise wrong("addresses is a list of addresses or blocks, as text")
    if listed and rule.pattern.kind in {Kind.ANY, Kind.NETWORK}:
        raise wrong("addresses goes with names; a star never opens local addresses, and an address rule names its own")
    try:
        networks = tuple(parse_network(each) for each in listed)
    except MalformedPattern as problem:
        raise wrong(f"in addresses: {problem}") from None
    return rule._replace(
        text=shown,
        addresses=(*rule.addresses, *networks),
        tls=tls,
        notices=(*rule.notices, *notices),
        methods=methods,
        conditions=conditions,
        dns=types,
        credential=credential,
    )


def _credential_of(table: Mapping[str, object], wrong: Callable[..., MalformedRule]) -> str:
    if "credential" not in table:
        return ""
    import re

    name = table["credential"]
    if not isinstance(name, str) or re.fullmatch(_BARE_KEY, name) is None:
        raise wrong("credential is the name of one, as in [credentials.NAME]")
    return name


def _record_types(
    table: Mapping[str, object], rule: Rule, wrong: Callable[..., MalformedRule]
) -> tuple[str, ...]:
    """The types a rule lists under `dns`, in upper case."""
    if "dns" not in table:
        return ()
    listed = table["dns"]
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(each, str) for each in listed):
        raise wrong('dns is a list of types of records, such as ["TXT", "MX"]')
    if rule.pattern.kind is Kind.NETWORK:
        raise wrong("dns goes with names; an address has no records")
    types = tuple(dict.fromkeys(each.upper() for each in listed))
    for each in types:
        if not each.isascii() or not each.isalnum() or each.isdigit():
            raise wrong(f"{each!r} is no type of a DNS record")
    return types


def _conditions_of(table: Mapping[str, object], wrong: Callable[..., MalformedRule]) -> Conditions | None:
    if not any(key in table for key in _CONDITIONS):
        return None
    from doorward.allowlists.conditions import MalformedConditions, parse_conditions  # only for those who use them

    try:
        return parse_conditions(table)
    except MalformedConditions as problem:
        better = None if problem.suggestion is None else {**table, problem.key: problem.suggestion}
        raise wrong(str(problem), better) from None


def _methods(
    table: Mapping[str, object], shown: str, origin: Origin, wrong: Callable[..., MalformedRule]
) -> tuple[tuple[str, ...], list[str]]:
    """The methods and what a person should hear about them."""
    if "methods" not in table:
        return (), []
    try:
        methods = parse_methods(table["methods"])
    except MalformedMethods as problem:
        better = None if problem.suggestion is None else {**table, "methods": problem.suggestion}
        raise wrong(str(problem), better) from None
    return methods, [
        f"{shown} ({origin.where}) allows {each}, which is no registered method"
        + (f" (did you mean {near}?)" if near else "")
        for each, near in unknown_methods(methods)
    ]


def _usable(better: Mapping[str, object] | str | None, effect: RuleEffect, origin: Origin) -> str | None:
    """A suggestion, unless something else in it is wrong too."""
    if better is None:
        return None
    try:
        return parse_rule(better, effect, origin).text
    except MalformedRule as problem:
        return problem.suggestion


def _with_nearest_key(table: Mapping[str, object], key: str) -> Mapping[str, object] | None:
    import difflib

    near = difflib.get_close_matches(key, _KEYS, n=1)
    if not near or near[0] in table:
        return None
    return {near[0] if name == key else name: value for name, value in table.items()}


def rule_entry(rule: Rule) -> str:
    """The rule's canonical entry: one spelling for one meaning, read back by parse_rule."""
    from doorward.allowlists.spelling import canonical

    host = canonical(rule.pattern, rule.ports if rule.ports_named else None)
    if rule.udp:
        host = _UDP + host
    own = loopback_of_localhost() if rule.pattern == Pattern(Kind.EXACT, "localhost") else ()
    more: dict[str, object] = {}
    if rule.methods:
        more["methods"] = list(rule.methods)
    if rule.conditions is not None:
        more |= rule.conditions.table()
    if rule.credential:
        more["credential"] = rule.credential
    extra = [str(network) for network in rule.addresses if network not in own]
    if extra:
        more["addresses"] = extra
    if rule.tls == "any":
        more["tls"] = "any"
    if rule.dns:
        more["dns"] = list(rule.dns)
    return table_text({"host": host, **more}) if more else host

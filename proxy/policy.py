"""What one policy holds its connections to: rules, limits, and the way out."""

from __future__ import annotations

from doorward.allowlists.decision import Decision
from doorward.allowlists.host import Address, Host, MalformedHost, Name, parse_rule_host
from doorward.allowlists.index import RuleIndex
from doorward.allowlists.observing import observed
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import AddressVerdict, RuleSet
from doorward.allowlists.settings import MalformedSettings, rule_set_from_settings
from doorward.named_tuple import NamedTuple
from doorward.plain_collections import lru_cache
from doorward.proxy.interface_addresses import InterfaceAddresses, interface_addresses
from doorward.proxy.known_requests import KnownRequests
from doorward.proxy.limits import DEFAULT, Limits, limits_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from doorward.allowlists.conditions import Request
    from doorward.proxy.parent import Parent
    from doorward.proxy.resolver import IP

_REMEMBERED = 1024  # decisions, and verdicts; a client that asks for more names than that gains nothing by it


class Inspection(NamedTuple):
    """What a worker looks into besides the hosts whose rules ask for it: all tunnels, or those to some hosts."""

    every: bool = False
    credentials: tuple[tuple[str, RuleIndex], ...] = ()  # names, each with the hosts it may go to
    by_rule: frozenset[str] = frozenset()  # of those that only go where a rule for the request names them
    secrets: tuple[tuple[str, str], ...] = ()  # names, each with a text that must not pass in a plain request

    def credentials_for(self, decision: Decision) -> tuple[str, ...]:
        """The names of those that may go there."""
        host, port = decision.host, decision.port
        return tuple(name for name, hosts in self.credentials if _opens(hosts, host, port))

    def __repr__(self) -> str:
        return f"Inspection(every={self.every})"  # without what is secret


def _opens(hosts: RuleIndex, host: Host, port: int) -> bool:
    return hosts.find(host, port) is not None or hosts.star_at(port) is not None


class Policy:
    """Immutable; a reload puts another in its place. `parent_resolves`: zones whose names go to the parent by name."""

    __slots__ = (
        *("_verdicts", "answer_time", "decide", "decide_name", "follow", "inspection", "limits", "notices"),
        *("known_requests", "observing", "parent", "parent_resolves", "rules"),
    )

    decide: Callable[[Host, int], Decision]
    """The rule set's decision by name; remembered, since a client asks for few hosts many times."""

    decide_name: Callable[[Name], Decision]
    """The rule set's decision on a look-up; remembered likewise."""

    def __init__(
        self,
        rules: RuleSet,
        limits: Limits = DEFAULT,
        parent: Parent | None = None,
        parent_resolves: frozenset[str] = frozenset(),
        notices: tuple[str, ...] = (),
        answer_time: float | None = None,
        inspection: Inspection | None = None,
        *,
        observing: bool = False,
        follow: frozenset[str] = frozenset(),
    ) -> None:
        """`answer_time`: seconds a question about a host may take; None where nobody can be asked. `observing`: what no
        rule allows passes all the same (`allowlists/observing.py`)."""
        self.rules = rules
        self.limits = limits
        self.parent = parent
        self.parent_resolves = parent_resolves
        self.answer_time = answer_time
        self.notices = notices  # what a person should hear before the run
        self.inspection = inspection  # None without a worker
        self.observing = observing
        self.follow = follow  # "publish", "loopback": see `loopback`
        self.decide = lru_cache(_REMEMBERED)(self._watched_decision if observing else rules.decide)
        self.decide_name = lru_cache(_REMEMBERED)(self._watched_name if observing else rules.decide_name)
        self.known_requests = KnownRequests()
        # by the decision's identity, which is its own for as long as it is kept here
        self._verdicts: dict[int, tuple[Decision, tuple[IP, ...], AddressVerdict]] = {}

    def admit(
        self,
        host: Host,
        port: int,
        method: str,
        target: str = "",
        headers: Iterable[tuple[str, str]] = (),
        operations: tuple[str, ...] | None = None,
        *,
        visible: bool,
        upgrade: bool = False,
    ) -> Decision:
        """The rule set's decision on a request (see `conditions.Request`); not `visible`: it opens a tunnel in which no
        request can be seen, unless it `inspects` it."""
        decision = self.decide(host, port)
        if decision.rule is None or not decision.rule.limited or (not visible and self.inspection is not None):
            return decision
        from doorward.allowlists.conditions import Request  # only where a rule limits something

        judged = self.rules.judge_request(
            decision, Request(method, target, tuple(headers), operations, upgrade), visible=visible
        )
        return observed(judged) if self.observing else judged

    def _watched_decision(self, host: Host, port: int) -> Decision:
        return observed(self.rules.decide(host, port))

    def _watched_name(self, name: Name) -> Decision:
        return observed(self.rules.decide_name(name))

    def credentials_in(self, decision: Decision, request: Request) -> tuple[str, ...]:
        """The names of those that are put into an allowed request."""
        inspection = self.inspection
        if inspection is None:
            return ()
        found = inspection.credentials_for(decision)
        if inspection.by_rule.isdisjoint(found):
            return found
        named = {rule.credential for rule in self.rules.allowing(decision.host, decision.port, request)}
        return tuple(name for name in found if name in named or name not in inspection.by_rule)

    def opaque(self, decision: Decision) -> Decision:
        """The decision on a tunnel that nobody looks into, whatever could be."""
        from doorward.allowlists.conditions import Request

        return self.rules.judge_request(decision, Request("CONNECT", ""), visible=False)

    def inspects(self, decision: Decision) -> bool:
        """Whether an allowed tunnel is looked into."""
        inspection = self.inspection
        if inspection is None:
            return False
        if inspection.every or (decision.rule is not None and decision.rule.limited):
            return True
        return bool(inspection.credentials) and bool(inspection.credentials_for(decision))

    def judge(self, decision: Decision, addresses: tuple[IP, ...]) -> AddressVerdict:
        """The rule set's verdict on the addresses of an allowed host; the last one of each decision is remembered."""
        known = self._verdicts.get(id(decision))
        if known is not None and known[0] is decision and known[1] == addresses:
            return known[2]
        verdict = self.rules.judge(decision, addresses)
        if len(self._verdicts) >= _REMEMBERED:
            self._verdicts.clear()
        self._verdicts[id(decision)] = (decision, addresses, verdict)
        return verdict

    def goes_by_name(self, host: Host) -> bool:
        """Whether only the parent can resolve the host: it is listed, or lies below a name that is."""
        if self.parent is None or not self.parent_resolves or isinstance(host, Address):
            return False
        zone = host.text
        while zone not in self.parent_resolves:
            _, dot, zone = zone.partition(".")
            if not dot:
                return False
        return True


def policy_from_settings(
    settings: Mapping[str, object], own: Callable[[], InterfaceAddresses] = interface_addresses
) -> Policy:
    """The settings a supervisor sends: those of a rule set, `limits`, `upstream_proxy`, `upstream_resolves`,
    `inspection`, `observe`, `follow`, and where `can_ask` is true the seconds of `answer_time`. `own` tells the
    machine's addresses of the moment. Raises MalformedRule, MalformedSettings, MalformedLimit
    or MalformedParent."""
    limits = settings.get("limits") or {}
    url = settings.get("upstream_proxy")
    zones = settings.get("upstream_resolves") or []
    if not isinstance(limits, dict) or not isinstance(zones, list) or not isinstance(url, str | None):
        raise MalformedSettings("limits is an object, upstream_proxy text or null, upstream_resolves a list")
    follow = settings.get("follow") or []
    if not isinstance(follow, list) or not {"publish", "loopback"}.issuperset(follow):
        raise MalformedSettings('follow is a list of "publish" and "loopback"')
    answer_time = settings.get("answer_time") if settings.get("can_ask") else None
    if not isinstance(answer_time, int | float | None) or isinstance(answer_time, bool):
        raise MalformedSettings("answer_time is a number of seconds")
    parent, parent_resolves = (None, frozenset[str]()) if url is None and not zones else _parent(url, zones)
    mine = own()
    rules = rule_set_from_settings(settings, mine.addresses)
    return Policy(
        rules,
        limits_from(limits),
        parent,
        parent_resolves,
        (*rules.notices, mine.notice) if mine.notice else rules.notices,
        None if answer_time is None else float(answer_time),
        _inspection(settings.get("inspection")),
        observing=bool(settings.get("observe")),
        follow=frozenset(follow),
    )


def _inspection(settings: object) -> Inspection | None:
    """`{"every": bool, "credentials": {NAME: [PATTERN, …]}, "by_rule": [NAME, …], "secrets": [[NAME, TEXT], …]}`, the
    patterns as in rules; null without a worker."""
    if settings is None:
        return None
    if not isinstance(settings, dict) or not isinstance(settings.get("credentials"), dict):
        raise MalformedSettings("inspection is an object with every and credentials, or null")
    found = []
    for name, patterns in settings["credentials"].items():
        origin = Origin("file", f"credentials.{name}.hosts")
        found.append((name, RuleIndex([parse_rule(each, "allow", origin) for each in patterns])))
    secrets = tuple((name, text) for name, text in settings.get("secrets", ()))
    return Inspection(bool(settings.get("every")), tuple(found), frozenset(settings.get("by_rule", ())), secrets)


def _parent(url: str | None, zones: list[object]) -> tuple[Parent, frozenset[str]]:
    from doorward.proxy.parent import MalformedParent, parse_parent  # most runs have none

    def zone(text: object) -> str:
        try:
            host = parse_rule_host(text) if isinstance(text, str) else None
        except MalformedHost as error:
            raise MalformedParent(f"upstream_resolves has an entry that is no name: {error}.") from None
        if host is None or isinstance(host, Address):
            raise MalformedParent("upstream_resolves holds names; an address needs no resolving.")
        return host.text

    if url is None:
        raise MalformedParent("upstream_resolves names hosts for an upstream proxy, and upstream_proxy gives none.")
    return parse_parent(url), frozenset(map(zone, zones))

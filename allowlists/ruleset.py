"""The rules of one run, and the two questions they answer: may this host be asked for, and which address is dialled?

- By name alone, before any look-up: deny, then allow, then ask if someone can be asked, then deny. A rule that wants a
  person to be asked comes before the allows, and is a deny where nobody can be.
- A deny beats every allow, however narrow: `deny 127.0.0.0/8` shuts 127.0.0.5 though a rule allows it. Such a rule is
  dead, and a notice says so.
- A literal is judged as a literal: it is open only to a rule that names it or its block, or, if public, to the star.
- A name that no rule names is `not_allowed`, whatever it would resolve to. Two names are special: the star leaves out
  names without a dot, and no wildcard covers a cloud's metadata names.
- After the one look-up each address is judged: a deny of it, or of what it carries, drops it; so does not being public,
  unless a rule for this name opens it or a pin gave it. What is left may be dialled, and nothing else.
- What several allow rules open for one name adds up; adding an allow never shuts anything.
- A rule may be for some requests only, by method, path and more. They add up too, and a rule without such limits
  allows all. Where no rule for a host is without, no tunnel to it opens unless somebody looks into it.
- A limited network (`network.mode = "limited"`) leaves of every rule the methods that only read.
"""

from __future__ import annotations

from doorward.allowlists import wording
from doorward.allowlists.addresses import (
    AddressClass,
    IPAddress,
    IPNetwork,
    carried,
    classify,
    exact_only,
    opens,
    pinnable,
    unmap,
    unmapped_number,
)
from doorward.allowlists.decision import Decision, Effect, Reason, Source, Unsaid
from doorward.allowlists.host import (
    Address,
    Host,
    MalformedHost,
    Name,
    authority_text,
    host_text,
    parse_address,
    parse_rule_host,
)
from doorward.allowlists.index import RuleIndex, at_port, rules_of
from doorward.allowlists.layers import covers
from doorward.allowlists.pattern import EVERY_PORT, Kind, has_port, pattern_for
from doorward.allowlists.rule import MalformedRule, MalformedRules, Origin, Rule, loopback_of_localhost
from doorward.allowlists.special_purpose import DESCRIPTIONS, METADATA_NAMES
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from doorward.allowlists.conditions import Request

READ_METHODS = ("GET", "HEAD", "OPTIONS")
"""What a limited network lets through: the methods that ask for nothing to be changed (RFC 9110 §9.2.1)."""


class AddressVerdict(NamedTuple):
    """`usable` in the order given; `dropped` with what each is for; `denied_by` for those a deny rule dropped.

    `decision` is the decision judged, or a deny when nothing is usable.
    """

    usable: tuple[IPAddress, ...]
    dropped: tuple[tuple[IPAddress, AddressClass], ...]
    decision: Decision
    denied_by: tuple[tuple[IPAddress, Rule], ...] = ()


class RuleSet:
    """Immutable. Make it with `build`."""

    __slots__ = (
        *("_allow", "_any_tls", "_can_ask", "_deny", "_limited_mode", "_own", "_pins", "_prompt", "_unlimited"),
        *("allow", "deny", "notices", "udp"),
    )

    allow: tuple[Rule, ...]
    deny: tuple[Rule, ...]
    #: What a person should hear before the run: wide allows, dead rules, pins without a rule.
    notices: tuple[str, ...]
    #: The rules for datagrams as a set of their own; None where nothing allows any.
    udp: RuleSet | None

    def __init__(
        self,
        allow: tuple[Rule, ...],
        deny: tuple[Rule, ...],
        pins: Mapping[str, tuple[IPAddress, ...]],
        can_ask: bool,
        own_addresses: frozenset[int],
        notices: Iterable[str],
        limited: bool = False,
        prompt: tuple[Rule, ...] = (),
    ) -> None:
        self.allow = allow
        self.deny = deny
        self.udp = None
        if any(rule.udp for rule in allow):
            datagrams = tuple(rule._replace(udp=False) for rule in allow if rule.udp)
            # a deny that is not about datagrams alone is about them too
            shut = tuple(rule._replace(udp=False) for rule in deny)
            self.udp = RuleSet(datagrams, (*shut, *prompt), pins, False, own_addresses, ())
            allow = tuple(rule for rule in allow if not rule.udp)
        self._allow = RuleIndex(allow)
        self._deny = RuleIndex(rule for rule in deny if not rule.udp)
        self._prompt = RuleIndex(prompt)
        narrow = any(rule.limited for rule in allow)
        self._unlimited = RuleIndex(rule for rule in allow if not rule.limited) if narrow else self._allow
        self._limited_mode = limited
        self._any_tls = any(rule.tls == "any" for rule in allow)
        self._pins = dict(pins)
        self._can_ask = can_ask
        self._own = own_addresses
        self.notices = tuple(dict.fromkeys((*notices, *self._dead_allows(), *self._idle_pins())))

    @classmethod
    def build(
        cls,
        allow: Iterable[Rule],
        deny: Iterable[Rule],
        *,
        hosts: Mapping[str, str] = {},
        pins: Mapping[str, Iterable[str]] = {},
        can_ask: bool = False,
        own_addresses: Iterable[bytes] = (),
        limited: bool = False,
        prompt: Iterable[Rule] = (),
    ) -> RuleSet:
        """`hosts` is `network.hosts`; `pins` are the addresses presets were resolved to (loopback, link-local and
        metadata ones are left out of those). `own_addresses` are the machine's interface addresses, packed (4 or 16
        bytes). `limited` leaves of every rule the methods that only read. `prompt` are rules, as a deny is written, for
        hosts that a person is asked about though they are allowed.

        Raises MalformedRules.
        """
        allow, deny = tuple(allow), tuple(deny)
        problems = []
        if allow:
            problems = [
                _dead_beside(rule)
                for rule in deny
                if rule.pattern.kind is Kind.ANY and rule.ports == EVERY_PORT and not rule.udp
            ]
        notices = [notice for rule in allow for notice in rule.notices]
        resolved: dict[str, tuple[IPAddress, ...]] = {}
        for name, texts in pins.items():
            kept = []
            for ip in _pinned(name, texts, Origin("preset", "pins"), problems):
                if not pinnable(ip):
                    notices.append(f"{name} resolves to {ip}, {DESCRIPTIONS[classify(ip)]}; it is not pinned to it")
                else:
                    kept.append(ip)
            resolved[_pin_name(name, problems)] = tuple(kept)
        for name, text in hosts.items():
            found = _pinned(name, [text], Origin("file", f'network.hosts."{name}"'), problems)
            resolved[_pin_name(name, problems)] = tuple(found)
        if problems:
            raise MalformedRules(problems)
        if limited:
            allow = tuple(_reading(allow, notices))
        own = frozenset(unmapped_number(packed) for packed in own_addresses)
        return cls(allow, deny, resolved, can_ask, own, notices, limited, tuple(prompt))

    def decide(self, host: Host, port: int) -> Decision:
        """By name alone: nothing is looked up. For a literal the address guard has spoken too. Whether a request is
        allowed is for `judge_request`."""
        if host.__class__ is not Name and host.__class__ is not Address:
            raise TypeError("a host comes from parse_host or address_host")
        rule = self._denying(host, port)
        if rule is not None:
            return _decision(Effect.DENY, Reason.DENIED, rule, host, port, Unsaid(wording.denied, rule, host, port))
        if self._prompt.size and (rule := self._prompting(host, port)) is not None:
            effect = Effect.ASK if self._can_ask else Effect.DENY
            return _decision(effect, Reason.NOT_ALLOWED, rule, host, port, Unsaid(wording.prompted, rule, host, port))
        rule = self._allowing(self._allow, host, port)
        if rule is not None and rule.limited:
            rule = self._allowing(self._unlimited, host, port) or rule
        return self._not_allowed(host, port) if rule is None else _allowed(rule, host, port)

    def decide_name(self, name: Name) -> Decision:
        """Whether a look-up of the name may be answered: an allow or an ask where some port of it may be reached or
        asked about, else the deny for HTTPS. Nothing is looked up for it either."""
        for port in self._ports_of(name):
            decision = self.decide(name, port)
            if decision.effect is Effect.ALLOW:
                return decision
        if self.udp is not None and (decision := self.udp.decide_name(name)).effect is Effect.ALLOW:
            return decision
        return self.decide(name, 443)

    def decided_alone(self, name: str) -> bool:
        """Whether a rule spells the name out, or it is special. Every other is decided as all names right below the
        same parent are, by this very rule set: with the same effect, reason, rule and port."""
        return (
            name in METADATA_NAMES
            or self._allow.spells_out(name)
            or self._deny.spells_out(name)
            or self._prompt.spells_out(name)
            or (self.udp is not None and self.udp.decided_alone(name))
        )

    def record_types(self, name: Name) -> frozenset[str]:
        """Types of DNS records, besides addresses, that rules let be asked about a name; what they list adds up."""
        nodes = [*self._allow.nodes(name)]
        if self._allow.star is not None:
            nodes.append(self._allow.star)
        return frozenset(each for node in nodes for rule in rules_of(node) for each in rule.dns)

    def judge_request(self, decision: Decision, request: Request, *, visible: bool) -> Decision:
        """The decision, or a deny where it allows and the rules do not allow this request.

        `visible` for a request that is read. In a tunnel that nobody looks into (CONNECT, SOCKS5, transparent) none can
        be seen, so only a rule without limits opens one; in what an upgrade leads to no method can, so only a rule
        without methods does. Costs nothing where the rule that allowed has no limits.
        """
        rule = decision.rule
        if rule is None or not rule.limited or decision.effect is not Effect.ALLOW:
            return decision
        host, port = decision.host, decision.port
        if not visible:
            said = Unsaid(wording.tunnel_refused, rule, host, port, self._methods_at)
            return _decision(Effect.DENY, Reason.MITM_REQUIRED, rule, host, port, said)
        nearest: tuple[Rule, str] | None = None  # of those that allow the method
        for each in self.rules_at(host, port):
            if each.methods and (request.upgrade or request.method not in each.methods):
                continue
            unmet = None if each.conditions is None else each.conditions.unmet(request)
            if unmet is None:
                return decision if each is rule else _allowed(each, host, port)
            nearest = nearest or (each, unmet)
        if nearest is not None:
            said = Unsaid(wording.request_not_allowed, *nearest, host, port, request)
            return _decision(Effect.DENY, Reason.PATH_NOT_ALLOWED, nearest[0], host, port, said)
        if request.upgrade:
            said = Unsaid(wording.tunnel_refused, rule, host, port, self._methods_at)
            return _decision(Effect.DENY, Reason.MITM_REQUIRED, rule, host, port, said)
        if self._limited_mode and request.method not in READ_METHODS:
            said = Unsaid(wording.only_reading, host, port, request.method)
            return _decision(Effect.DENY, Reason.METHOD_NOT_ALLOWED, rule, host, port, said, Source.MODE_GUARD)
        said = Unsaid(wording.method_not_allowed, rule, host, port, request.method, self._methods_at)
        return _decision(Effect.DENY, Reason.METHOD_NOT_ALLOWED, rule, host, port, said)

    def allowing(self, host: Host, port: int, request: Request) -> Iterator[Rule]:
        """Every rule that allows this request, which is read, to a host that is allowed."""
        for each in self.rules_at(host, port):
            if each.methods and (request.upgrade or request.method not in each.methods):
                continue
            if each.conditions is None or each.conditions.unmet(request) is None:
                yield each

    def rules_at(self, host: Host, port: int) -> Iterator[Rule]:
        """Every allow rule that opens host and port, the most specific first."""
        allow = self._allow
        if isinstance(host, Address):
            single_only = exact_only(classify(host.ip))
            found = (rule for node in allow.address_nodes(host.ip) for rule in rules_of(node))
            for rule in found:
                network = rule.pattern.network
                single = network is not None and network.prefixlen == network.max_prefixlen
                if has_port(rule.ports, port) and (single or not single_only):
                    yield rule
            wide = self._class(host.ip) is AddressClass.GLOBAL
        else:
            metadata = host.text in METADATA_NAMES
            for rule in (rule for node in allow.nodes(host) for rule in rules_of(node)):
                exact = rule.pattern.kind is not Kind.BELOW and rule.pattern.name == host.text
                if has_port(rule.ports, port) and (exact or not metadata):
                    yield rule
            wide = "." in host.text and not metadata
        if wide and allow.star is not None:
            yield from (rule for rule in rules_of(allow.star) if has_port(rule.ports, port))

    def granted(self, decision: Decision, where: str) -> Decision:
        """The allow that a yes to an `ask` means: this host on this port, a literal's own address opened, no more."""
        rule = Rule(
            effect="allow",
            text=authority_text(decision.host, decision.port),
            pattern=pattern_for(decision.host),
            ports=((decision.port, decision.port),),
            ports_named=True,
            origin=Origin("policy", where),
        )
        message = f"{rule.text} is allowed by an answer ({where})"
        return Decision(Effect.ALLOW, Reason.ALLOWED, Source.DECIDER, rule, decision.host, decision.port, message)

    def pin(self, host: Host) -> tuple[IPAddress, ...]:
        """The addresses the host has without a look-up: a pin, a literal itself, loopback for `localhost`; else ()."""
        if isinstance(host, Address):
            return (host.ip,)
        if host.text in self._pins:
            return self._pins[host.text]
        return tuple(each.network_address for each in loopback_of_localhost()) if host.text == "localhost" else ()

    def judge(self, decision: Decision, addresses: Iterable[IPAddress]) -> AddressVerdict:
        """Which of the addresses the name resolved to may be dialled. `addresses` must not be empty (ValueError):
        a name that does not resolve is no matter of policy. Nothing is usable unless the decision allows."""
        found = tuple(dict.fromkeys(map(unmap, addresses)))
        if not found:
            raise ValueError("no address to judge")
        if decision.effect is not Effect.ALLOW:
            return AddressVerdict((), (), decision)
        usable: list[IPAddress] = []
        dropped: list[tuple[IPAddress, AddressClass]] = []
        denied_by: list[tuple[IPAddress, Rule]] = []
        opened: list[IPNetwork] | None = None
        for ip in found:
            kind = self._class(ip)
            denying = self._denying_address(ip, decision.port)
            if denying is not None:
                dropped.append((ip, kind))
                denied_by.append((ip, denying))
                continue
            if kind is not AddressClass.GLOBAL:
                if opened is None:
                    opened = self._opened(decision)
                if not opens(opened, ip) and ip not in self._pins.get(host_text(decision.host), ()):
                    dropped.append((ip, kind))
                    continue
            usable.append(ip)
        if not usable:
            decision = self._none_left(decision, dropped, dict(denied_by))
        return AddressVerdict(tuple(usable), tuple(dropped), decision, tuple(denied_by))

    # --- by name -----------------------------------------------------------------------------------------------

    def _denying(self, host: Host, port: int) -> Rule | None:
        deny = self._deny
        if not deny.size:
            return None
        if isinstance(host, Address):
            return self._denying_address(host.ip, port) or deny.star_at(port)
        return deny.find(host, port) or deny.star_at(port)

    def _prompting(self, host: Host, port: int) -> Rule | None:
        if isinstance(host, Address):
            return self._prompt.find_address(host.ip, port)
        return self._prompt.find(host, port)

    def _denying_address(self, ip: IPAddress, port: int) -> Rule | None:
        deny = self._deny
        if not deny.has_blocks:
            return None
        rule = deny.find_address(ip, port)
        if rule is None and ip.version == 6:
            for inside in carried(int(ip)):
                rule = rule or deny.find_ipv4(inside, port)
        return rule

    def _allowing(self, allow: RuleIndex, host: Host, port: int) -> Rule | None:
        """The rule of the index that opens host and port."""
        if isinstance(host, Address):
            rule = allow.find_address(host.ip, port)
            if rule is not None:
                network = rule.pattern.network
                single = network is not None and network.prefixlen == network.max_prefixlen
                return rule if single or not exact_only(classify(host.ip)) else None
            rule = allow.star_at(port)
            return rule if rule is not None and self._class(host.ip) is AddressClass.GLOBAL else None
        text = host.text
        if text in METADATA_NAMES:
            return allow.find_exact(text, port)
        rule = allow.find(host, port)
        star = allow.star_at(port) if "." in text else None
        if rule is None:
            return star
        if self._any_tls and rule.tls != "any":
            # what rules open adds up, so a wider rule that lifts the TLS check answers before a narrower that does not
            others = (*(at_port(node, port) for node in allow.nodes(host)), star)
            return next((other for other in others if other is not None and other.tls == "any"), rule)
        return rule

    def _ports_of(self, name: Name) -> Iterable[int]:
        """Ports of which one is allowed if any is: of what a rule opens, the first, and the first behind each range
        that a deny takes out of it."""
        nodes = [*self._allow.nodes(name)]
        if self._allow.star is not None:
            nodes.append(self._allow.star)
        if not nodes:
            return
        gaps = {high + 1 for rule in self.deny for _, high in rule.ports}
        for node in nodes:
            for rule in rules_of(node):
                for low, high in rule.ports:
                    yield low
                    yield from (gap for gap in gaps if low < gap <= high)

    def _opened(self, decision: Decision) -> list[IPNetwork]:
        """Every network that the allow rules for this host and port open."""
        networks = [] if decision.rule is None else [*decision.rule.opened]
        if isinstance(decision.host, Name) and decision.host.text in METADATA_NAMES:
            return networks
        for node in self._allow.nodes(decision.host):
            for rule in rules_of(node):
                if rule.opened and at_port(rule, decision.port) is not None:
                    networks.extend(rule.opened)
        return networks

    def _class(self, ip: IPAddress) -> AddressClass:
        kind = classify(ip)
        if kind is AddressClass.GLOBAL and self._own:
            value = int(ip)
            # an IPv4 address as a number cannot be taken for a public IPv6 one
            if value in self._own or (ip.version == 6 and not self._own.isdisjoint(carried(value))):
                return AddressClass.OWN
        return kind

    def _methods_at(self, host: Host, port: int) -> tuple[str, ...]:
        """All that the rules for this host and port list together."""
        return tuple(sorted({method for rule in self.rules_at(host, port) for method in rule.methods}))

    # --- refusals ----------------------------------------------------------------------------------------------

    def _not_allowed(self, host: Host, port: int) -> Decision:
        kind = self._class(host.ip) if isinstance(host, Address) else AddressClass.GLOBAL
        nearest = self._on_another_port(host, kind)
        effect = Effect.ASK if self._can_ask else Effect.DENY
        if nearest is not None:
            said = Unsaid(wording.port_not_allowed, host, port, nearest)
            return _decision(effect, Reason.PORT_NOT_ALLOWED, nearest, host, port, said)
        if isinstance(host, Address):
            if kind is not AddressClass.GLOBAL:
                if kind is AddressClass.METADATA:
                    effect = Effect.DENY  # nobody is asked in passing for the machine's credentials
                said = Unsaid(wording.local_literal, host, port, kind)
                return _decision(effect, Reason.NOT_ALLOWED_LOCAL, None, host, port, said)
        elif host.text in METADATA_NAMES and self._under_wildcard(host, port):
            said = Unsaid(wording.metadata_name, host, port)
            return _decision(Effect.DENY, Reason.NOT_ALLOWED_LOCAL, None, host, port, said)
        said = Unsaid(wording.not_allowed, host, port, self._allow)
        return _decision(effect, Reason.NOT_ALLOWED, None, host, port, said)

    def _on_another_port(self, host: Host, kind: AddressClass) -> Rule | None:
        """The allow rule that names the host, and would open it, on ports other than the one asked for."""
        if isinstance(host, Address):
            for node in self._allow.address_nodes(host.ip):
                for rule in rules_of(node):
                    if kind is AddressClass.GLOBAL or opens(rule.opened, host.ip):
                        return rule
                    break  # all rules of a node name the same block
            wide = kind is AddressClass.GLOBAL
        elif host.text in METADATA_NAMES:
            return self._allow.first_exact(host.text)
        else:
            first = self._allow.first(host)
            if first is not None:
                return first
            wide = "." in host.text
        return rules_of(self._allow.star)[0] if wide and self._allow.star is not None else None

    def _under_wildcard(self, host: Name, port: int) -> bool:
        return self._allow.find(host, port) is not None or ("." in host.text and self._allow.star_at(port) is not None)

    def _none_left(self, decision: Decision, dropped: wording.Dropped, denied_by: dict[IPAddress, Rule]) -> Decision:
        host, port = decision.host, decision.port
        local = [(ip, kind) for ip, kind in dropped if ip not in denied_by]
        if local:
            said = Unsaid(wording.local_addresses, host, port, local)
            return _decision(Effect.DENY, Reason.NOT_ALLOWED_LOCAL, decision.rule, host, port, said)
        ip, rule = next(iter(denied_by.items()))
        return _decision(Effect.DENY, Reason.DENIED, rule, host, port, Unsaid(wording.address_denied, rule, host, ip))

    # --- notices -----------------------------------------------------------------------------------------------

    def _dead_allows(self) -> Iterable[str]:
        if self._deny.size:
            for rule in self.allow:
                for deny in self._deny.candidates(rule.pattern):
                    if covers(deny, rule):
                        yield f"{rule.text} ({rule.origin.where}) never applies: {deny.described} denies it"
                        break

    def _idle_pins(self) -> Iterable[str]:
        for name in self._pins:
            named = any(True for _ in self._allow.nodes(Name(name))) or (
                self.udp is not None and any(True for _ in self.udp._allow.nodes(Name(name)))
            )
            if not named and self._allow.star is None and not self._can_ask:
                yield f"{name} is pinned to an address, but no rule allows it"


def _decision(
    effect: Effect,
    reason: Reason,
    rule: Rule | None,
    host: Host,
    port: int,
    said: Unsaid,
    source: Source = Source.BASELINE_POLICY,
) -> Decision:
    # not Decision._make: this is done for every request, and costs a third
    return tuple.__new__(Decision, (effect, reason, source, rule, host, port, said))


def _allowed(rule: Rule, host: Host, port: int) -> Decision:
    return _decision(Effect.ALLOW, Reason.ALLOWED, rule, host, port, Unsaid(wording.allowed, rule, host, port))


def _reading(allow: Iterable[Rule], notices: list[str]) -> Iterator[Rule]:
    """The rules with the methods that only read; those that have none of them are left out."""
    for rule in allow:
        methods = tuple(method for method in READ_METHODS if not rule.methods or method in rule.methods)
        if methods:
            yield rule._replace(methods=methods, tls="name")
        else:
            notices.append(f"{rule.text} ({rule.origin.where}) never applies: the network is limited to reading")


def _dead_beside(rule: Rule) -> MalformedRule:
    return MalformedRule(
        rule.text,
        "a deny of everything closes the network, so the allow rules beside it would be dead; leave out either",
        origin=rule.origin,
    )


def _pin_name(name: str, problems: list[MalformedRule]) -> str:
    try:
        host = parse_rule_host(name)
        if isinstance(host, Name):
            return host.text
        problem = "a pin is for a name; an address needs none"
    except MalformedHost as error:
        problem = str(error)
    problems.append(MalformedRule(name, problem, origin=Origin("file", "network.hosts")))
    return name


def _pinned(name: str, texts: Iterable[str], origin: Origin, problems: list[MalformedRule]) -> list[IPAddress]:
    found: list[IPAddress] = []
    for text in texts:
        try:
            found.append(parse_address(text))
        except MalformedHost as error:
            problems.append(MalformedRule(text, f"{name} is pinned to no address: {error}", origin=origin))
    return found

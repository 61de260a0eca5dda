"""`doorward allowlist test`: what the rules say about one place, and with `--resolve` about each of its addresses."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from doorward import exit_status
from doorward.allowlists.addresses import IPAddress, classify, unmap
from doorward.allowlists.decision import Decision, Effect
from doorward.allowlists.host import Address, Host, MalformedHost, host_text, parse_rule_host_port
from doorward.allowlists.ruleset import AddressVerdict, RuleSet
from doorward.allowlists.special_purpose import DESCRIPTIONS
from doorward.commands.allowlist import JSON, RULE_OPTIONS, options_of, policy_of
from doorward.errors import UsageError
from doorward.named_tuple import NamedTuple
from doorward.options import Option
from doorward.proxy.policy import Policy
from doorward.summary import printable

LookUp = Callable[[str], tuple[IPAddress, ...]]
"""The addresses of a name, looked up once in absolute form. Raises OSError with the reason as its text."""

_OPTIONS = (
    *RULE_OPTIONS,
    Option("resolve", "look the name up once, and say of each address whether it may be dialled"),
    Option("method", "the request's method, CONNECT for a tunnel (default GET at port 80, else CONNECT)", "METHOD"),
    Option("path", "the request's path and query (default /)", "PATH"),
    JSON,
)
_DEFAULT_PORT = 443
_UDP = "udp:"
_STATUS = {Effect.ALLOW: exit_status.ALLOW, Effect.ASK: exit_status.ASK, Effect.DENY: exit_status.DENY}


class _Resolution(NamedTuple):
    """`found_by`: pin, literal, localhost, resolver, or none; then `why_not` says why. `rows` are the addresses in the
    order found; `decision` is what they made of the decision by name."""

    found_by: str
    why_not: str
    rows: tuple[dict[str, object], ...]
    decision: Decision


def test(args: list[str], look_up: LookUp | None = None) -> int:
    """Answer about one HOST[:PORT]."""
    examples = ("doorward allowlist test --allow example.com example.com:8443",)
    parsed = options_of("test", "HOST[:PORT]", _OPTIONS, args, examples)
    if len(parsed.words) != 1:
        raise UsageError("doorward allowlist test: name one HOST[:PORT]")
    udp = parsed.words[0].startswith(_UDP) and parsed.words[0].count(":") > 1
    host, port = _place(parsed.words[0].removeprefix(_UDP) if udp else parsed.words[0])
    policy, _ = policy_of(parsed)
    method = parsed.last("method") or ("GET" if port == 80 or parsed.has("path") else "CONNECT")
    rules = policy.rules
    if udp:
        from doorward.allowlists.datagrams import rules_for_datagrams, said_of_datagrams  # rarely asked

        rules, method = rules_for_datagrams(rules), ""
        decision = said_of_datagrams(rules.decide(host, port))
    else:
        decision = policy.admit(host, port, method, parsed.last("path", "/"), visible=method != "CONNECT")
    resolution = _resolution(policy, rules, decision, look_up or system_look_up) if parsed.has("resolve") else None
    if resolution is not None:
        decision = resolution.decision
    inspected = method == "CONNECT" and decision.effect is Effect.ALLOW and policy.inspects(decision)
    if parsed.has("json"):
        sys.stdout.write(json.dumps({**_document(decision, method, resolution), "inspected": inspected}) + "\n")
    else:
        lines = _lines(decision, resolution)
        if inspected:
            lines.append("inspected: a run looks into the tunnel, and each request in it is judged")
        sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
    return _STATUS[decision.effect]


def _place(word: str) -> tuple[Host, int]:
    try:
        if "://" in word:
            raise MalformedHost("a place is HOST[:PORT], not a URL")
        return parse_rule_host_port(word, _DEFAULT_PORT)
    except MalformedHost as error:
        from doorward.allowlists.spelling import suggest

        near = suggest(word, wildcard_above_suffix=False)
        meant = f"; try {near!r}" if near is not None and "*" not in near and "/" not in near else ""
        raise UsageError(printable(f"doorward allowlist test: {word!r}: {error}{meant}")) from None


def _resolution(policy: Policy, rules: RuleSet, decision: Decision, look_up: LookUp) -> _Resolution:
    """A name that is refused is not looked up, here as in a run."""
    host = decision.host
    if decision.effect is not Effect.ALLOW:
        return _Resolution("none", "not looked up, since it is refused by name", (), decision)
    addresses = rules.pin(host)
    found_by = "literal" if isinstance(host, Address) else "localhost" if host.text == "localhost" else "pin"
    if not addresses:
        found_by = "resolver"
        if policy.goes_by_name(host):
            return _Resolution("none", "not looked up, since only the upstream proxy resolves it", (), decision)
        try:
            addresses = look_up(host_text(host))
        except OSError as error:
            return _Resolution("none", str(error), (), decision)
    verdict = rules.judge(decision, addresses)
    rows = tuple(_row(ip, verdict) for ip in dict.fromkeys(map(unmap, addresses)))
    return _Resolution(found_by, "", rows, verdict.decision)


def _row(ip: IPAddress, verdict: AddressVerdict) -> dict[str, object]:
    dropped, denied = dict(verdict.dropped), dict(verdict.denied_by)
    kind = dropped.get(ip) or classify(ip)
    if ip in verdict.usable:
        why_not = None
    elif ip in denied:
        why_not = f"denied by {denied[ip].described}"
    else:
        why_not = f"{DESCRIPTIONS[kind]}, and no rule for it opens that"
    return {"address": str(ip), "class": str(kind), "dialled": why_not is None, "why_not": why_not}


def system_look_up(name: str) -> tuple[IPAddress, ...]:
    """As the proxy does it: the machine's hosts file, then its resolver, with a dot behind the name."""
    import socket

    from doorward.proxy.resolver import HOSTS_FILE, HostsFile, parse_answers

    found = HostsFile(HOSTS_FILE).find(name)
    if found:
        return found
    if sys.stderr.isatty():
        sys.stderr.write(f"doorward: looking up {name}\n")
    try:
        answers = socket.getaddrinfo(f"{name}.".encode("ascii"), None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise OSError(f"does not resolve: {(error.strerror or 'no answer').lower()}") from None
    return parse_answers(str(answer[4][0]) for answer in answers)


_FOUND_BY = {"pin": "pinned", "literal": "the address itself", "localhost": "loopback", "resolver": "looked up once"}


def _lines(decision: Decision, resolution: _Resolution | None) -> list[str]:
    lines = [f"{decision.effect}: {decision.message}"]
    if decision.rule is not None:
        lines.append(f"rule: {decision.rule.text}, from {decision.rule.origin.where}")
    if resolution is not None:
        lines.append(f"addresses: {resolution.why_not or _FOUND_BY[resolution.found_by]}")
        for row in resolution.rows:
            said = "may be dialled" if row["dialled"] else f"may not be dialled: {row['why_not']}"
            lines.append(f"  {row['address']}  {row['class']}  {said}")
    if decision.hint:
        lines.append(f"to allow it: {decision.hint}")
    return lines


def _document(decision: Decision, method: str, resolution: _Resolution | None) -> dict[str, object]:
    rule = decision.rule
    document: dict[str, object] = {
        "host": host_text(decision.host),
        "port": decision.port,
        "method": method,
        "decision": str(decision.effect),
        "reason": str(decision.reason),
        "source": str(decision.source),
        "rule": None if rule is None else rule.text,
        "origin": None if rule is None else rule.origin._asdict(),
        "message": decision.message,
        "hint": decision.hint or None,
    }
    if resolution is not None:
        document["found_by"] = resolution.found_by
        document["not_resolved"] = resolution.why_not or None
        document["addresses"] = list(resolution.rows)
    return document

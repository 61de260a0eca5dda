"""What decisions say: one plain sentence, and what would allow what was refused. Found only when somebody reads it."""

from __future__ import annotations

from doorward.allowlists.addresses import AddressClass, IPAddress
from doorward.allowlists.decision import Words
from doorward.allowlists.hint import allow_option, entry_for, entry_for_www, undo_option
from doorward.allowlists.host import Address, Host, Name, authority_text, host_text
from doorward.allowlists.index import RuleIndex
from doorward.allowlists.methods import is_method, methods_text
from doorward.allowlists.pattern import Kind, ports_text
from doorward.allowlists.rule import Rule
from doorward.allowlists.special_purpose import DESCRIPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from doorward.allowlists.conditions import Request

#: Address and class, in order.
Dropped = list[tuple[IPAddress, AddressClass]]


def allowed(rule: Rule, host: Host, port: int) -> Words:
    return Words(f"{authority_text(host, port)} is allowed by {rule.described}")


def denied(rule: Rule, host: Host, port: int) -> Words:
    return Words(f"{authority_text(host, port)} is denied by {rule.described}", undo_option(rule))


def prompted(rule: Rule, host: Host, port: int) -> Words:
    message = f"{authority_text(host, port)} is asked about by {rule.described}, and an answer opens it"
    return Words(message, f"take the rule out of {rule.origin.where}")


def not_allowed(host: Host, port: int, allow: RuleIndex) -> Words:
    """No rule names the host. `www.NAME` beside a rule for NAME alone usually wants the names below it."""
    message = f"{authority_text(host, port)} is in no allow rule"
    if isinstance(host, Name) and host.text.startswith("www."):
        apex = allow.find(Name(host.text[4:]), port)
        below = entry_for_www(host.text, port) if apex is not None and apex.pattern.kind is Kind.EXACT else None
        if below is not None and apex is not None:
            return _allowable(f"{message}: {apex.described} is that name alone, {below} the names below", below)
    return _allowable(message, entry_for(host, port))


def port_not_allowed(host: Host, port: int, nearest: Rule) -> Words:
    message = f"{nearest.described} opens {ports_text(nearest.ports)} of {host_text(host)}, not port {port}"
    return _allowable(message, entry_for(host, port))


def local_literal(host: Address, port: int, kind: AddressClass) -> Words:
    message = f"{host.ip} is {DESCRIPTIONS[kind]}; only a rule that names it opens it"
    return _allowable(message, entry_for(host, port))


def metadata_name(host: Name, port: int) -> Words:
    message = f"{host.text} is a cloud metadata service, which no wildcard covers; only its own name opens it"
    return _allowable(message, entry_for(host, port))


def method_not_allowed(
    rule: Rule, host: Host, port: int, method: str, methods_at: Callable[[Host, int], tuple[str, ...]]
) -> Words:
    """`methods_at` gives all that the rules for a host and port list together."""
    methods = methods_at(host, port)
    message = (
        f"{method} to {authority_text(host, port)} is not allowed, only {methods_text(methods)} by {rule.described}"
    )
    return _allowable(message, entry_for(host, port, methods=sorted((*methods, method))) if is_method(method) else "")


def tunnel_refused(rule: Rule, host: Host, port: int, methods_at: Callable[[Host, int], tuple[str, ...]]) -> Words:
    methods = methods_at(host, port)
    what = methods_text(methods) if methods else "some requests"
    message = (
        f"{authority_text(host, port)} is allowed for {what} only, by {rule.described}; requests in a tunnel, such as "
        "HTTPS, cannot be seen without inspection, so only a rule without methods or other conditions opens one"
    )
    return _allowable(message, entry_for(host, port))


def request_not_allowed(rule: Rule, unmet: str, host: Host, port: int, request: Request) -> Words:
    """`unmet` is what of the rule's conditions does not hold."""
    message = f"{request.method} to {authority_text(host, port)} is not allowed by {rule.described}: {unmet}"
    conditions = rule.conditions
    if conditions is None or not conditions.paths or conditions.unmet(request) is None:
        return Words(message)
    from doorward.allowlists.paths import OddPath, canonical_path, literal

    try:
        path = literal(canonical_path(request.target))
    except OddPath:
        return Words(message)
    if path is None or conditions._replace(paths=()).unmet(request) is not None:
        return Words(message)  # not the path alone: what else is asked for is not to be talked away
    entry = entry_for(host, port, methods=(request.method,) if is_method(request.method) else (), paths=(path,))
    return _allowable(message, entry)


def only_reading(host: Host, port: int, method: str) -> Words:
    return Words(
        f"{method} to {authority_text(host, port)} is not allowed: the network is limited to requests that only read "
        "(GET, HEAD and OPTIONS)",
        "--network proxied",
    )


def address_denied(rule: Rule, host: Host, ip: IPAddress) -> Words:
    """Every address the host has is denied; `ip` is the first."""
    return Words(f"{host_text(host)} {_leads(host)} {ip}, which is denied by {rule.described}", undo_option(rule))


def local_addresses(host: Host, port: int, local: Dropped) -> Words:
    """`local` are the addresses that the guard dropped, at least one."""
    named = ", ".join(f"{ip} ({kind})" for ip, kind in local[:3])
    message = f"{host_text(host)} {_leads(host)} {named}: {DESCRIPTIONS[local[0][1]]}, and no rule for it opens that"
    # a name that leads to metadata is an attack or a mistake; the hint does not help it along
    openable = [ip for ip, kind in local if kind is not AddressClass.METADATA]
    return _allowable(message, entry_for(host, port, openable if isinstance(host, Name) else ()) if openable else "")


def _leads(host: Host) -> str:
    return "is" if isinstance(host, Address) else "resolves to"


def _allowable(message: str, entry: str) -> Words:
    return Words(message, allow_option(entry) if entry else "", entry)

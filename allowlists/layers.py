"""Whether one layer's rules stay inside another's: a managed layer may be narrowed, never widened."""

from __future__ import annotations

from doorward.allowlists.addresses import IPNetwork, classify, exact_only, is_local
from doorward.allowlists.pattern import Kind, Pattern, ports_cover
from doorward.allowlists.rule import Rule
from doorward.allowlists.special_purpose import METADATA_NAMES
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Outside(NamedTuple):
    """A wanted rule that no managed rule covers. `message` names both layers."""

    wanted: Rule
    message: str


def covers(rule: Rule, other: Rule) -> bool:
    """True when whatever `other` matches (and, for an allow, opens), `rule` matches and opens too."""
    return (
        _covers_hosts(rule, other)
        and ports_cover(rule.ports, other.ports)
        and _permits_conditions(rule, other)
        and all(_permits(rule, method) for method in other.methods or (None,))
    )


def outside(managed: Iterable[Rule], wanted: Iterable[Rule]) -> tuple[Outside, ...]:
    """The wanted allows that would open more than the managed allows do. Ports and methods may be covered by several
    together."""
    managed = tuple(managed)
    found: list[Outside] = []
    for rule in wanted:
        wider = [each for each in managed if _covers_hosts(each, rule) and _permits_conditions(each, rule)]
        if not all(
            ports_cover([span for each in wider if _permits(each, method) for span in each.ports], rule.ports)
            for method in rule.methods or (None,)
        ):
            layers = ", ".join(dict.fromkeys(each.origin.where for each in managed)) or "the managed rules"
            found.append(Outside(rule, f"{rule.text} ({rule.origin.where}) goes beyond what {layers} allows"))
    return tuple(found)


def _covers_hosts(rule: Rule, other: Rule) -> bool:
    if rule.udp != other.udp and (rule.udp or rule.effect != "deny"):
        return False
    if not set(other.dns) <= set(rule.dns) and rule.effect != "deny":
        return False
    if rule.effect == "deny":
        return _covers_pattern(rule.pattern, other.pattern, everything=True)
    if not _covers_pattern(rule.pattern, other.pattern, everything=False):
        return False
    if other.tls == "any" and rule.tls != "any":
        return False
    return all(any(_covers_network(wide, narrow) for wide in rule.addresses) for narrow in other.addresses)


def _permits(rule: Rule, method: str | None) -> bool:
    """`method` None stands for every method, and for tunnels."""
    return not rule.methods or method in rule.methods


def _permits_conditions(rule: Rule, other: Rule) -> bool:
    """Whether what `other` asks of a request is at least what `rule` asks. Not by meaning: only equal ones count."""
    return rule.conditions is None or rule.conditions == other.conditions


def _covers_pattern(wide: Pattern, narrow: Pattern, *, everything: bool) -> bool:
    """`everything` for a deny: its star and its wildcards take all names, an allow's leave some out."""
    if wide.kind is Kind.ANY and everything:
        return True
    if wide.network is not None or narrow.network is not None:
        if narrow.network is None:
            return False
        if wide.network is not None:
            return _covers_network(wide.network, narrow.network, exactly=not everything)
        # an allow star opens public literals; a block could hold local ones
        single = narrow.network.prefixlen == narrow.network.max_prefixlen
        return wide.kind is Kind.ANY and single and not is_local(narrow.network.network_address)
    if narrow.kind is Kind.ANY:
        return wide.kind is Kind.ANY
    if wide.kind is Kind.EXACT or (narrow.name in METADATA_NAMES and narrow.kind is not Kind.BELOW and not everything):
        return (
            wide.kind in {Kind.EXACT, Kind.ZONE}
            and (wide.kind is narrow.kind or wide.kind is Kind.ZONE)
            and (wide.name == narrow.name)
        )
    if wide.kind is Kind.ANY:
        return narrow.kind is Kind.BELOW or "." in narrow.name
    if wide.name == narrow.name:
        return wide.kind is Kind.ZONE or narrow.kind is Kind.BELOW
    return narrow.name.endswith(f".{wide.name}")


def _covers_network(wide: IPNetwork, narrow: IPNetwork, *, exactly: bool = True) -> bool:
    if wide == narrow:
        return True
    if wide.version != narrow.version or not narrow.subnet_of(wide):  # type: ignore[arg-type]
        return False
    # a range does not open a metadata or link-local address in it, so it does not cover a rule that names one
    single = narrow.prefixlen == narrow.max_prefixlen
    return not (exactly and single and exact_only(classify(narrow.network_address)))

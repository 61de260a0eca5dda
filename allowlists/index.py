"""Rules by host and port. A look-up costs a few dictionary probes, however many rules there are.

Names are keys of two dictionaries, one for the name itself and one for what lies below it; a look-up walks the labels
of the name asked for, so its cost depends on that name alone. Address blocks are one dictionary per prefix length in
use. Many rules for one key become a sorted table of port ranges.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappop, heappush

from doorward.allowlists.addresses import IPAddress
from doorward.allowlists.host import Address, Host, Name
from doorward.allowlists.pattern import Kind, Pattern, has_port
from doorward.allowlists.rule import Rule
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class PortTable:
    """The rules of one key: which rule answers for a port, found by bisection."""

    __slots__ = ("_owners", "_starts", "rules")

    def __init__(self, rules: Iterable[Rule]) -> None:
        # where ports overlap, the rule that permits more answers; among equals the one written first
        self.rules = tuple(sorted(dict.fromkeys(rules), key=lambda rule: rule.tls != "any"))
        edges: dict[int, list[int]] = {}
        ends: list[int] = []
        for number, rule in enumerate(self.rules):
            for low, high in rule.ports:
                edges.setdefault(low, []).append(len(ends) << 32 | number)
                edges.setdefault(high + 1, [])
                ends.append(high)
        self._starts: list[int] = []
        self._owners: list[Rule | None] = []
        active: list[tuple[int, int]] = []
        for edge in sorted(edges):
            for packed in edges[edge]:
                heappush(active, (packed & 0xFFFF_FFFF, ends[packed >> 32]))
            while active and active[0][1] < edge:
                heappop(active)
            self._starts.append(edge)
            self._owners.append(self.rules[active[0][0]] if active else None)

    def at(self, port: int) -> Rule | None:
        place = bisect_right(self._starts, port) - 1
        return self._owners[place] if place >= 0 else None


_Node = Rule | PortTable


class RuleIndex:
    """The allows or the denies of a rule set. The star is asked for apart: what it takes in differs for the two."""

    __slots__ = ("_below", "_exact", "_ipv4", "_ipv6", "_labels", "_star", "has_blocks", "size")

    def __init__(self, rules: Iterable[Rule]) -> None:
        exact: dict[str, list[Rule]] = {}
        below: dict[str, list[Rule]] = {}
        blocks: dict[int, dict[int, dict[int, list[Rule]]]] = {4: {}, 6: {}}
        star: list[Rule] = []
        self.size = 0
        for rule in rules:
            self.size += 1
            pattern = rule.pattern
            if pattern.network is not None:
                shift = pattern.network.max_prefixlen - pattern.network.prefixlen
                key = int(pattern.network.network_address) >> shift
                blocks[pattern.network.version].setdefault(shift, {}).setdefault(key, []).append(rule)
            elif pattern.kind is Kind.ANY:
                star.append(rule)
            else:
                if pattern.kind is not Kind.BELOW:
                    exact.setdefault(pattern.name, []).append(rule)
                if pattern.kind is not Kind.EXACT:
                    below.setdefault(pattern.name, []).append(rule)
        self._exact = {name: _node(found) for name, found in exact.items()}
        self._below = {name: _node(found) for name, found in below.items()}
        # no name below which rules open has more labels: longer suffixes of a name need no look-up
        self._labels = max((name.count(".") + 1 for name in below), default=0)
        self._star = _node(star) if star else None
        self._ipv4 = _levels(blocks[4])
        self._ipv6 = _levels(blocks[6])
        #: Whether any rule is about addresses.
        self.has_blocks = bool(self._ipv4 or self._ipv6)

    def nodes(self, host: Host) -> Iterator[_Node]:
        """Everything that matches the host on some port, most specific first, the star left out."""
        if host.__class__ is Address:
            yield from self.address_nodes(host.ip)
            return
        text: str = host.text  # type: ignore[union-attr]
        node = self._exact.get(text)
        if node is not None:
            yield node
        yield from self._nodes_below(text)

    def address_nodes(self, ip: IPAddress) -> Iterator[_Node]:
        levels = self._ipv4 if ip.version == 4 else self._ipv6
        if levels:
            value = int(ip)
            for shift, table in levels:
                node = table.get(value >> shift)
                if node is not None:
                    yield node

    def find(self, host: Host, port: int) -> Rule | None:
        """The most specific rule for host and port, the star left out."""
        if host.__class__ is Address:
            return self.find_address(host.ip, port)
        # the body of nodes() once more: this is asked for every request, and a generator doubles its cost
        text: str = host.text  # type: ignore[union-attr]
        node = self._exact.get(text)
        if node is not None:
            rule = at_port(node, port)
            if rule is not None:
                return rule
        below = self._below
        if below:
            dot = len(text.rsplit(".", self._labels)[0]) + 1
            while dot:
                node = below.get(text[dot:])
                if node is not None:
                    rule = at_port(node, port)
                    if rule is not None:
                        return rule
                dot = text.find(".", dot) + 1
        return None

    def spells_out(self, name: str) -> bool:
        """Whether a rule names exactly this."""
        return name in self._exact

    def find_exact(self, name: str, port: int) -> Rule | None:
        """The rule that names exactly this, wildcards left out."""
        node = self._exact.get(name)
        return None if node is None else at_port(node, port)

    def first(self, host: Name) -> Rule | None:
        """The most specific rule for a name, on any port."""
        text = host.text
        node = self._exact.get(text)
        below = self._below
        dot = len(text.rsplit(".", self._labels)[0]) + 1 if below else 0
        while node is None and dot:
            node = below.get(text[dot:])
            dot = text.find(".", dot) + 1
        return None if node is None else rules_of(node)[0]

    def first_exact(self, name: str) -> Rule | None:
        """As find_exact, on any port."""
        node = self._exact.get(name)
        return None if node is None else rules_of(node)[0]

    def find_address(self, ip: IPAddress, port: int) -> Rule | None:
        levels = self._ipv4 if ip.version == 4 else self._ipv6
        return _find(levels, int(ip), port) if levels else None

    def find_ipv4(self, value: int, port: int) -> Rule | None:
        """As find_address, for an IPv4 address as a number."""
        return _find(self._ipv4, value, port)

    @property
    def star(self) -> _Node | None:
        return self._star

    def star_at(self, port: int) -> Rule | None:
        return None if self._star is None else at_port(self._star, port)

    def candidates(self, pattern: Pattern) -> Iterator[Rule]:
        """The rules that could cover every host of the pattern."""
        if self._star is not None:
            yield from rules_of(self._star)
        found: Iterator[_Node]
        if pattern.network is not None:
            found = self.address_nodes(pattern.network.network_address)
        elif pattern.kind is Kind.ANY:
            return
        else:
            found = self._nodes_above(pattern)
        for node in found:
            yield from rules_of(node)

    def _nodes_above(self, pattern: Pattern) -> Iterator[_Node]:
        for table in (self._exact, self._below):
            node = table.get(pattern.name)
            if node is not None:
                yield node
        yield from self._nodes_below(pattern.name)

    def _nodes_below(self, text: str) -> Iterator[_Node]:
        below = self._below
        if below:
            dot = len(text.rsplit(".", self._labels)[0]) + 1
            while dot:
                node = below.get(text[dot:])
                if node is not None:
                    yield node
                dot = text.find(".", dot) + 1


def at_port(node: _Node, port: int) -> Rule | None:
    if isinstance(node, PortTable):
        return node.at(port)
    return node if has_port(node.ports, port) else None


def rules_of(node: _Node) -> tuple[Rule, ...]:
    return node.rules if isinstance(node, PortTable) else (node,)


class _Level(NamedTuple):
    shift: int
    table: dict[int, _Node]


def _find(levels: tuple[_Level, ...], value: int, port: int) -> Rule | None:
    for shift, table in levels:
        node = table.get(value >> shift)
        if node is not None:
            rule = at_port(node, port)
            if rule is not None:
                return rule
    return None


def _node(rules: list[Rule]) -> _Node:
    return rules[0] if len(rules) == 1 else PortTable(rules)


def _levels(blocks: dict[int, dict[int, list[Rule]]]) -> tuple[_Level, ...]:
    """Longest prefix first."""
    return tuple(
        _Level(shift, {key: _node(found) for key, found in table.items()}) for shift, table in sorted(blocks.items())
    )

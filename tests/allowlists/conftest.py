"""Rules and rule sets in one line, for every test of the folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from typing import Any

import hypothesis
import pytest

from doorward.allowlists.decision import Decision
from doorward.allowlists.host import parse_host_port
from doorward.allowlists.rule import Origin, Rule, parse_rule
from doorward.allowlists.ruleset import AddressVerdict, RuleSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.allowlists.rule import Entry, RuleEffect

# a busy machine is no failure
hypothesis.settings.register_profile("allowlists", deadline=None)
hypothesis.settings.load_profile("allowlists")

FLAG = {"allow": Origin("flag", "--allow"), "deny": Origin("flag", "--deny")}


def make_rule(entry: Entry, effect: RuleEffect = "allow", origin: Origin | None = None) -> Rule:
    return parse_rule(entry, effect, origin or FLAG[effect])


class Asked:
    """A rule set and short questions to it."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules

    def __call__(self, authority: str) -> Decision:
        return self.rules.decide(*parse_host_port(authority, 443))

    def reason(self, authority: str) -> str:
        return str(self(authority).reason)

    def resolved(self, authority: str, *addresses: str) -> AddressVerdict:
        return self.rules.judge(self(authority), [ip_address(text) for text in addresses])

    def usable(self, authority: str, *addresses: str) -> list[str]:
        return [str(ip) for ip in self.resolved(authority, *addresses).usable]


@pytest.fixture
def rule() -> Callable[..., Rule]:
    return make_rule


@pytest.fixture
def asked() -> Callable[..., Asked]:
    def make(
        allow: Iterable[Entry] = (),
        deny: Iterable[Entry] = (),
        *,
        own: Iterable[str] = (),
        **rest: Mapping[str, Any] | bool,
    ) -> Asked:
        return Asked(
            RuleSet.build(
                [make_rule(entry) for entry in allow],
                [make_rule(entry, "deny") for entry in deny],
                own_addresses=[ip_address(text).packed for text in own],
                **rest,  # type: ignore[arg-type]
            )
        )

    return make

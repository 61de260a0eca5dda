"""What a run that only watches lets pass, and what stays refused."""

import pytest

from doorward.allowlists.decision import Effect, Reason, Source
from doorward.allowlists.host import parse_host
from doorward.allowlists.observing import WATCHED, observed, only_observed
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet

_AT = Origin("flag", "--allow")
RULES = RuleSet.build([parse_rule("a.test:22", "allow", _AT)], [parse_rule("bad.test", "deny", _AT)], can_ask=False)


@pytest.mark.parametrize(
    ("host", "port", "reason"), [("b.test", 443, Reason.NOT_ALLOWED), ("a.test", 443, Reason.PORT_NOT_ALLOWED)]
)
def test_what_no_rule_allows_passes_with_its_reason(host: str, port: int, reason: Reason) -> None:
    seen = observed(RULES.decide(parse_host(host), port))
    assert (seen.effect, seen.reason, seen.source, seen.rule) == (Effect.ALLOW, reason, Source.MODE_GUARD, None)
    assert only_observed(seen)


def test_a_deny_rule_holds_and_an_allow_is_none_of_it() -> None:
    assert observed(RULES.decide(parse_host("bad.test"), 443)).effect is Effect.DENY
    allowed = RULES.decide(parse_host("a.test"), 22)
    assert observed(allowed) is allowed and not only_observed(allowed)


@pytest.mark.parametrize("reason", sorted(set(Reason) - WATCHED - {Reason.ALLOWED}))
def test_what_is_no_want_of_a_rule_stays_refused(reason: Reason) -> None:
    refused = RULES.decide(parse_host("b.test"), 443).refused(reason, Source.PROXY_STATE, "no")
    assert observed(refused) is refused


def test_a_question_is_not_asked() -> None:
    asking = RuleSet.build([], [], can_ask=True).decide(parse_host("b.test"), 443)
    assert asking.effect is Effect.ASK and only_observed(observed(asking))

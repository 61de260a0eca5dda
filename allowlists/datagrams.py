"""What a rule set says of datagrams: its rules for them are a set of their own, and hints name the rule they want."""

from doorward.allowlists.decision import Decision
from doorward.allowlists.hint import allow_option
from doorward.allowlists.host import Host, authority_text
from doorward.allowlists.ruleset import RuleSet


def rules_for_datagrams(rules: RuleSet) -> RuleSet:
    """The set; one that allows nothing where no rule is about them."""
    return rules.udp or RuleSet.build((), [rule._replace(udp=False) for rule in rules.deny])


def said_of_datagrams(decision: Decision) -> Decision:
    """The decision with a hint that says `udp:`, where it has one."""
    if not decision.entry:
        return decision
    entry = datagram_entry(decision.host, decision.port)
    return decision._replace(said=decision.words._replace(hint=allow_option(entry), entry=entry))


def datagram_entry(host: Host, port: int) -> str:
    """The narrowest entry that lets datagrams there out."""
    return f"udp:{authority_text(host, port)}"

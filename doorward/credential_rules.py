"""Rules that name a credential: which requests it is put into, and where it may go at most.

    [network]
    allow = [{host = "api.forge.example", methods = ["GET"], credential = "forge"}]

Once a rule names a credential, it is put into requests that such rules allow, and into no others. Its own `hosts` are
still the most it is for: a rule beyond them is a mistake. Where it has none the rules say it all; but not a project's
own, which must not choose where a person's credential goes.
"""

from __future__ import annotations

from doorward.allowlists.layers import outside
from doorward.allowlists.rule import Origin, Rule, parse_rule
from doorward.allowlists.spelling import canonical
from doorward.configuration import PROJECT_FILE
from doorward.configuration_error import ConfigurationError, Problem, nearest
from doorward.credentials import Credential
from doorward.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_KEY = "network.allow"
_PLAIN_HTTP = ((80, 80),)


def bound(credentials: Sequence[Credential], rules: Iterable[Rule]) -> tuple[Credential, ...]:
    """The credentials with the hosts they go to. Raises ConfigurationError for a rule that names none or leads one
    astray, UsageError for a credential that goes nowhere, MalformedRule for hosts that are none."""
    naming: dict[str, list[Rule]] = {}
    for rule in rules:
        if rule.credential:
            naming.setdefault(rule.credential, []).append(rule)
    known = {each.name: each for each in credentials}
    problems = [
        _problem(rule, said)
        for name, found in naming.items()
        for rule in found
        if (said := _wrong(rule, known.get(name), known)) is not None
    ]
    if problems:
        raise ConfigurationError(problems)
    return tuple(_with_hosts(each, naming.get(each.name, ())) for each in credentials)


def _with_hosts(credential: Credential, rules: Sequence[Rule]) -> Credential:
    if rules:
        hosts = dict.fromkeys(canonical(rule.pattern, rule.ports if rule.ports_named else None) for rule in rules)
        return credential._replace(hosts=tuple(hosts), by_rule=True)
    if not credential.hosts:
        raise UsageError(
            f"doorward: credentials.{credential.name}: it needs hosts, to which alone it is sent, or a rule that names "
            f'it: {{host = "HOST", credential = "{credential.name}"}}'
        )
    return credential


def _wrong(rule: Rule, credential: Credential | None, known: Iterable[str]) -> tuple[str, str | None] | None:
    """What is wrong, and what would be right."""
    if credential is None:
        near = nearest(rule.credential, known)
        there = f"there are: {', '.join(known)}" if known else "there is none yet"
        return f'credential = "{rule.credential}": there is no [credentials.{rule.credential}]', (
            f'did you mean "{near}"?' if near else there
        )
    if rule.ports == _PLAIN_HTTP:
        return f"{rule.text} opens port 80 alone, and a credential is sent inside TLS", "name the port of its HTTPS"
    if not credential.hosts:
        if rule.origin.where.startswith(PROJECT_FILE):
            return (
                f"the credential {credential.name} has no hosts, and a project's own rule cannot say where it goes",
                f"give credentials.{credential.name} its hosts",
            )
        return None
    origin = Origin("file", f"credentials.{credential.name}.hosts")
    own = [parse_rule(host, "allow", origin) for host in credential.hosts]
    alone = Rule("allow", rule.text, rule.pattern, rule.ports, rule.ports_named, rule.origin)
    if outside(own, (alone,)):
        return (
            f"{rule.text} is beyond the hosts of credentials.{credential.name}, {', '.join(credential.hosts)}",
            "add the host there, or leave the credential out",
        )
    return None


def _problem(rule: Rule, said: tuple[str, str | None]) -> Problem:
    return Problem(rule.origin.where, None, _KEY, *said)

"""What of a run is inspected, and by whom: read only where a rule, an option or a credential asks for it."""

from __future__ import annotations

import os

from doorward.errors import UsageError
from doorward.inspection_process import interpreter
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from doorward.allowlists.rule import Rule
    from doorward.configuration import Configuration
    from doorward.credentials import Credential
    from doorward.launcher.interface import SandboxPolicy
    from doorward.sessions.home import Home

_PLAIN_HTTP = ((80, 80),)


class Inspection(NamedTuple):
    """`python` runs the worker; `work` is what it is told (see `proxy/inspection/worker`); `folder` holds the authority
    and what is to be trusted; the hosts of `credentials` are inspected whatever their rules say; in a `limited` network
    every host is."""

    python: str
    folder: str
    work: Mapping[str, object]
    every: bool
    credentials: tuple[Credential, ...] = ()
    limited: bool = False

    def has_credential_for(self, host: str, port: int) -> bool:
        """Whether one is for this place, which is inspected then."""
        from doorward.allowlists.host import parse_rule_host
        from doorward.allowlists.index import RuleIndex

        rules = RuleIndex(_hosts(self.credentials))
        return rules.find(parse_rule_host(host), port) is not None or rules.star_at(port) is not None

    @property
    def settings(self) -> dict[str, object]:
        """As the door is told; what is secret comes later, and into no record."""
        return {
            "every": self.every,
            "credentials": {each.name: list(each.hosts) for each in self.credentials},
            "by_rule": [each.name for each in self.credentials if each.by_rule],
        }

    @property
    def bundle(self) -> str:
        """Where the worker puts what clients inside are to trust."""
        return os.path.join(self.folder, "bundle.pem")

    @property
    def java(self) -> str:
        """The same for Java."""
        return os.path.join(self.folder, "trust.p12")

    @property
    def cacerts(self) -> str:
        """The same in the form of the store that Java reads by itself."""
        return os.path.join(self.folder, "cacerts")

    def shown_in(self, sandbox: SandboxPolicy) -> SandboxPolicy:
        """The sandbox with our bundle in the place of the system's, and with what is to be trusted in sight wherever
        the home is. Makes the folder, so that the key in it can be hidden. Raises UsageError."""
        from doorward.launcher.interface import Mode
        from doorward.trust_environment import replaced_bundles

        os.makedirs(self.private, 0o700, exist_ok=True)
        replaced = replaced_bundles(self.bundle)
        if sandbox.user is not None:  # who cannot look into this home, so a variable could not name the store there
            from doorward.trust_environment import replaced_java_stores

            if not replaced:
                raise UsageError(
                    "doorward: with --user inspection needs the system's bundle of authorities, and there is none; "
                    "install ca-certificates"
                )
            replaced += replaced_java_stores(self.cacerts, os.environ)
        confined = sandbox.mode not in (Mode.DANGER_FULL_ACCESS, Mode.UNCONFINED)
        return sandbox._replace(
            replaced=replaced,
            read_only=(*sandbox.read_only, self.folder) if confined and sandbox.user is None else sandbox.read_only,
            deny_read=(*sandbox.deny_read, *self._files()) if confined else sandbox.deny_read,
        )

    def _files(self) -> list[str]:
        """Files that hold credentials."""
        given = (str(each.given) for each in self.credentials if each.source == "file")
        return [path for path in map(os.path.expanduser, given) if os.path.isabs(path)]

    def trusted(self) -> bool:
        """Whether the files are there that clients inside are to trust, and the key that belongs to them."""
        files = (self.bundle, self.cacerts, os.path.join(self.private, "ca.key"))
        return all(map(os.path.exists, files))

    @property
    def private(self) -> str:
        """The folder of the authority's key, which no command may read."""
        return os.path.join(self.folder, "private")


def folder_of(home: Home) -> str:
    """Where a home keeps its authority."""
    return os.path.join(home.path, "inspect")


def inspection_for(
    configuration: Configuration, settings: Mapping[str, Any], home: Home, env: Mapping[str, str]
) -> Inspection | None:
    """What is inspected under these network settings; None where nothing needs it. Raises UsageError where it is needed
    and cannot be."""
    every = bool(configuration.value("inspect.all"))
    rules = _rules(settings)
    credentials = _credentials(configuration, rules)
    limited = [rule for rule in rules if rule.limited or settings.get("limited")]
    narrow = [rule for rule in limited if rule.ports != _PLAIN_HTTP]
    if not every and not credentials and not narrow:
        return None
    try:
        python = interpreter(configuration.optional_text("inspect.python"))
    except UsageError as error:
        if not every and not credentials and not any(_has_https(rule) for rule in narrow):
            return None  # on other ports it may be plain HTTP, which the door reads itself; TLS there is refused
        asking = "--inspect" if every else next((rule.described for rule in narrow if _has_https(rule)), "a credential")
        raise UsageError(f"doorward: {asking} needs inspection: {str(error).removeprefix('doorward: ')}") from None
    folder = folder_of(home)
    return Inspection(
        python,
        folder,
        {
            "folder": folder,
            "names": None if every else _names((*narrow, *_hosts(credentials))),
            "roots": env.get("SSL_CERT_FILE") or None,
            "record": (record := configuration.text("inspect.record")),
            "limits": settings.get("limits") or {},
            **({} if record == "off" else {"fingerprint_key": _fingerprint_key(home)}),
        },
        every,
        credentials,
        bool(settings.get("limited")),
    )


def _fingerprint_key(home: Home) -> str:
    """For the worker alone: it tells no secret, but whether one was there. Raises UsageError."""
    from doorward.sessions.environment import fingerprint_key
    from doorward.sessions.home import StoreError

    try:
        home.ensure()
        return fingerprint_key(home).hex()
    except StoreError as error:
        raise UsageError(f"doorward: {error}") from None


def _credentials(configuration: Configuration, rules: Iterable[Rule]) -> tuple[Credential, ...]:
    configured = any(name.startswith("credentials.") for name in (*configuration.values, *configuration.rows))
    if not configured and not any(rule.credential for rule in rules):
        return ()
    from doorward.allowlists.rule import MalformedRule
    from doorward.credential_rules import bound
    from doorward.credentials import credentials_of

    try:
        return bound(credentials_of(configuration), rules)
    except MalformedRule as error:
        raise UsageError(f"doorward: {error}") from None


def _hosts(credentials: Iterable[Credential]) -> list[Rule]:
    """The patterns of the hosts. Raises UsageError for what is none."""
    from doorward.allowlists.rule import MalformedRule, Origin, parse_rule

    try:
        return [
            parse_rule(host, "allow", Origin("file", f"credentials.{each.name}.hosts"))
            for each in credentials
            for host in each.hosts
        ]
    except MalformedRule as error:
        raise UsageError(f"doorward: {error}") from None


def _rules(settings: Mapping[str, Any]) -> list[Rule]:
    from doorward.allowlists.rule import MalformedRule, Origin, parse_rule

    found = []
    for row in settings.get("allow", ()):
        try:
            found.append(parse_rule(row["rule"], "allow", Origin(row["source"], row["where"])))
        except MalformedRule:
            continue  # the door reads them too, and says so
    return found


def _has_https(rule: Rule) -> bool:
    return any(low <= 443 <= high for low, high in rule.ports)


def _names(rules: Iterable[Rule]) -> list[str] | None:
    """What the run's certificates are constrained to; None where a rule takes in every name."""
    from doorward.allowlists.pattern import Kind

    found: list[str] = []
    for rule in rules:
        pattern = rule.pattern
        if pattern.kind is Kind.ANY:
            return None
        found.append(pattern.name if pattern.network is None else str(pattern.network))
    return list(dict.fromkeys(found))

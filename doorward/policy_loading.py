"""The exec policy of a run: read, evaluated once in a bounded process, and kept under a digest of its content.

What is kept is JSON in $DOORWARD_HOME/cache, 0600: plain data that is read, never run. Its name is the digest of all
rules files with their paths, so that a changed file is another entry. Nothing inside the sandbox can write there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Final

from doorward.configuration_error import printable
from doorward.configuration_file import UnusableFile, read_text
from doorward.errors import UsageError
from doorward.gates.policy_rules import Policy, from_plain
from doorward.policy_files import rule_files
from doorward.sessions.home import Home, StoreError, private_folder
from doorward.sessions.regular_file import open_regular
from doorward.sessions.sha256 import sha256

_FORMAT: Final = 1
"""Goes up when the document in the cache or the meaning of a rules file changes."""
_KEPT: Final = 8
"""Entries kept: one for each project somebody is at work in."""


def load_policy(folders: Sequence[str], home: Home) -> Policy | None:
    """The rules of all files in `folders`, from the cache where they have not changed; None where there is no file.

    Raises UsageError naming the file and the line: one bad file fails the load, and nothing runs.
    """
    try:
        files = rule_files(tuple(folders))
    except OSError as error:
        raise UsageError(f"doorward: {error.filename} cannot be listed: {error.strerror}") from None
    return policy_from(files, home) if files else None


def policy_from(files: Sequence[str], home: Home | None) -> Policy:
    """The rules of `files`; `home` None: nothing is kept. Raises UsageError."""
    sources = []
    for file in files:
        try:
            text = read_text(file)
        except UnusableFile as error:
            raise UsageError(f"doorward: {error.problem}") from None
        if text is None:
            raise UsageError(f"doorward: {printable(file)} does not exist")
        sources.append((file, text))
    if home is None:
        return _evaluated(sources)
    digest = sha256(json.dumps([_FORMAT, sources]).encode("ascii")).hexdigest()
    path = f"{home.cache}/policy-{digest}.json"
    kept = _kept(path)
    if kept is None:
        kept = _evaluated(sources)
        _keep(home, path, kept)
    return kept


def network_rows(policy: Policy) -> dict[str, list[dict[str, object]]]:
    """The `network_rule`s as rows of the proxy's settings (allowlists/settings.py): "allow", "deny" and "prompt".

    The proxy knows names and ports, and http, https and socks5_tcp reach a name the same way; so the strictest rule for
    a name counts. For socks5_udp what is not allowed is a deny of datagrams; an allow opens none, since a rule for
    datagrams names its port.
    """
    decisions: dict[str, list[tuple[str, str]]] = {}
    datagrams: dict[str, str] = {}
    for rule in policy.network:
        if rule.protocol != "socks5_udp":
            decisions.setdefault(rule.host, []).append((rule.decision, rule.where))
        elif rule.decision != "allow":
            datagrams.setdefault(rule.host, rule.where)
    rows: dict[str, list[dict[str, object]]] = {"allow": [], "deny": [], "prompt": []}
    for host, said in decisions.items():
        entry = _bracketed(host)
        for effect, wanted in (("deny", "forbidden"), ("prompt", "prompt"), ("allow", "allow")):
            where = next((place for decision, place in said if decision == wanted), None)
            if where is not None:
                rows[effect].append({"rule": entry, "source": "policy", "where": where})
                break
    for host, where in datagrams.items():
        rows["deny"].append({"rule": f"udp:{_bracketed(host)}", "source": "policy", "where": where})
    return rows


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def refuse_unheld(policy: Policy) -> None:
    """Raises UsageError if a rule for a host would not hold, the network being open: no proxy stands there."""
    for rule in policy.network:
        if rule.decision != "allow":
            raise UsageError(
                printable(
                    f"doorward: {rule.where}: the network_rule for {rule.host} would not hold with the network open; "
                    "add --network proxied, or take the rule out"
                )
            )


def _evaluated(sources: Sequence[tuple[str, str]]) -> Policy:
    from doorward.policy_worker import evaluate_bounded  # only where no cache serves

    return from_plain(evaluate_bounded(sources))


def _kept(path: str) -> Policy | None:
    """The policy in the cache; None where it is not there, or is not as we would have written it."""
    try:
        fd = open_regular(path)
    except StoreError:
        return None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            return None
        data = file.read()
    try:
        return from_plain(json.loads(data))
    except (ValueError, KeyError, TypeError):
        return None


def _keep(home: Home, path: str, policy: Policy) -> None:
    from doorward.gates.policy_rules import to_plain
    from doorward.sessions.unnamed_file import UnnamedFile

    try:
        home.ensure()
        private_folder(home.cache)
        _forget_oldest(home.cache)
        if os.path.lexists(path):
            os.unlink(path)
        fresh = UnnamedFile(home.cache)
        fresh.write(json.dumps(to_plain(policy), separators=(",", ":")).encode("ascii"))
        fresh.publish(path)
    except (OSError, StoreError):
        pass  # a cache that cannot be written costs the next start some milliseconds


def _forget_oldest(folder: str) -> None:
    entries = [
        (os.lstat(f"{folder}/{name}").st_mtime_ns, name)
        for name in os.listdir(folder)
        if name.startswith("policy-") and name.endswith(".json")
    ]
    for _, name in sorted(entries)[: max(0, len(entries) - _KEPT + 1)]:
        os.unlink(f"{folder}/{name}")

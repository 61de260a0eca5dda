"""`doorward allowlist learn SESSION…`: the smallest rules for what recordings hold, against the rules in force."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence

from doorward.allowlists.host import MalformedHost, parse_host
from doorward.allowlists.learning import Learned, Seen, learn
from doorward.allowlists.rule import MalformedRule, MalformedRules, Origin, parse_rules, table_text
from doorward.allowlists.ruleset import RuleSet
from doorward.commands.allowlist import JSON, RULE_OPTIONS, options_of, policy_of, printable_lines
from doorward.commands.allowlist_file import why_unread
from doorward.commands.summary import report_of
from doorward.errors import EngineError, UsageError
from doorward.named_tuple import NamedTuple
from doorward.options import Option, Parsed
from doorward.sessions.items import command_line
from doorward.sessions.traffic import Report, Row
from doorward.summary import place_text, printable

DIFFERS = 1
"""Exit status of `--check` when recordings used a place that the file does not allow."""

_OPTIONS = (
    Option("write", "write the rules there; an existing configuration file keeps what it has", "FILE"),
    Option("check", "compare with FILE: exit status 1 when recordings used what it does not allow", "FILE"),
    Option("prune", "also list the rules in force that no recording used"),
    Option("refused", "learn from what was refused as well, not only from what was reached or observed"),
    Option("wildcards", "put N sibling names under one *.DOMAIN; never a zone that strangers share", "N"),
    Option("methods", "write methods (and few paths) where all requests to a place were seen"),
    *RULE_OPTIONS,
    JSON,
)
_EXAMPLES = (
    "doorward allowlist learn nightly",
    "doorward allowlist learn --write allowlist.lock.toml nightly release",
    "doorward allowlist learn --check allowlist.lock.toml nightly",
)
_MARK = "# learned by doorward"


class _Rule(NamedTuple):
    """One learned rule with its provenance, and the rule in force that covers it already, "" for none."""

    learned: Learned
    provenance: Mapping[str, object]
    covered_by: str


def main(args: list[str]) -> int:
    """Print, write or check the rules. Raises UsageError, EngineError, HelpWanted."""
    parsed = options_of("learn", "SESSION…", _OPTIONS, args, _EXAMPLES)
    if not parsed.words:
        raise UsageError("doorward allowlist learn: name the recorded sessions; `doorward sessions` lists them")
    if parsed.has("write") and parsed.has("check"):
        raise UsageError("doorward allowlist learn: --write and --check exclude each other")
    report = report_of("allowlist learn", parsed.words)
    used = [row for row in report.rows if _used(row, parsed.has("refused"))]
    policy, _ = policy_of(parsed)
    rules = _learned(used, parsed, policy.rules)
    unused = _unused(used, policy.rules) if parsed.has("prune") else []
    if parsed.has("check"):
        return _check(parsed.last("check"), used, parsed.has("json"))
    text = _file_text(rules, report)
    if parsed.has("write"):
        _write(parsed.last("write"), rules, text)
    if parsed.has("json"):
        document = {"rules": [_json(rule) for rule in rules], "unused": unused}
        sys.stdout.write(json.dumps(document) + "\n")
        return 0
    if not parsed.has("write"):
        sys.stdout.write(text)
    _tell_difference(rules, unused, observed=report.observing)
    _tell_unreached(report)
    _tell_next(rules, parsed)
    return 0


def _used(row: Row, with_refused: bool) -> bool:
    if row.place.protocol == "udp":
        return False  # rules for datagrams are few, and written by hand
    if row.place.decision == "allow":
        # a name that never resolved was not reached; watched or not, a rule for it would be a guess
        return row.reached
    return with_refused and row.place.reason in ("not_allowed", "port_not_allowed", "not_answered")


def _learned(used: Sequence[Row], parsed: Parsed, in_force: RuleSet) -> list[_Rule]:
    wildcards = parsed.last("wildcards") or "0"
    if not wildcards.isdecimal() or int(wildcards) == 1:
        raise UsageError(f"doorward allowlist learn: --wildcards takes a number of names from 2 on, not {wildcards!r}")
    rows: dict[tuple[str, int], list[Row]] = {}
    for row in used:
        rows.setdefault((row.place.host, row.place.rule_port), []).append(row)
    seen = []
    for (host, port), many in rows.items():
        methods = tuple(method for row in many for method in row.methods)
        paths = tuple(path for row in many for path in row.paths)
        for rule in dict.fromkeys(row.place.rule or "" for row in many):
            seen.append(Seen(host, port, methods, paths, rule))
    learned = learn(seen, wildcards=int(wildcards), methods=parsed.has("methods"))
    return [_Rule(each, _provenance(each, rows), _covered(each, in_force)) for each in learned]


def _provenance(learned: Learned, rows: Mapping[tuple[str, int], Sequence[Row]]) -> dict[str, object]:
    """Who used it: connections, sessions and programs, first and last time (RFC 3339)."""
    many = [row for place in learned.places for row in rows[place]]
    return {
        "connections": sum(row.connections for row in many),
        "sessions": list(dict.fromkeys(session for row in many for session in row.sessions)),
        "processes": list(dict.fromkeys(name for row in many for name in row.processes)),
        "first_seen": min((row.first_seen for row in many if row.first_seen), default=""),
        "last_seen": max((row.last_seen for row in many), default=""),
    }


def _decision_rule(in_force: RuleSet, host: str, port: int) -> str:
    """The allow rule that lets the place pass, "" where none does."""
    try:
        decision = in_force.decide(parse_host(f"[{host}]" if ":" in host else host), port)
    except MalformedHost:
        return ""
    return decision.rule.text if decision.effect == "allow" and decision.rule is not None else ""


def _covered(learned: Learned, in_force: RuleSet) -> str:
    found = [_decision_rule(in_force, host, port) for host, port in learned.places]
    return ", ".join(dict.fromkeys(found)) if all(found) else ""


def _unused(used: Iterable[Row], in_force: RuleSet) -> list[str]:
    took = {_decision_rule(in_force, row.place.host, row.place.rule_port) for row in used}
    return [rule.text for rule in in_force.allow if rule.text not in took]


def _check(path: str, used: Sequence[Row], as_json: bool) -> int:
    entries = _entries_of(path)
    try:
        there = RuleSet.build(parse_rules(entries, "allow", Origin("file", path)), ())
    except (MalformedRule, MalformedRules) as error:
        raise UsageError(printable_lines(f"doorward: {path}: {error}")) from None
    missing = [row for row in used if not _decision_rule(there, row.place.host, row.place.rule_port)]
    places = list(dict.fromkeys(place_text(row.place.host, row.place.rule_port) for row in missing))
    unused = _unused(used, there)
    if as_json:
        sys.stdout.write(json.dumps({"missing": places, "unused": unused}) + "\n")
    else:
        lines = [f"missing: {place}" for place in places] + [f"unused: {rule}" for rule in unused]
        sys.stdout.write("".join(printable(line) + "\n" for line in lines))
    return DIFFERS if places else 0


def _entries_of(path: str) -> list[str | Mapping[str, object]]:
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"doorward allowlist learn: cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"doorward allowlist learn: {path} is not valid TOML: {error}") from None
    network = document.get("network")
    allow = network.get("allow") if isinstance(network, dict) else None
    if not isinstance(allow, list):
        raise UsageError(f"doorward allowlist learn: {path} has no network.allow; `learn --write {path}` makes one")
    return allow


def _file_text(rules: Sequence[_Rule], report: Report) -> str:
    lines = [
        f"{_MARK} from {len(report.sessions)} session{'s' if len(report.sessions) != 1 else ''}; "
        "`doorward allowlist learn --check` compares",
        "[network]",
        "allow = [",
    ]
    for rule in rules:
        lines.append(f"  {_entry_text(rule.learned)},  # {_comment(rule)}")
    return "\n".join([*lines, "]", ""])


def _entry_text(learned: Learned) -> str:
    return json.dumps(learned.entry) if isinstance(learned.entry, str) else table_text(learned.entry)


def _text_of(entry: str | Mapping[str, object]) -> str:
    return entry if isinstance(entry, str) else table_text(entry)


def _comment(rule: _Rule) -> str:
    said = rule.provenance
    count = said["connections"]
    parts = [f"{count} connection{'s' if count != 1 else ''}"]
    processes, sessions = said["processes"], said["sessions"]
    assert isinstance(processes, list) and isinstance(sessions, list)
    if processes:
        parts.append("by " + ", ".join(processes[:4]))
    parts.append(f"in {len(sessions)} session{'s' if len(sessions) != 1 else ''} ({sessions[0]})" if sessions else "")
    first, last = str(said["first_seen"])[:10], str(said["last_seen"])[:10]
    parts.append(first if first == last else f"{first} to {last}")
    return printable(", ".join(part for part in parts if part))


def _write(path: str, rules: Sequence[_Rule], text: str) -> None:
    """A file that `learn` wrote is written anew; to any other configuration file only what it lacks is added."""
    from doorward.toml_edit import Uneditable, change_file, entries_of, with_added

    def change(before: str) -> str:
        if not before.strip() or before.startswith(_MARK):
            return text
        there = {_text_of(entry) for entry in entries_of(before, "network", "allow")}
        missing = [rule.learned.entry for rule in rules if _text_of(rule.learned.entry) not in there]
        return with_added(before, "network", "allow", missing) if missing else before

    try:
        if os.path.basename(folder := os.path.dirname(os.path.abspath(path))) == ".doorward":
            os.makedirs(folder, exist_ok=True)  # the project's own configuration, its first
        change_file(os.path.abspath(path), change)
    except Uneditable as error:
        raise UsageError(f"doorward allowlist learn: {path}: {error}") from None
    except OSError as error:
        raise EngineError(f"cannot write {path}: {error.strerror}") from None


def _json(rule: _Rule) -> dict[str, object]:
    return {
        "rule": rule.learned.entry,
        "places": [place_text(host, port) for host, port in rule.learned.places],
        **rule.provenance,
        "covered_by": rule.covered_by or None,
    }


def _tell_next(rules: Sequence[_Rule], parsed: Parsed) -> None:
    """For a person: what the list comes to, and what to do with it."""
    new = [rule for rule in rules if not rule.covered_by]
    if not rules:
        return
    if not new:
        said = "the rules in force allow all of it"
    else:
        said = f"{len(new)} of {len(rules)} rule{'s' if len(rules) != 1 else ''} {'is' if len(new) == 1 else 'are'} new"
        if not parsed.has("write"):
            again = ["doorward", "allowlist", "learn", "--write", ".doorward/config.toml", *parsed.words]
            said += f"; to keep them for this project: {command_line(again)}"
    lines = [said]
    if parsed.has("write"):
        lines = [f"wrote {parsed.last('write')}: {said}", why_unread(parsed.last("write"))]
    sys.stderr.write("".join(f"{printable(f'doorward: {line}')}\n" for line in lines if line))


def _tell_unreached(report: Report) -> None:
    """For a person: places that were let through and never answered, which no rule is written for."""
    rows = [row for row in report.rows if row.place.decision == "allow" and row.place.protocol != "dns"]
    places = list(dict.fromkeys(place_text(row.place.host, row.place.port) for row in rows if not row.reached))
    if places:
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        said = f"no rule for what was let through and could not be reached: {', '.join(places[:5])}{more}"
        sys.stderr.write(printable(f"doorward: {said}") + "\n")


def _tell_difference(rules: Sequence[_Rule], unused: Sequence[str], *, observed: bool) -> None:
    """For a person: what these rules would change in the rules in force."""
    if not rules:
        where = "" if observed else "; record with `doorward run --observe -- CMD`"
        sys.stderr.write(f"doorward: these sessions reached nothing that a rule could be made of{where}\n")
    for rule in rules:
        text = _text_of(rule.learned.entry)
        line = f"  {text}  (covered by {rule.covered_by})" if rule.covered_by else f"+ {text}"
        sys.stderr.write(printable(line) + "\n")
    for rule_text in unused:
        sys.stderr.write(printable(f"- {rule_text}  (used by none of these sessions)") + "\n")

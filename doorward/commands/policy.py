"""`doorward policy check`: what rules files say about a command, as `codex execpolicy check` prints it."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from doorward import exit_status
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, Parsed, help_text, parse

if TYPE_CHECKING:
    from doorward.gates.policy_rules import Policy, RuleMatch

_CHECK = (
    Option("rules", "a rules file; repeat for more (default: those that `run` would read)", "FILE", "r", repeat=True),
    Option("resolve-host-executables", "let /usr/bin/git match rules for git, as host_executable() lists allow"),
    Option("pretty", "print the JSON document over several lines"),
    Option("verdict", "what `run` would do: the command unwrapped, all gates asked; exit status as of `check`"),
    Option("cd", "with --verdict or without --rules: the folder it would run in", "DIR", "C"),
    Option("config", "with --verdict or without --rules: any configuration key", "KEY=VALUE", "c", repeat=True),
    Option("json", "with --verdict: the verdict as one JSON document (without it the output is always JSON)"),
)
_SUMMARY = """Say what the policy rules say about a command; nothing is run. The output is that of `codex execpolicy
check`: JSON, the command not unwrapped, exit status 0 whatever the decision. `match` and `not_match`
examples are run first; a file with a mistake is exit status 2."""
_EXAMPLES = (
    "doorward policy check --rules my.rules -- git push --force",
    "doorward policy check --rules my.rules --verdict -- sh -c 'git push --force'",
)


def main(args: list[str]) -> int:
    """Run the one action there is."""
    action, rest = (args[0], args[1:]) if args else ("", [])
    if action == "check":
        return _check(rest)
    if action in ("-h", "--help", "help"):
        sys.stdout.write(_help())
        return 0
    shown = f"there is no {action!r}; " if action else ""
    sys.stderr.write(f"doorward policy: {shown}the one action is `doorward policy check --rules FILE -- CMD`\n")
    return exit_status.USAGE


def _help() -> str:
    return help_text("doorward policy check [options] [--] CMD [ARG…]", _SUMMARY, _CHECK, _EXAMPLES)


def _check(args: list[str]) -> int:
    try:
        parsed = parse("policy check", _CHECK, args, stop_at_word=True)
    except HelpWanted:
        sys.stdout.write(_help())
        return 0
    if not parsed.words:
        raise UsageError("doorward policy check: no command given; doorward policy check --rules FILE -- CMD")
    if parsed.has("verdict"):
        return _verdict(parsed)
    from doorward.gates.policy_rules import codex_document
    from doorward.working_folder import working_folder

    policy = _policy(parsed)
    matches: tuple[RuleMatch, ...] = ()
    if policy is not None:
        resolve = parsed.has("resolve-host-executables")
        matches = policy.matches(parsed.words, resolve_in=working_folder(None) if resolve else None)
    document = codex_document(parsed.words, matches)
    # as serde_json writes it: UTF-8, no blanks
    if parsed.has("pretty"):
        text = json.dumps(document, ensure_ascii=False, indent=2)
    else:
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")
    sys.stdout.flush()
    return 0


def _policy(parsed: Parsed) -> Policy | None:
    """The rules of `--rules`, else those a run would read."""
    files = parsed.all("rules")
    if not files:
        from doorward.opening import policy_for

        return policy_for(_options(parsed), os.environ)
    from doorward.policy_loading import policy_from

    return policy_from(files, None)


def _verdict(parsed: Parsed) -> int:
    from doorward.commands.check import report
    from doorward.commands.run_options import command_of
    from doorward.gates.resolver import resolve
    from doorward.judgement import judgement_of
    from doorward.opening import plan_for
    from doorward.shell_action import shell_action

    plan = plan_for(_options(parsed), os.environ)
    if parsed.has("rules"):
        plan = plan._replace(policy=_policy(parsed))
    verdict = resolve(judgement_of(plan).dial, shell_action(*command_of("policy check", parsed), os.environ))
    return report(verdict, parsed.has("json"))


def _options(parsed: Parsed) -> dict[str, object]:
    return {"overrides": list(parsed.all("config")), "cwd": parsed.last("cd") or None}

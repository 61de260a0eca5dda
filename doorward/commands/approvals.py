"""`doorward approvals`: the questions that wait, and their answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from doorward.errors import UsageError
from doorward.gates.answer import Answer, Reply, Scope
from doorward.options import HelpWanted, Option, Parsed, help_text, parse
from doorward.own_file import own_home
from doorward.pending_queue import TooLate, answer, waiting
from doorward.question import Question
from doorward.sessions.home import Home
from doorward.summary import printable

_JSON = Option("json", "one JSON document")
_ALLOW = (
    Option("once", "this once (the default)"),
    Option("session", "exactly this, for as long as the session lasts"),
    Option("always", "write the rule that is shown, for every session from now on"),
    _JSON,
)
_TABLES = {"list": (_JSON,), "show": (_JSON,), "allow": _ALLOW, "deny": (_JSON,)}
_USAGE = "doorward approvals list | show ID | allow [--once|--session|--always] ID | deny ID"
_SUMMARY = "Questions that wait for an answer (approvals.queue = true). An id may be shortened to its beginning."
_EXAMPLES = ("doorward approvals list", "doorward approvals allow --session 3f9c", "doorward approvals deny 3f9c")


def main(args: list[str]) -> int:
    """Run one of the actions; without one, list."""
    named = bool(args) and not args[0].startswith("-")
    action, rest = (args[0], args[1:]) if named else ("list", args)
    try:
        if action not in _TABLES:
            raise UsageError(f"doorward approvals: there is no action {action!r}; list, show, allow or deny")
        parsed = parse(f"approvals {action}", _TABLES[action], rest)
    except HelpWanted:
        sys.stdout.write(help_text(_USAGE, _SUMMARY, _ALLOW, _EXAMPLES))
        return 0
    home = own_home()
    if action == "list":
        if parsed.words:
            raise UsageError(f"doorward approvals list: takes no words, not {parsed.words[0]!r}")
        return _list(waiting(home), as_json=parsed.has("json"))
    if len(parsed.words) != 1:
        raise UsageError(f"doorward approvals {action}: name one question; `doorward approvals list` has them")
    question = _found(home, parsed.words[0])
    if action == "show":
        return _show(question, as_json=parsed.has("json"))
    reply = Reply(Answer.YES, _scope(parsed)) if action == "allow" else Reply(Answer.NO)
    return _answer(home, question, reply, as_json=parsed.has("json"))


def _list(questions: list[Question], *, as_json: bool) -> int:
    if as_json:
        sys.stdout.write(json.dumps([question.row() for question in questions]) + "\n")
        return 0
    for question in questions:
        where = question.cwd if question.kind != "network" else f"for {_command(question)}"
        _out(f"{question.id}  {question.asked_at[11:19]}  {question.gate:<9}  {question.subject}  ({where})")
    if not questions:
        sys.stderr.write("doorward: nothing waits for an answer\n")
    return 0


def _show(question: Question, *, as_json: bool) -> int:
    if as_json:
        sys.stdout.write(json.dumps(question.document()) + "\n")
        return 0
    _out(f"{question.subject}")
    if question.kind == "network":
        _out(f"  wanted by  {_command(question)}")
    _out(f"  in         {question.cwd}")
    _out(f"  asked at   {question.asked_at}, for {question.timeout_s:g} s")
    for sentence in question.why:
        _out(f"  {question.gate:<9}  {sentence}")
    if question.again:
        _out(f"  allow      runs it again with {' '.join(question.again)}")
    elif question.rule:
        _out(f"  --always   {question.rule}")
        _out(f"             {question.rule_note}")
    else:
        _out(f"  --always   is not offered: {question.rule_note}")
    return 0


def _answer(home: Home, question: Question, reply: Reply, *, as_json: bool) -> int:
    if reply.scope is Scope.ALWAYS and question.rule:
        # shown before it is written
        sys.stderr.write(printable(f"doorward: {question.rule}") + "\n" + printable(f"  {question.rule_note}") + "\n")
    try:
        why = answer(home, question, reply)
    except TooLate:
        raise UsageError(
            f"doorward approvals: nobody waits for {question.id} any more: it was answered, or its time is over"
        ) from None
    if why:
        raise UsageError(printable(f"doorward approvals: {why}"))
    said = "denied" if reply.answer is Answer.NO else f"allowed ({reply.scope})"
    if as_json:
        scope = str(reply.scope) if reply.answer is Answer.YES else None
        sys.stdout.write(json.dumps({"id": question.id, "answer": str(reply.answer), "scope": scope}) + "\n")
    sys.stderr.write(printable(f"doorward: {said}: {question.subject}") + "\n")
    return 0


def _scope(parsed: Parsed) -> Scope:
    given = [scope for scope in Scope if parsed.has(str(scope))]
    if len(given) > 1:
        raise UsageError("doorward approvals allow: --once, --session and --always exclude each other")
    return given[0] if given else Scope.ONCE


def _found(home: Home, text: str) -> Question:
    """The question of that id, or whose id alone begins so."""
    questions = waiting(home)
    matches: Callable[[Question], bool] = lambda question: question.id.startswith(text.lower())  # noqa: E731
    found = [question for question in questions if question.id == text] or list(filter(matches, questions))
    if len(found) == 1 and text:
        return found[0]
    what = f"several begin with {text!r}" if found else f"there is no question {text!r}"
    hint = ", ".join(question.id for question in questions[:5]) or "nothing waits for an answer"
    raise UsageError(printable(f"doorward approvals: {what}; {hint}"))


def _command(question: Question) -> str:
    from doorward.sessions.items import command_line

    text = command_line(question.argv)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _out(text: str) -> None:
    sys.stdout.write(printable(text) + "\n")

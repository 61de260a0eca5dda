"""`doorward approvals`: what waits, shown and answered."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from doorward.commands import approvals
from doorward.commands.dispatch import guarded
from doorward.gates.answer import Answer, Reply, Scope
from doorward.pending import Pending, wait_for
from doorward.question import Question
from doorward.sessions.home import Home

Run = Callable[..., tuple[int, str, str]]
RULE = 'prefix_rule(pattern=["npm", "test"], decision="allow")'
AT = "2026-01-02T03:04:05.006Z"
NPM = Question("aa11", "shell", ("npm", "test"), "/p", "approval", AT, 300, ("why",), RULE, "note")
CURL = NPM._replace(
    id="aa22", argv=("curl", "\x1b[2J"), asked_at="2026-01-02T03:04:06.006Z", rule="", rule_note="a tool"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))
    made = Home(str(tmp_path / "home"))
    made.ensure()
    return made


@pytest.fixture
def run(home: Home, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*args: str) -> tuple[int, str, str]:
        status = guarded(approvals.main, list(args))
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


@pytest.fixture
def asked(home: Home) -> Iterator[list[Reply | None]]:
    """Both questions wait; the answers, in their order, as they come."""
    replies: list[Reply | None] = []

    def refuse(reply: Reply) -> str:
        return "a tool" if reply.scope is Scope.ALWAYS else ""

    pendings = [Pending(home, NPM, lambda reply: ""), Pending(home, CURL, refuse)]
    threads = [
        threading.Thread(target=lambda pending=pending: replies.append(wait_for(pending, 20, None)), daemon=True)  # type: ignore[misc]
        for pending in pendings
    ]
    for thread in threads:
        thread.start()
    yield replies
    for pending in pendings:
        if pending.reply is None:
            approvals.answer(home, pending.question, Reply(Answer.NO))
    for thread in threads:
        thread.join(20)
    for pending in pendings:
        pending.close()


def test_the_list_is_oldest_first_and_has_the_documented_keys(run: Run, asked: list[Reply | None]) -> None:
    status, out, _ = run("list", "--json")
    assert status == 0
    assert json.loads(out) == [NPM.row(), CURL.row()]
    assert list(json.loads(out)[0]) == ["id", "kind", "argv", "cwd", "gate", "asked_at"]
    lines = run()[1].splitlines()
    assert lines[0] == "aa11  03:04:05  approval   npm test  (/p)" and "\x1b" not in lines[1]


def test_show_says_what_always_would_write(run: Run, asked: list[Reply | None]) -> None:
    assert f"--always   {RULE}" in run("show", "aa11")[1]
    assert "--always   is not offered: a tool" in run("show", "aa22")[1]
    assert json.loads(run("show", "--json", "aa11")[1]) == NPM.document()


@pytest.mark.parametrize(
    ("args", "reply"),
    [
        (("allow", "aa11"), Reply(Answer.YES)),
        (("allow", "--once", "aa1"), Reply(Answer.YES)),
        (("allow", "--session", "aa11"), Reply(Answer.YES, Scope.SESSION)),
        (("allow", "aa11", "--always"), Reply(Answer.YES, Scope.ALWAYS)),
        (("deny", "AA11"), Reply(Answer.NO)),
    ],
)
def test_an_answer_reaches_who_waits(run: Run, asked: list[Reply | None], args: tuple[str, ...], reply: Reply) -> None:
    status, out, err = run(*args, "--json")
    assert status == 0
    assert json.loads(out) == {
        "id": "aa11",
        "answer": str(reply.answer),
        "scope": str(reply.scope) if reply.answer is Answer.YES else None,
    }
    assert (RULE in err) is (reply.scope is Scope.ALWAYS), "a rule is shown before it is written"
    assert [row["id"] for row in json.loads(run("list", "--json")[1])] == ["aa22"]


def test_always_is_refused_where_it_would_open_everything(run: Run, asked: list[Reply | None]) -> None:
    """P-AP-20"""
    status, _, err = run("allow", "--always", "aa22")
    assert status == 2 and "a tool" in err
    assert len(json.loads(run("list", "--json")[1])) == 2, "it still waits"


@pytest.mark.parametrize(
    "args",
    [
        *(("allow",), ("allow", "aa"), ("allow", "bb"), ("allow", ""), ("deny", "--always", "aa11"), ("nod", "aa11")),
        *(("allow", "--once", "--session", "aa11"), ("list", "aa11"), ("allow", "aa11", "aa22")),
    ],
)
def test_what_makes_no_sense_answers_nothing(run: Run, asked: list[Reply | None], args: tuple[str, ...]) -> None:
    status, _, err = run(*args)
    assert status == 2 and err
    assert len(json.loads(run("list", "--json")[1])) == 2


def test_an_empty_queue_is_an_empty_list(run: Run) -> None:
    assert run("list", "--json") == (0, "[]\n", "")
    status, out, err = run()
    assert (status, out) == (0, "") and "nothing waits" in err
    assert run("allow", "aa11")[0] == 2

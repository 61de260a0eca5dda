"""The pending queue: a question that waits, its one answer, and what is left when somebody dies."""

from __future__ import annotations

import json
import os
import select
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from doorward.gates.answer import Answer, Reply, Scope
from doorward.pending import Pending, wait_for
from doorward.pending_queue import TooLate, answer, waiting
from doorward.question import Question, new_id, question_from
from doorward.sessions.home import Home

YES = Reply(Answer.YES)


def question(**fields: object) -> Question:
    made = Question(
        id=new_id(),
        kind="shell",
        argv=("rm", "x\udcff"),
        cwd="/srv/project",
        gate="approval",
        asked_at="2026-01-02T03:04:05.006Z",
        timeout_s=5.0,
        why=("it deletes",),
        rule_note="not for this",
    )
    return made._replace(**fields)  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """One whose sockets are further down than unix(7) can name."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    made = Home(str(deep))
    made.ensure()
    return made


Ask = Callable[..., Pending]


@pytest.fixture
def ask(home: Home) -> Iterator[Ask]:
    opened: list[Pending] = []

    def make(take: Callable[[Reply], str] = lambda reply: "", **fields: object) -> Pending:
        opened.append(Pending(home, question(**fields), take))
        return opened[-1]

    yield make
    for pending in opened:
        pending.close()


def in_the_background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_question_is_there_for_its_owner_alone(home: Home, ask: Ask) -> None:
    before = os.umask(0)
    try:
        pending = ask()
    finally:
        os.umask(before)
    assert waiting(home) == [pending.question]
    assert stat.S_IMODE(os.stat(home.approvals).st_mode) == 0o700
    modes = {name: stat.S_IMODE(os.stat(f"{home.approvals}/{name}").st_mode) for name in os.listdir(home.approvals)}
    assert modes == {f"{pending.question.id}.json": 0o600, f"{pending.question.id}.sock": 0o600}
    assert pending.question.row() == {
        "id": pending.question.id,
        "kind": "shell",
        "argv": ["rm", "x\udcff"],
        "cwd": "/srv/project",
        "gate": "approval",
        "asked_at": "2026-01-02T03:04:05.006Z",
    }
    pending.close()
    assert waiting(home) == [] and os.listdir(home.approvals) == []


@pytest.mark.parametrize("reply", [YES, Reply(Answer.YES, Scope.SESSION), Reply(Answer.NO)])
def test_an_answer_wakes_who_waits_and_is_acknowledged(home: Home, ask: Ask, reply: Reply) -> None:
    taken: list[Reply] = []

    def take(given: Reply) -> str:
        assert waiting_file(home) is not None, "it is written down while the question still stands"
        taken.append(given)
        return ""

    pending = ask(take)
    told: list[str] = []
    thread = in_the_background(lambda: told.append(answer(home, pending.question, reply)))
    assert wait_for(pending, 20, None) == reply
    thread.join(20)
    assert (taken, told) == ([reply], [""])
    assert waiting_file(home) is None
    with pytest.raises(TooLate):
        answer(home, pending.question, YES)


def waiting_file(home: Home) -> str | None:
    return next((name for name in os.listdir(home.approvals) if name.endswith(".json")), None)


def test_an_answer_that_cannot_be_taken_leaves_the_question(home: Home, ask: Ask) -> None:
    pending = ask(lambda reply: "not that far" if reply.scope is Scope.ALWAYS else "")
    told: list[str] = []

    def person() -> None:
        told.append(answer(home, pending.question, Reply(Answer.YES, Scope.ALWAYS)))
        told.append(answer(home, pending.question, YES))

    thread = in_the_background(person)
    assert wait_for(pending, 20, None) == YES
    thread.join(20)
    assert told == ["not that far", ""]


def test_of_many_answers_at_once_one_is_taken(home: Home, ask: Ask) -> None:
    pending = ask()
    told: list[str] = []
    barrier = threading.Barrier(8)

    def person(reply: Reply) -> None:
        barrier.wait(20)
        try:
            told.append(answer(home, pending.question, reply))
        except TooLate:
            told.append("too late")

    threads = [in_the_background(lambda n=n: person(Reply([Answer.YES, Answer.NO][n % 2]))) for n in range(8)]  # type: ignore[misc]
    assert wait_for(pending, 20, None) is not None
    pending.close()
    for thread in threads:
        thread.join(20)
    assert sorted(told) == ["", *["too late"] * 7]


def test_nobody_in_time_is_no_answer(ask: Ask) -> None:
    assert wait_for(ask(), 0.01, None) is None


def test_a_caller_that_leaves_ends_the_wait(ask: Ask) -> None:
    import socket

    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        assert wait_for(ask(), 60, ours.fileno()) is None


@pytest.mark.parametrize(
    "line", [b"{}", b"yes", b'{"answer":"maybe","scope":"once"}', b'{"answer":"nobody","scope":"once"}', b"\xff", b"[]"]
)
def test_nonsense_answers_nothing(home: Home, ask: Ask, line: bytes) -> None:
    from doorward.pending_queue import _connected

    pending = ask()
    with _connected(home, pending.question.id) as connection:
        connection.settimeout(20)
        connection.sendall(line + b"\n")
        pump(pending)
        assert json.loads(connection.recv(4096)) == {"taken": False, "why": "that is no answer"}
    assert pending.reply is None and waiting(home) == [pending.question]


def test_an_answer_from_another_process_namespace_does_not_count(
    home: Home, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = ask()
    monkeypatch.setattr("doorward.pending.os.readlink", lambda path: path)  # /proc/PID/… is not /proc/self/…
    told: list[str] = []
    thread = in_the_background(lambda: told.append(answer(home, pending.question, YES)))
    pump(pending)
    thread.join(20)
    assert told == ["an answer from inside a sandbox does not count"]
    assert pending.reply is None


def test_who_says_nothing_or_too_much_holds_nobody_up(home: Home, ask: Ask) -> None:
    from doorward.pending_queue import _connected

    pending = ask()
    with _connected(home, pending.question.id) as silent, _connected(home, pending.question.id) as talker:
        talker.sendall(b"x" * 10_000)
        pump(pending)
        assert silent.fileno() >= 0
        told: list[str] = []
        thread = in_the_background(lambda: told.append(answer(home, pending.question, YES)))
        assert wait_for(pending, 20, None) == YES
        thread.join(20)
        assert told == [""]


def pump(pending: Pending) -> None:
    """Everything that has arrived."""
    for _ in range(10):
        readable, _, _ = select.select(pending.descriptors(), [], [], 0.1 if pending.reply is None else 0)
        if not readable:
            return
        for descriptor in readable:
            pending.ready(descriptor)


def test_what_a_dead_run_left_is_tidied_away(home: Home, ask: Ask) -> None:
    child = os.fork()
    if child == 0:
        try:
            Pending(home, question(id="dead"), lambda reply: "")
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert {"dead.json", "dead.sock"} <= set(os.listdir(home.approvals))
    alive = ask()
    assert waiting(home) == [alive.question]
    assert not {"dead.json", "dead.sock"} & set(os.listdir(home.approvals))
    with pytest.raises(TooLate):
        answer(home, question(id="dead"), YES)


def test_files_that_are_no_questions_are_not_taken_for_one(home: Home, ask: Ask) -> None:
    pending = ask()
    Path(home.approvals, "x.json").write_text("{}")
    Path(home.approvals, "y.json").symlink_to(Path(home.approvals, f"{pending.question.id}.json"))
    assert waiting(home) == [pending.question]


def test_a_question_survives_its_document() -> None:
    asked = question(kind="network", host="::1", port=443, protocol="https_connect", rule="[::1]:443")
    assert question_from(json.loads(json.dumps(asked.document()))) == asked
    assert asked.subject == "[::1]:443 (https_connect)"
    assert len({new_id() for _ in range(1000)}) == 1000


def test_a_limit_of_years_is_no_trouble(home: Home, ask: Ask) -> None:
    pending = ask()
    told: list[str] = []
    thread = in_the_background(lambda: told.append(answer(home, pending.question, YES)))
    assert wait_for(pending, 1e9, None) == YES
    thread.join(20)
    assert told == [""]

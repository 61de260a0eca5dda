"""Rollouts that the real Codex wrote (`codex/`), taken over: read, searched, gone on with, forked, verified."""

import os
import shutil
from pathlib import Path

import pytest

from doorward.sessions import items
from doorward.sessions.filters import Filter
from doorward.sessions.folders import Problem
from doorward.sessions.fork import fork
from doorward.sessions.history import session_lines
from doorward.sessions.home import Home, StoreError
from doorward.sessions.importing import Imported, import_rollouts
from doorward.sessions.listing import list_sessions
from doorward.sessions.lookup import find_session
from doorward.sessions.mirror import mirrored_listing
from doorward.sessions.projection import derive_messages
from doorward.sessions.rollout import Rollout
from doorward.sessions.show import render
from doorward.sessions.verify_session import verify_session

CODEX = Path(__file__).parent / "codex"
LEGACY, LEGACY_FORK, PAGINATED, PAGINATED_FORK = (
    "01a22a6e-78dd-7792-a7b3-0c124dbb4e6d",
    "01a22a6e-7959-7942-bb11-867257639f79",
    "01a22a6e-7997-7b71-ba2d-0596d009b374",
    "01a22a6e-7a0d-7c01-8ed0-07dd7732ae9c",
)


@pytest.fixture
def imported(home: Home) -> Home:
    found = list(import_rollouts(home, str(CODEX)))
    assert all(isinstance(each, Imported) for each in found), found
    return home


def shown(home: Home, session: str) -> str:
    found = find_session(home, session)
    return render(session_lines(home, found.id, found.path))


def asked(home: Home, session: str) -> list[str]:
    """What the user said, of what the model sees."""
    texts = [
        message["content"][0]["text"]
        for message in derive_messages(session, home)
        if message.get("type") == "message" and message["role"] == "user"
    ]
    return [text for text in texts if not text.startswith("<")]


def test_each_is_listed_with_its_turns(imported: Home) -> None:
    rows = {each.id: (each.turns, each.archived, each.cwd) for each in list_sessions(imported, archived=None).sessions}
    assert rows == {
        LEGACY: (2, False, "/project"),
        LEGACY_FORK: (3, True, "/project"),
        PAGINATED: (2, False, "/project"),
        PAGINATED_FORK: (3, False, "/project"),
    }


@pytest.mark.parametrize(
    ("session", "questions"),
    [
        (LEGACY, ["hello legacy one", "hello legacy two"]),
        (LEGACY_FORK, ["hello legacy one", "hello legacy two", "forked legacy"]),
        (PAGINATED, ["hello paginated one", "hello paginated two"]),
        (PAGINATED_FORK, ["hello paginated one", "hello paginated two", "forked paginated"]),
    ],
)
def test_each_is_shown_projected_and_verified(imported: Home, session: str, questions: list[str]) -> None:
    text = shown(imported, session)
    for number, question in enumerate(questions, 1):
        assert f"turn {number}  {question}\n" in text
    assert text.count("agent: Hello from the stub.") == len(questions)
    assert asked(imported, session) == questions
    found = find_session(imported, session)
    assert verify_session(imported, found.id, found.path).intact


def test_names_come_from_the_index_of_codex(imported: Home) -> None:
    assert find_session(imported, "legacy talk").id == LEGACY
    assert find_session(imported, "paginated talk").id == PAGINATED
    assert find_session(imported, PAGINATED_FORK).name is None


def test_an_index_that_is_damaged_loses_names_only(home: Home, tmp_path: Path) -> None:
    shutil.copytree(CODEX, tmp_path / "codex")
    (tmp_path / "codex" / "session_index.jsonl").write_bytes(
        b'{"id": 7}\nnot json\n\xff\n[]\n'
        + f'{{"id": "{LEGACY}", "thread_name": "old"}}\n{{"id": "{LEGACY}", "thread_name": "new"}}\n'.encode()
        + f'{{"id": "{PAGINATED}", "thread_name": "\\u001b[31m"}}\n'.encode()
    )
    found = list(import_rollouts(home, str(tmp_path / "codex" / "sessions")))
    assert [isinstance(each, Imported) for each in found] == [True] * 3
    assert find_session(home, LEGACY).name == "new"
    assert find_session(home, PAGINATED).name is None


def test_they_are_found_by_what_was_said(imported: Home) -> None:
    found = mirrored_listing(imported, archived=None, only=Filter(search="forked")).sessions
    assert {each.id for each in found} == {LEGACY_FORK, PAGINATED_FORK}


def test_they_are_taken_over_byte_for_byte(imported: Home) -> None:
    (source,) = CODEX.rglob(f"*{PAGINATED}.jsonl")
    stored = Path(find_session(imported, PAGINATED).path).read_bytes()
    assert stored.startswith(source.read_bytes())
    assert stored.count(b"\n") == source.read_bytes().count(b"\n") + 2


def test_a_change_after_the_import_shows(imported: Home) -> None:
    found = find_session(imported, LEGACY)
    data = Path(found.path).read_bytes()
    Path(found.path).write_bytes(data.replace(b"hello legacy two", b"hello legacy 222"))
    finding = verify_session(imported, found.id, found.path).finding
    assert finding is not None
    assert finding.what == "changed"


def test_twice_adds_nothing(imported: Home) -> None:
    again = list(import_rollouts(imported, str(CODEX)))
    assert [isinstance(each, Problem) and "is here already" in each.detail for each in again] == [True] * 4
    assert len(list_sessions(imported, archived=None).sessions) == 4


@pytest.mark.parametrize("session", [LEGACY, PAGINATED_FORK])
def test_they_are_gone_on_with_and_forked(imported: Home, session: str) -> None:
    found = find_session(imported, session)
    with Rollout.open(imported, found.path) as rollout:
        turn = rollout.turns + 1
        for item in items.turn_start(
            rollout.id, turn, argv=["true"], cwd="/project", approval_policy="never", sandbox_policy={}
        ):
            rollout.append(*item)
        rollout.append(*items.turn_end(rollout.id, turn))
    assert f"turn {turn}  true\n" in shown(imported, session)
    early = fork(imported, found, at=2)
    assert len(asked(imported, early.id)) == 1
    late = fork(imported, found, at=turn)
    assert late.turns == turn - 1
    assert verify_session(imported, late.id, late.path).finding is None


def test_one_that_ends_in_the_middle(home: Home, tmp_path: Path) -> None:
    """P-RS-01, P-RS-14: a torn line and an open turn, as a crash of Codex leaves them."""
    (source,) = CODEX.rglob(f"*{LEGACY}.jsonl")
    lines = source.read_bytes().splitlines(keepends=True)
    (tmp_path / source.name).write_bytes(b"".join(lines[:-1]) + lines[-1][:30])
    (result,) = import_rollouts(home, str(tmp_path))
    assert isinstance(result, Imported)
    text = shown(home, LEGACY)
    assert "turn 2  hello legacy two\n" in text
    assert "interrupted" in text
    assert "is skipped" in text


def test_what_is_no_rollout_is_told_and_the_rest_taken(home: Home, tmp_path: Path) -> None:
    (source,) = CODEX.rglob(f"*{LEGACY}.jsonl")
    shutil.copy(source, tmp_path)
    bad = {
        PAGINATED: b"",
        LEGACY_FORK: b'{"type":"message"}\n',
    }
    for session, content in bad.items():
        (tmp_path / f"rollout-2026-11-30T03-10-12-{session}.jsonl").write_bytes(content)
    (tmp_path / f"rollout-2026-11-30T03-10-12-{PAGINATED_FORK}.jsonl.zst").write_bytes(b"no zstd")
    os.symlink(source, tmp_path / "rollout-2026-11-30T03-10-12-01a22a6e-7a0d-7c01-8ed0-000000000000.jsonl")
    results = list(import_rollouts(home, str(tmp_path)))
    assert [each.id for each in results if isinstance(each, Imported)] == [LEGACY]
    assert len([each for each in results if isinstance(each, Problem)]) == 4
    assert [each.id for each in list_sessions(home).sessions] == [LEGACY]
    (tmp_path / "nothing").mkdir()
    with pytest.raises(StoreError, match="holds no rollout"):
        list(import_rollouts(home, str(tmp_path / "nothing")))


def test_a_fork_whose_source_is_not_here(home: Home, tmp_path: Path) -> None:
    (source,) = CODEX.rglob(f"*{PAGINATED_FORK}*")
    shutil.copy(source, tmp_path)
    (result,) = import_rollouts(home, str(tmp_path))
    assert isinstance(result, Imported)
    assert result.base == PAGINATED
    text = shown(home, PAGINATED_FORK)
    assert "which is gone" in text
    assert "forked paginated" in text
    assert asked(home, PAGINATED_FORK) == ["forked paginated"]

"""Listing a home: everything readable is listed, everything else is told in a line."""

import json
import os
from collections.abc import Callable
from pathlib import Path

from doorward.sessions import items
from doorward.sessions.home import Home
from doorward.sessions.listing import list_sessions
from doorward.sessions.rollout import Rollout

IDS = [f"019ad1d2-0000-7000-8000-00000000000{digit}" for digit in range(10)]


def meta(index: int, **more: object) -> bytes:
    time = f"2025-11-29T10:00:0{index}.000Z"
    payload = {"id": IDS[index], "timestamp": time, "cwd": "/w", "name": f"n{index}", **more}
    return json.dumps({"timestamp": "t", "type": "session_meta", "payload": payload}).encode()


def test_what_a_session_is(home: Home) -> None:
    with Rollout.create(home, cwd="/work", name="first") as rollout:
        for item in items.turn_start(
            rollout.id, 1, argv=["a"], cwd="/work", approval_policy="never", sandbox_policy={"type": "read-only"}
        ):
            rollout.append(*item)
        rollout.append(*items.refusal(1, {}))
        rollout.append(*items.refusal(1, {}))
        last = rollout.append(*items.turn_end(rollout.id, 1))
    (session,) = list_sessions(home).sessions
    assert list(session.to_json()) == [
        "id",
        "name",
        "cwd",
        "created_at",
        "updated_at",
        "archived",
        "turns",
        "refused",
    ]
    assert session.to_json() | {"created_at": ""} == {
        "id": rollout.id,
        "name": "first",
        "cwd": "/work",
        "created_at": "",
        "updated_at": last.timestamp,
        "archived": False,
        "turns": 1,
        "refused": 2,
    }
    assert session.created_at <= session.updated_at


def test_a_rename_counts_and_the_last_one_does(home: Home) -> None:
    with Rollout.create(home, cwd="/work", name="first") as rollout:
        rollout.append(*items.renamed(rollout.id, "second"))
        rollout.append(*items.renamed(rollout.id, "third"))
        rollout.append("network", {})
    (session,) = list_sessions(home).sessions
    assert session.name == "third"


def test_newest_first_and_so_many(home: Home, new: Callable[..., str]) -> None:
    paths = [new(name=str(index)) for index in range(5)]
    listing = list_sessions(home)
    assert [session.path for session in listing.sessions] == paths[::-1]
    assert [session.name for session in list_sessions(home, limit=2).sessions] == ["4", "3"]


def test_one_bad_file_hides_nothing(home: Home, write: Callable[..., str]) -> None:
    """P-RS-04: mark, CRLF, an empty file, a directory, a link, a FIFO, garbage, a wrong name."""
    write(IDS[0], b"\xef\xbb\xbf" + meta(0) + b"\n")
    write(IDS[1], meta(1) + b"\r\n" + b'{"type":"event_msg","payload":{"type":"task_started"}}\r\n')
    write(IDS[2], b"")
    folder = os.path.dirname(write(IDS[3], meta(3) + b"\n"))
    os.mkdir(f"{folder}/rollout-x-{IDS[4]}.jsonl")
    os.symlink(f"{folder}/rollout-2025-11-29T10-00-00-{IDS[0]}.jsonl", f"{folder}/rollout-x-{IDS[5]}.jsonl")
    os.mkfifo(f"{folder}/rollout-x-{IDS[6]}.jsonl")
    Path(f"{folder}/notes.jsonl").write_text("{}")
    Path(f"{folder}/README").write_text("not ours to judge")
    write(IDS[7], b"garbage\n")
    listing = list_sessions(home)
    assert [(session.id, session.name, session.turns) for session in listing.sessions] == [
        (IDS[3], "n3", 0),
        (IDS[1], "n1", 1),
        (IDS[7], None, 0),
        (IDS[0], "n0", 0),
    ]
    told = {os.path.basename(problem.path): problem.detail for problem in listing.problems}
    assert told == {
        f"rollout-2025-11-29T10-00-00-{IDS[2]}.jsonl": "empty: its session never started",
        f"rollout-x-{IDS[4]}.jsonl": "a directory, not a rollout",
        f"rollout-x-{IDS[5]}.jsonl": "a link, and links are not read",
        f"rollout-x-{IDS[6]}.jsonl": "not a regular file, not a rollout",
        "notes.jsonl": "not named rollout-TIME-UUID.jsonl",
        f"rollout-2025-11-29T10-00-00-{IDS[7]}.jsonl": "has no readable session_meta at its start",
    }
    assert all("\n" not in problem.sentence for problem in listing.problems)


def test_a_file_named_for_another_id(home: Home, write: Callable[..., str]) -> None:
    write(IDS[0], meta(1) + b"\n")
    listing = list_sessions(home)
    assert [session.id for session in listing.sessions] == [IDS[0]]
    assert listing.problems[0].detail == f"names itself {IDS[1]}; the id in its file name counts"


def test_one_id_twice(home: Home, write: Callable[..., str]) -> None:
    newer = write(IDS[0], meta(0) + b"\n", day="2025/11/30")
    older = write(IDS[0], meta(0) + b"\n", day="2025/11/29")
    listing = list_sessions(home)
    assert [session.path for session in listing.sessions] == [newer]
    assert [(problem.path, problem.detail) for problem in listing.problems] == [
        (older, f"has the id of {newer}, which is listed")
    ]


def test_archived_ones(home: Home, write: Callable[..., str]) -> None:
    active = write(IDS[0], meta(0) + b"\n")
    os.makedirs(home.archived)
    os.rename(write(IDS[1], meta(1) + b"\n"), f"{home.archived}/rollout-2025-11-29T10-00-00-{IDS[1]}.jsonl")
    assert [(s.id, s.archived) for s in list_sessions(home).sessions] == [(IDS[0], False)]
    assert [(s.id, s.archived) for s in list_sessions(home, archived=True).sessions] == [(IDS[1], True)]
    assert [(s.id, s.archived) for s in list_sessions(home, archived=None).sessions] == [
        (IDS[1], True),
        (IDS[0], False),
    ]
    assert active


def test_an_empty_home(home: Home) -> None:
    assert list_sessions(home) == ((), ())


def test_a_clock_that_went_back(home: Home, write: Callable[..., str]) -> None:
    """The time in the first record counts, wherever the file lies."""
    write(IDS[1], meta(1) + b"\n", day="2025/01/01")
    write(IDS[0], meta(0) + b"\n", day="2026/01/01")
    assert [session.id for session in list_sessions(home).sessions] == [IDS[1], IDS[0]]

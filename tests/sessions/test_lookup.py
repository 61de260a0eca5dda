"""Finding a session by what a person typed."""

import json
import os
from collections.abc import Callable

import pytest

from doorward.sessions import items, lookup
from doorward.sessions.home import Home
from doorward.sessions.lookup import SessionAmbiguous, SessionNotFound, find_session
from doorward.sessions.rollout import Rollout

New = Callable[..., str]


def id_of(path: str) -> str:
    return path[-len("019ad1d2-0000-7000-8000-000000000001.jsonl") : -len(".jsonl")]


def archive(home: Home, path: str) -> str:
    os.makedirs(home.archived, exist_ok=True)
    moved = f"{home.archived}/{os.path.basename(path)}"
    os.rename(path, moved)
    return moved


def test_by_id_in_any_case(home: Home, new: New) -> None:
    path = new(name="x")
    for text in (id_of(path), id_of(path).upper()):
        found = find_session(home, text)
        assert found == (id_of(path), "x", path, False)


def test_by_id_without_a_search(home: Home, new: New, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an id's file lies is told by the id."""
    path = new()
    monkeypatch.setattr(os, "scandir", lambda path: pytest.fail("a folder was read"))
    assert find_session(home, id_of(path)).path == path


def test_by_id_where_it_should_not_lie(home: Home, new: New) -> None:
    """P-RS-10: moved within the store, or made by a program with other habits."""
    path = new()
    moved = f"{home.sessions}/2001/01/01/{os.path.basename(path)}"
    os.renames(path, moved)
    assert find_session(home, id_of(path)).path == moved


def test_by_name_on_the_last_page(home: Home, new: New) -> None:
    """P-RS-15: 300 sessions, the name on the oldest."""
    wanted = new(name="wanted")
    for index in range(299):
        new(name=f"other {index}")
    assert find_session(home, "wanted").path == wanted


def test_names_are_exact(home: Home, new: New) -> None:
    new(name="Build")
    for text in ("build", "Buil", "Build ", ""):
        with pytest.raises(SessionNotFound) as error:
            find_session(home, text)
        assert error.value.remedy == "doorward sessions --all lists them"


def test_a_newer_one_without_a_record_hides_nothing(home: Home, new: New, write: Callable[..., str]) -> None:
    """P-RS-15."""
    good = new(name="x")
    write("ffffffff-ffff-7000-8000-000000000001", b"", day="2099/01/01")
    write("ffffffff-ffff-7000-8000-000000000002", b'{"type":"session_meta","payload":{"name":"x"', day="2099/01/02")
    assert find_session(home, "x").path == good


def test_two_with_one_name_are_told_with_their_ids(home: Home, new: New) -> None:
    """P-RS-15."""
    paths = [new(name="x"), new(name="y"), new(name="x")]
    with pytest.raises(SessionAmbiguous) as error:
        find_session(home, "x")
    assert set(error.value.ids) == {id_of(paths[0]), id_of(paths[2])}
    assert str(error.value) == "2 sessions are named 'x'"
    assert isinstance(error.value, LookupError)


def test_an_id_beats_a_name(home: Home, new: New) -> None:
    """P-RS-15: one session is named with the id of another."""
    path = new(name="real")
    new(name=id_of(path))
    assert find_session(home, id_of(path)).name == "real"


def test_a_name_that_looks_like_an_id_is_still_a_name(home: Home, new: New) -> None:
    path = new(name="019ad1d2-0000-7000-8000-000000000001")
    assert find_session(home, "019ad1d2-0000-7000-8000-000000000001").path == path


def test_the_last_name_counts(home: Home, new: New) -> None:
    path = new(name="old")
    with Rollout.open(home, path) as rollout:
        rollout.append(*items.renamed(rollout.id, "new"))
    assert find_session(home, "new").path == path
    with pytest.raises(SessionNotFound):
        find_session(home, "old")


def test_an_archived_one_is_found_and_says_so(home: Home, new: New) -> None:
    path = archive(home, new(name="x"))
    assert find_session(home, "x") == (id_of(path), "x", path, True)
    assert find_session(home, id_of(path)).archived
    with pytest.raises(SessionNotFound):
        find_session(home, "x", archived=False)


def test_an_active_one_is_preferred(home: Home, new: New) -> None:
    old = archive(home, new(name="x"))
    active = new(name="x")
    assert find_session(home, "x").path == active
    assert find_session(home, "x", archived=True).path == old


def test_one_id_in_two_files(home: Home, write: Callable[..., str]) -> None:
    identifier = "019ad1d2-0000-7000-8000-000000000001"
    record = json.dumps({"type": "session_meta", "payload": {"id": identifier}}).encode() + b"\n"
    paths = {write(identifier, record, day="2025/01/01"), write(identifier, record, day="2025/01/02")}
    with pytest.raises(SessionAmbiguous) as error:
        find_session(home, identifier)
    assert set(error.value.paths) == paths
    assert error.value.ids == (identifier,)


def test_a_file_nobody_can_read_is_found_by_its_id(home: Home, write: Callable[..., str]) -> None:
    """Opening it will say what is wrong."""
    path = write("019ad1d2-0000-7000-8000-000000000001", b"")
    assert find_session(home, "019ad1d2-0000-7000-8000-000000000001").path == path


@pytest.mark.parametrize("name", ["plain", "ünï", 'q"uo\\te', "a/b", "tab\tname", "\udcff", "日本"])
def test_whatever_the_name_is_written_with(home: Home, new: New, name: str) -> None:
    """In the first record, in a rename far from it, and before a torn end."""
    first = new(3, name=name)
    assert find_session(home, name).path == first
    with Rollout.open(home, first) as rollout:
        rollout.append(*items.renamed(rollout.id, "other"))
    second = new(1)
    with Rollout.open(home, second) as rollout:
        rollout.append(*items.renamed(rollout.id, name))
        for _ in range(50):
            rollout.append("network", {"text": "x" * 1000})
    with open(second, "ab") as file:
        file.write(b'{"torn')
    assert find_session(home, name).path == second
    assert find_session(home, "other").path == first


def test_files_without_the_name_are_hardly_looked_at(home: Home, new: New, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20,000 sessions by name in half a second: only those that hold its bytes are read as sessions."""
    for number in range(20):
        new(1, name=f"name-{number}")
    read = []
    real = lookup.summarise
    monkeypatch.setattr(lookup, "summarise", lambda found: read.append(found.path) or real(found))
    found = find_session(home, "name-7")
    assert read == [found.path]

"""Walking the folders of rollouts."""

import os
from collections.abc import Callable

import pytest

from doorward.sessions.folders import Found, Problem, expected, rollouts
from doorward.sessions.home import Home
from doorward.sessions.ids import uuid7
from doorward.sessions.listing import list_sessions


def test_a_folder_that_cannot_be_read(home: Home, new: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    new()
    scandir = os.scandir

    def refusing(path: str) -> object:
        if path.endswith("/bad"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    os.mkdir(f"{home.sessions}/bad")
    monkeypatch.setattr(os, "scandir", refusing)
    listing = list_sessions(home)
    assert len(listing.sessions) == 1
    assert [problem.detail for problem in listing.problems] == ["cannot be read: Permission denied"]


def test_a_linked_folder_is_not_followed(home: Home, new: Callable[..., str]) -> None:
    new()
    os.symlink(home.sessions, f"{home.sessions}/loop")
    assert len(list_sessions(home).sessions) == 1


def test_newest_first(home: Home) -> None:
    made = []
    for day in ("2024/12/31", "2025/01/01", "2025/01/02"):
        os.makedirs(f"{home.sessions}/{day}")
        for hour in ("09", "10"):
            path = f"{home.sessions}/{day}/rollout-{day.replace('/', '-')}T{hour}-00-00-{uuid7()}.jsonl"
            open(path, "w").close()
            made.append(path)
    assert [found.path for found in rollouts(home, archived=False)] == made[::-1]


def test_archives_may_be_flat_or_not(home: Home) -> None:
    for folder in (home.archived, f"{home.archived}/2025/01/01"):
        os.makedirs(folder, exist_ok=True)
        open(f"{folder}/rollout-2025-01-01T00-00-00-{uuid7()}.jsonl", "w").close()
    assert [found.archived for found in rollouts(home, archived=True) if isinstance(found, Found)] == [True, True]


def test_too_deep_is_not_ours(home: Home) -> None:
    folder = f"{home.sessions}/2025/01/01/deeper"
    os.makedirs(folder)
    open(f"{folder}/rollout-x-{uuid7()}.jsonl", "w").close()
    assert list(rollouts(home, archived=False)) == []


def test_a_home_that_is_a_file(home: Home) -> None:
    os.makedirs(home.path)
    open(home.sessions, "w").close()
    (problem,) = rollouts(home, archived=False)
    assert isinstance(problem, Problem)
    assert problem.sentence == f"{home.sessions}: cannot be read: Not a directory"


def test_where_an_id_is_expected(home: Home, new: Callable[..., str]) -> None:
    path = new()
    identifier = path[-len("019ad1d2-0000-7000-8000-000000000001.jsonl") : -len(".jsonl")]
    assert list(expected(home, identifier)) == [Found(identifier, path, False)]
    os.makedirs(home.archived)
    archived = f"{home.archived}/{os.path.basename(path)}"
    os.rename(path, archived)
    assert list(expected(home, identifier)) == [Found(identifier, archived, True)]
    os.unlink(archived)
    os.symlink("/dev/null", archived)
    assert list(expected(home, identifier)) == []
    assert list(expected(home, "00000000-0000-4000-8000-000000000000")) == []

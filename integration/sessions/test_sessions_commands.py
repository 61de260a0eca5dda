"""`doorward sessions`, `show` and `verify` on rollouts that real runs wrote."""

from __future__ import annotations

from typing import Any

KEYS = ["id", "name", "cwd", "created_at", "updated_at", "archived", "turns", "refused"]


def test_sessions_lists_newest_first_with_every_key(doorward: Any) -> None:
    first = doorward("run", "--json", "--name", "one", "--", "true").document["session"]
    second = doorward("run", "--json", "--", "curl", "-sS", "http://b.test/").document["session"]
    listed = doorward("sessions", "--json").document
    assert [list(row) for row in listed] == [KEYS, KEYS]
    assert [row["id"] for row in listed] == [second, first]
    assert [(row["name"], row["turns"], row["refused"]) for row in listed] == [(None, 1, 1), ("one", 1, 0)]
    text = doorward("sessions").out.decode()
    assert first in text
    assert "1 refused" in text


def test_verify_finds_the_line_that_was_changed(doorward: Any) -> None:
    session = doorward("run", "--json", "--", "true").document["session"]
    assert doorward("verify", session).status == 0
    (path,) = doorward.rollouts()
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b"allow", b"alloW", 1)
    path.write_bytes(b"".join(lines))
    seen = doorward("verify", session)
    assert seen.status == 1
    assert seen.out.startswith(b"line 5: changed")


def test_a_bad_line_loses_only_itself(doorward: Any) -> None:
    """P-RS-02, through the command line."""
    session = doorward("run", "--json", "--", "true").document["session"]
    (path,) = doorward.rollouts()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b'{"bad \xe6\x87\n', *lines[3:]]))
    seen = doorward("show", "--json", session)
    assert seen.status == 0
    assert seen.out == b"".join(lines)
    assert len(seen.err.splitlines()) == 1


def test_sessions_are_found_by_what_they_did(doorward: Any, origin: Any, tmp_path: Any) -> None:
    first = doorward("run", "--json", *origin.reach(), "--", "curl", "-sS", origin.url()).document["session"]
    second = doorward("run", "--json", "--", "curl", "-sS", "http://b.test/").document["session"]
    named = ("--name", "nightly", "-C", str(tmp_path / "user"))
    third = doorward("run", "--json", *named, "--", "true").document["session"]

    def found(*options: str) -> list[str]:
        return [row["id"] for row in doorward("sessions", "--json", *options).document]

    assert found("--host", "a.test") == [first]
    assert found("--host", "*.test") == [second, first]
    assert found("--refused") == [second]
    assert found("--cwd", str(tmp_path / "user")) == [third]
    assert found("--cwd", str(tmp_path)) == [third, second, first]
    assert found("--search", "curl b.test") == [second]
    assert found("--search", "nightly") == [third]
    assert found("--since", "1h", "--host", "a.test") == [first]
    assert found("--since", "2999-01-01") == []
    assert doorward("archive", first).status == 0
    assert found("--host", "a.test") == []
    assert found("--host", "a.test", "--all") == [first]
    for bad in (("--since", "soon"), ("--search", "!!"), ("--host", "")):
        assert doorward("sessions", *bad).status == 2


def test_a_tail_that_was_cut_after_it_was_listed(doorward: Any) -> None:
    """The head digest that the mirror keeps proves what the file alone cannot."""
    session = doorward("run", "--json", "--", "true").document["session"]
    (path,) = doorward.rollouts()
    whole = path.read_bytes()
    assert b"not provable" in doorward("verify", session).out
    assert doorward("sessions").status == 0
    doorward("sessions", "--refused")
    doorward("sessions")
    assert b"tail proven" in doorward("verify", session).out
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    seen = doorward("verify", session)
    assert seen.status == 1
    assert b": removed" in seen.out
    everything = doorward("verify", "--all", "--json")
    assert everything.status == 1
    assert [row["finding"]["what"] for row in everything.document] == ["removed"]

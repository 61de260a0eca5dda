"""The heads that a listing keeps: they prove a cut tail, move forward only, and nobody waits for them."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.sessions import mirror_file
from doorward.sessions.heads import forget_head, keep_heads, kept_heads
from doorward.sessions.home import Home
from doorward.sessions.listing import list_sessions
from doorward.sessions.mirror import mirrored_listing
from doorward.sessions.rollout import Rollout
from doorward.sessions.verify import verify

New = Callable[..., str]


def test_a_tail_that_was_cut_after_a_listing(home: Home, new: New) -> None:
    path = new(10)
    listed = list_sessions(home).sessions
    keep_heads(home, listed)
    head = kept_heads(home)[listed[0].id]
    assert verify(path, head).tail == "proven"
    lines = Path(path).read_bytes().splitlines(keepends=True)
    Path(path).write_bytes(b"".join(lines[:-1]))
    finding = verify(path, head).finding
    assert finding is not None and finding.what == "removed"
    keep_heads(home, list_sessions(home).sessions)
    assert kept_heads(home)[listed[0].id] == head
    assert "ends before record 10" in mirrored_listing(home).sessions[0].notes[0]


def test_it_moves_with_the_session(home: Home, new: New) -> None:
    path = new(3)
    (listed,) = list_sessions(home).sessions
    keep_heads(home, [listed])
    with Rollout.open(home, path) as rollout:
        line = rollout.append("network", {"turn": 1})
    keep_heads(home, [listed])
    assert kept_heads(home)[listed.id] == (line.ordinal, line.metadata["chain"])


def test_nobody_waits_for_a_busy_index(home: Home, new: New, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-RS-08: the listing is out already."""
    monkeypatch.setattr(mirror_file.connected, "__defaults__", (60.0,))
    new(1)
    mirrored_listing(home)
    new(2)
    holding = sqlite3.connect(home.mirror, isolation_level=None)
    try:
        holding.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        keep_heads(home, list_sessions(home).sessions)
        assert time.monotonic() - started < 60
    finally:
        holding.close()
    assert len(kept_heads(home)) == 1
    keep_heads(home, list_sessions(home).sessions)
    assert len(kept_heads(home)) == 2


def test_where_there_is_no_index_nothing_is_made_to_read_or_forget(home: Home, new: New) -> None:
    new()
    assert kept_heads(home) == {}
    forget_head(home, "x")
    assert not Path(home.mirror).exists()
    Path(home.mirror).write_bytes(b"garbage" * 1000)
    keep_heads(home, list_sessions(home).sessions)
    assert kept_heads(home) == {}
    assert Path(home.mirror).read_bytes() == b"garbage" * 1000

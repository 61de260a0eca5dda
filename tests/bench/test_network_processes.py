"""Reading /proc texts: CPU ticks and listening ports."""

from __future__ import annotations

from network_processes import ports_of, ticks

STAT = b"71 (a) b (c) S 1 71 71 0 -1 4194560 900 5000 0 0 11 22 300 4000 20 0 3 0 5000 1 2"
TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0C38 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 501 1 0 100 0 0 10 0
   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 502 1 0 100 0 0 10 0
   2: 0100007F:0C38 0100007F:A000 01 00000000:00000000 00:00000000 00000000     0        0 503 1 0 20 4 30 10 -1
"""


def test_ticks_are_of_the_process_and_of_the_children_it_waited_for() -> None:
    """The name in brackets may hold blanks and brackets."""
    assert ticks(STAT) == 11 + 22 + 300 + 4000


def test_a_process_that_ended_counts_nothing() -> None:
    assert ticks(b"") == 0


def test_only_listening_sockets_of_the_process_count() -> None:
    assert ports_of(TABLE, ["501", "503"]) == [3128]
    assert ports_of(TABLE, []) == []

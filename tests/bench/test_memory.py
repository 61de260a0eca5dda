"""Reading smaps_rollup: the sums that are reported, in KiB."""

import memory
import pytest
from timing import DidNotWork

ROLLUP = """\
55d0c9a00000-7ffd1b5fe000 ---p 00000000 00:00 0                          [rollup]
Rss:               11648 kB
Pss:                5274 kB
Pss_Dirty:          4100 kB
Shared_Clean:       7012 kB
Private_Clean:       524 kB
Private_Dirty:      4096 kB
"""


def test_pss_private_and_rss_are_taken_and_nothing_else() -> None:
    assert memory.reading(ROLLUP) == (5274, 524 + 4096, 11648)


def test_a_process_that_ended_meanwhile_is_no_zero() -> None:
    with pytest.raises(DidNotWork):
        memory.reading("")

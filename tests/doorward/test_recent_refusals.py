"""The last refusals and who hears of the next."""

from __future__ import annotations

from doorward.recent_refusals import KEPT, RecentRefusals


def test_the_last_ones_are_kept() -> None:
    refusals = RecentRefusals()
    for number in range(KEPT + 3):
        refusals.add({"n": number})
    assert [each["n"] for each in refusals.last()] == list(range(3, KEPT + 3))
    assert KEPT == 200


def test_listeners_hear_each_and_then_the_end() -> None:
    refusals = RecentRefusals()
    heard: list[object] = []
    refusals.add({"n": 0})
    forget = refusals.listen(heard.append)
    refusals.add({"n": 1})
    refusals.end()
    assert heard == [{"n": 1}, None]
    forget()
    late: list[object] = []
    refusals.listen(late.append)
    assert late == [None], "who comes after the end is told so"


def test_who_left_hears_no_more() -> None:
    refusals = RecentRefusals()
    heard: list[object] = []
    refusals.listen(heard.append)()
    refusals.add({"n": 1})
    assert heard == []

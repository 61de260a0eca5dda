"""Tables and targets from made-up rows."""

from __future__ import annotations

import json

from network_proxies import HOST, INSIDE
from network_table import DECISION, TARGETS, Row, absolute, document, ratios, row, targets
from network_works import IDLE, WORKS, Figure

NAMES = {each.name for each in WORKS} | {IDLE, DECISION}


def rows(ours: float, theirs: float) -> list[Row]:
    return [
        row("doorward", HOST, WORKS[0], [Figure(ours, 0.2, 1, 2)]),
        row("squid", HOST, WORKS[0], [Figure(theirs, 0.8, 1, 2)]),
        Row("doorward", HOST, IDLE, 12.0, "kB"),
    ]


def line(table: str, begins: str) -> list[str]:
    return next(each for each in table.splitlines() if each.startswith(begins)).removeprefix(begins).split()


def test_every_target_names_a_work_that_is_measured() -> None:
    assert {target.work for target in TARGETS} <= NAMES


def test_a_target_holds_from_its_bound_on() -> None:
    assert line(targets(rows(1.3, 1.0)), "1 stream: rate to squid")[-1] == "holds"
    assert line(targets(rows(1.29, 1.0)), "1 stream: rate to squid")[-1] == "MISSED"


def test_cpu_and_memory_are_held_to_at_most() -> None:
    found = targets(rows(1, 1))
    assert line(found, "1 stream: CPU to squid") == ["0.25×", "≤", "0.35×", "holds"]
    assert line(found, "idle tunnels") == ["12.00", "kB", "≤", "30", "kB", "holds"]


def test_without_a_peer_a_target_is_not_measured_and_does_not_hold() -> None:
    assert line(targets(rows(1, 1)), "1 stream: rate to srt inside") == ["not", "measured", "≥", "8×"]


def test_inside_and_host_side_stand_in_columns_of_their_own() -> None:
    table = absolute([*rows(2, 1), Row("doorward", INSIDE, "1 stream", 1.5, "GB/s", 0.3, "GB", 1, 2)])
    assert table.splitlines()[0].split() == ["doorward", "squid", "doorward", "inside"]
    assert line(table, "1 stream, GB/s") == ["2.00", "1.00", "1.50"]


def test_ratios_are_ours_over_theirs() -> None:
    assert line(ratios(rows(3, 2)), "1 stream")[:2] == ["1.50", "0.25"]


def test_a_ratio_is_taken_round_by_round() -> None:
    """A slow moment falls on both; the ratio of the medians would be 2 here."""
    found = [
        row("doorward", HOST, WORKS[0], [Figure(10, 1, 1, 1), Figure(1, 1, 1, 1), Figure(2, 1, 1, 1)]),
        row("squid", HOST, WORKS[0], [Figure(5, 1, 1, 1), Figure(1, 1, 1, 1), Figure(1, 1, 1, 1)]),
    ]
    assert line(ratios(found), "1 stream")[:2] == ["2.00", "1.00"]
    found[1] = found[1]._replace(rounds=(Figure(20, 1, 1, 1), Figure(2, 1, 1, 1), Figure(0.5, 1, 1, 1)))
    assert line(ratios(found), "1 stream")[0] == "0.50"


def test_a_row_is_the_median_of_its_rounds() -> None:
    figures = [Figure(1, 0.1, 1, 2), Figure(9, 0.9, 3, 4), Figure(2, 0.2, 2, 3)]
    assert row("squid", HOST, WORKS[0], figures)[3:9] == (2, "GB/s", 0.2, "GB", 2, 3)


def test_the_document_has_one_object_a_line_with_its_six_keys() -> None:
    missing = Row("srt", INSIDE, "all", None, "", why="srt not found on PATH")
    lines = document([*rows(1, 1), missing]).splitlines()
    assert len(lines) == 6
    objects = json.loads("\n".join(lines))
    assert all({"proxy", "where", "work", "value", "unit", "cpu_s"} <= each.keys() for each in objects)
    assert objects[-1]["value"] is None and objects[-1]["why"] == "srt not found on PATH"

"""Interleaving and medians, with candidates that only pretend: nothing here looks at a clock."""

from __future__ import annotations

import pytest
import timing
from timing import DidNotWork, Measured, NotMeasured, Sample, Workload

TRUE = Workload("true", ("true",))
CURL = Workload("curl", ("curl",), b"blocked")


class Pretend:
    """Notes each call in `log` and gives the samples it was told; a sentence instead of a sample is raised."""

    def __init__(self, name: str, log: list[str], *samples: Sample | str, unable: str | None = None) -> None:
        self.name = self.title = name
        self._log = log
        self._samples = list(samples)
        self._unable = unable

    def unable(self, workload: Workload) -> str | None:
        return self._unable if workload.answer is not None else None

    def measure(self, workload: Workload) -> Sample:
        self._log.append(f"{self.name} {workload.name}")
        sample = self._samples.pop(0)
        if isinstance(sample, str):
            raise DidNotWork(sample)
        return sample


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SETTLE_S", 0)


def ended(*times: float) -> list[Sample]:
    return [Sample(None, ms) for ms in times]


def test_candidates_take_turns_within_each_round() -> None:
    log: list[str] = []
    pair = [Pretend("a", log, *ended(1, 1, 1, 1, 1, 1)), Pretend("b", log, *ended(1, 1, 1, 1, 1, 1))]
    timing.interleave(pair, [TRUE, CURL], 2, lambda text: None)
    assert log == ["a true", "b true", "a curl", "b curl"] * 3


def test_the_round_that_warms_up_is_not_counted() -> None:
    measured, missing = timing.interleave([Pretend("a", [], *ended(900, 4, 6, 5))], [TRUE], 3, lambda text: None)
    assert [(each.ended_ms, len(each.samples)) for each in measured] == [(5, 3)]
    assert missing == []


def test_a_candidate_that_fails_leaves_with_its_reason_and_the_round() -> None:
    log: list[str] = []
    measured, missing = timing.interleave(
        [
            Pretend("a", log, *ended(1, 1, 1)),
            Pretend("b", log, "no such file"),
            Pretend("c", log, *ended(1, 1), "gone"),
        ],
        [TRUE],
        2,
        lambda text: None,
    )
    assert [each.candidate for each in measured] == ["a"]
    assert missing == [
        NotMeasured("b", "b", "true", "no such file"),
        NotMeasured("c", "c", "true", "gone (in round 2)"),
    ]
    assert log == ["a true", "b true", "c true", "a true", "c true", "a true", "c true"]


def test_a_workload_that_a_candidate_cannot_do_is_listed_and_never_tried() -> None:
    log: list[str] = []
    measured, missing = timing.interleave(
        [Pretend("a", log, *ended(1, 1), unable="nobody answers")], [TRUE, CURL], 1, lambda text: None
    )
    assert [each.workload for each in measured] == ["true"]
    assert missing == [NotMeasured("a", "a", "curl", "nobody answers")]
    assert log == ["a true", "a true"]


def test_the_answer_counts_where_there_is_one_and_the_end_elsewhere() -> None:
    samples = (Sample(10, 30), Sample(12, 50), Sample(11, 40))
    assert Measured("a", "a", "curl", samples, answers=True).headline_ms == 11
    assert Measured("a", "a", "true", samples, answers=False).headline_ms == 40
    silent = Measured("a", "a", "curl", tuple(ended(7, 9, 8)), answers=True)
    assert silent.headline_ms == 8


def test_last_message_keeps_the_lines_that_belong_to_it() -> None:
    said = b"Traceback\n  File x\nEngineError: no sandbox\n  see its rollout\n"
    assert timing.last_message(said) == "EngineError: no sandbox see its rollout"
    node = b"node:internal\n  throw err;\n\nError: no such module\n    at Module.load\n\nNode.js v20\n"
    assert timing.last_message(node) == "Error: no such module"
    assert (
        timing.last_message(b"doorward: first\ndoorward: no bwrap\n  install it\n") == "doorward: no bwrap install it"
    )
    assert timing.last_message(b"\n") == "nothing on stderr"
    assert timing.last_message(b"  only indented\n") == "only indented"


def test_columns_line_figures_up_to_the_right() -> None:
    assert (
        timing.columns([["what", "ms"], ["a", "12.5"], ["longer", "–"]]) == "what      ms\na       12.5\nlonger     –"
    )

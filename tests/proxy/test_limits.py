"""Limits from configuration: defaults, and every way a value can be wrong."""

from __future__ import annotations

import pytest

from doorward.proxy.limits import DEFAULT, Limits, MalformedLimit, limits_from


def test_nothing_said_means_the_defaults() -> None:
    assert limits_from({}) == DEFAULT == Limits()


def test_what_is_said_wins() -> None:
    limits = limits_from({"head_time": 2, "reply_time": 0.5, "header_count": 10})
    assert limits == DEFAULT._replace(head_time=2, reply_time=0.5, header_count=10)


@pytest.mark.parametrize("name", [*Limits._fields])
@pytest.mark.parametrize("value", [0, -1, True, "5", None, [], float("nan"), float("inf"), 10**12])
def test_impossible_values(name: str, value: object) -> None:
    with pytest.raises(MalformedLimit, match=name):
        limits_from({name: value})


def test_counts_are_whole() -> None:
    with pytest.raises(MalformedLimit, match="whole"):
        limits_from({"head": 1.5})


def test_unknown_names() -> None:
    with pytest.raises(MalformedLimit, match="head_time"):
        limits_from({"head_tme": 1})


def test_the_design_s_numbers() -> None:
    assert (DEFAULT.head_time, DEFAULT.reply_time, DEFAULT.first_bytes_time, DEFAULT.resolve_time) == (10, 60, 3, 5)

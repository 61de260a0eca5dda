"""The text of an array: every way to lay one out is edited to what a parser then reads, comments kept."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator

import pytest

from doorward.toml_array import with_entries, without_entry


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[]", '["n"]'),
        ("[ ]", '["n" ]'),
        ("[\n]", '[\n    "n",\n]'),
        ("[\n  # none yet\n]", '[\n  # none yet\n    "n",\n]'),
        ('["a"]', '["a", "n"]'),
        ('[ "a", "b", ]', '[ "a", "b", "n", ]'),
        ('[\n  "a",\n  "b"\n]', '[\n  "a",\n  "b",\n  "n"\n]'),
        ('[\n\t"a", # one\n\t"b", # two\n\t# end\n]', '[\n\t"a", # one\n\t"b", # two\n\t# end\n\t"n",\n]'),
        ('[\n  "a" # one\n]', '[\n  "a", # one\n  "n"\n]'),
        ('[\n  "a" # one\n  ,\n]', '[\n  "a" # one\n  ,\n  "n",\n]'),
        ('[ "a", "b",\n  "c" ]', '[ "a", "b",\n  "c",\n  "n" ]'),
        ("[{x = [\"], #\"]}, '#]']", '[{x = ["], #"]}, \'#]\', "n"]'),
    ],
)
def test_an_entry_is_put_in(before: str, after: str) -> None:
    assert with_entries(before, ['"n"']) == after


def test_several_are_put_in_in_order() -> None:
    assert with_entries('["a"]', ['"n"', "{x = 1}"]) == '["a", "n", {x = 1}]'
    assert with_entries('[\n  "a"\n]', ['"n"', '"m"']) == '[\n  "a",\n  "n",\n  "m"\n]'


@pytest.mark.parametrize(
    ("before", "place", "after"),
    [
        ('["a"]', 0, "[]"),
        ('["a", "b"]', 0, '["b"]'),
        ('["a", "b"]', 1, '["a"]'),
        ('["a", "b",]', 1, '["a", ]'),
        ('[\n  "a", # one\n  # about b\n  "b", # two\n]', 0, '[\n  # about b\n  "b", # two\n]'),
        ('[\n  "a", # one\n  # about b\n  "b" # two\n]', 1, '[\n  "a", # one\n  # about b\n]'),
        ('[\n  "a", "b", # both\n]', 0, '[\n  "b", # both\n]'),
        ('[\n    "a"\n  , "b"\n]', 0, '[\n   "b"\n]'),
        ('[\n    "a"\n  , "b"\n]', 1, '[\n    "a"\n  \n]'),
    ],
)
def test_an_entry_is_taken_out(before: str, place: int, after: str) -> None:
    assert without_entry(before, place) == after


def _every_layout(most: int) -> Iterator[tuple[str, int]]:
    blanks = ["", " ", "\n  ", " # c, ]\n  "]
    for size in range(most + 1):
        for gaps in itertools.product(blanks, repeat=2 * size + 1):
            for comma in (False, True) if size else (False,):
                commas = [True] * (size - 1) + [comma] * bool(size)
                inside = "".join(
                    f'{gaps[2 * place]}"{place}"{gaps[2 * place + 1]}{"," * commas[place]}' for place in range(size)
                )
                yield f"[{inside}{gaps[-1]}]", size


def test_every_layout_of_two_entries() -> None:
    for array, size in _every_layout(2):
        entries = [str(place) for place in range(size)]
        more = with_entries(array, ['"n"', '"m"'])
        assert tomllib.loads(f"x = {more}")["x"] == [*entries, "n", "m"], array
        assert more.count("#") == array.count("#"), array
        for place in range(size):
            fewer = without_entry(array, place)
            assert tomllib.loads(f"x = {fewer}")["x"] == entries[:place] + entries[place + 1 :], array

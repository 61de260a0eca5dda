"""The enumerations of `enum`, but for what it costs to make them."""

import copy
import enum
import json
import pickle

import pytest

from doorward import plain_enum


class Colour(plain_enum.StrEnum):
    """What the tests look at."""

    RED = "red"
    GREEN = "green"

    @property
    def loud(self) -> str:
        return self.value.upper()


class Step(plain_enum.IntEnum):
    DOWN = -1
    UP = 2


class Standard(enum.StrEnum):
    RED = "red"
    GREEN = "green"


def test_a_member_is_its_text() -> None:
    assert (Colour.RED, f"{Colour.RED:>4}", str(Colour.RED)) == ("red", " red", "red")
    assert {Colour.RED: 1}["red"] == 1
    assert json.dumps([Colour.GREEN, Step.UP]) == '["green", 2]'
    assert (Colour.RED.name, Colour.RED.value, Colour.RED.loud) == ("RED", "red", "RED")
    assert repr(Colour.RED) == repr(Standard.RED).replace("Standard", "Colour")


def test_a_number_compares_and_counts() -> None:
    assert Step.UP > Step.DOWN and max(Step) is Step.UP
    assert (str(Step.DOWN), f"{Step.UP:02}") == ("-1", "02")


def test_a_value_finds_its_one_member() -> None:
    assert Colour("red") is Colour.RED and Step(2) is Step.UP
    assert isinstance(Colour.RED, Colour)


@pytest.mark.parametrize("value", ["blue", "RED", "", 3, None, []])
def test_any_other_value_is_refused_in_the_words_of_enum(value: object) -> None:
    with pytest.raises(ValueError) as ours:
        Colour(value)  # type: ignore[arg-type]
    with pytest.raises(ValueError) as theirs:
        Standard(value)  # type: ignore[arg-type]
    assert str(ours.value) == str(theirs.value).replace("Standard", "Colour")


def test_members_come_in_order() -> None:
    assert list(Colour) == ["red", "green"] == list(reversed([*reversed(Colour)]))
    assert (len(Colour), "red" in Colour, "blue" in Colour) == (2, True, False)
    assert [*Colour.__members__] == ["RED", "GREEN"] and Colour["GREEN"] is Colour.GREEN


def test_copies_are_the_member_itself() -> None:
    assert copy.copy(Colour.RED) is copy.deepcopy(Colour.RED) is pickle.loads(pickle.dumps(Colour.RED)) is Colour.RED


def test_a_match_statement_tells_members_apart() -> None:
    def seen(colour: Colour) -> str:
        match colour:
            case Colour.RED:
                return "stop"
            case _:
                return "go"

    assert [seen(colour) for colour in Colour] == ["stop", "go"]

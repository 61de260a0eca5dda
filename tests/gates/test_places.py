"""Which place holds a path."""

from __future__ import annotations

from itertools import permutations

import pytest

from doorward.gates.places import Ground, inside, place_of


@pytest.mark.parametrize(
    ("path", "folder", "held"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b/c", "/a/b", True),
        ("/a/b2", "/a/b", False),
        ("/a", "/a/b", False),
        ("/x", "/", True),
        ("/", "/", True),
    ],
)
def test_inside_goes_by_whole_names(path: str, folder: str, held: bool) -> None:
    assert inside(path, folder) is held


def test_the_most_specific_place_wins_whatever_the_order() -> None:
    grounds = [
        (Ground.WORKSPACE, ("/w",)),
        (Ground.ADDED, ("/w/secret/pub", "/d")),
        (Ground.LISTED_READ_ONLY, ("/w/vendor", "/d/x")),
        (Ground.HIDDEN, ("/w/secret",)),
    ]
    for order in permutations(grounds):
        assert place_of("/w/a", order, "").ground is Ground.WORKSPACE
        assert place_of("/w/vendor/a", order, "").ground is Ground.LISTED_READ_ONLY
        assert place_of("/w/secret/a", order, "").ground is Ground.HIDDEN
        assert place_of("/w/secret/pub/a", order, "") == (Ground.ADDED, "/w/secret/pub")
        assert place_of("/d/x/a", order, "").ground is Ground.LISTED_READ_ONLY
        assert place_of("/elsewhere", order, "") == (Ground.OUTSIDE, "")


def test_of_equals_the_later_ground_wins() -> None:
    grounds = [(Ground.ADDED, ("/d",)), (Ground.LISTED_READ_ONLY, ("/d",))]
    assert place_of("/d/a", grounds, "").ground is Ground.LISTED_READ_ONLY


def test_nothing_opens_doorwards_own_folder() -> None:
    assert place_of("/h/.doorward/x", [(Ground.ADDED, ("/h/.doorward/x",))], "/h/.doorward").ground is Ground.HOME

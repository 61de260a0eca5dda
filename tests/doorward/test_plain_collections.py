"""The collections a start gets without `collections` and `functools`."""

import collections

from doorward import plain_collections


def test_they_are_those_of_the_standard_library() -> None:
    assert plain_collections.deque is collections.deque
    assert plain_collections.OrderedDict is collections.OrderedDict


def test_what_was_asked_is_remembered_and_no_more_of_it_than_was_said() -> None:
    asked = []

    @plain_collections.lru_cache(2)
    def double(number: int) -> int:
        asked.append(number)
        return 2 * number

    assert [double(number) for number in (1, 2, 1, 3, 1, 2)] == [2, 4, 2, 6, 2, 4]
    assert asked == [1, 2, 3, 2]
    double.cache_clear()
    assert double(1) == 2 and asked[-1] == 1

"""Our NamedTuple behaves as that of `typing`; the same class body is given to both."""

import copy
import pickle
import subprocess
import sys
import typing
from collections.abc import Callable
from typing import Any

import pytest

from doorward import named_tuple


def _point(base: Any) -> Any:
    class Point(base):  # type: ignore[misc]
        """Where."""

        x: int
        y: "NoSuchName | None"  # type: ignore[name-defined]  # noqa: F821
        label: str = ""
        tags: tuple[str, ...] = ()

        @property
        def far(self) -> bool:
            return bool(self.x > 10)

        @classmethod
        def origin(cls) -> Any:
            return cls(0, 0)

        def moved(self, by: int) -> Any:
            return self._replace(x=self.x + by)

    return Point


class Plain(named_tuple.NamedTuple):
    """At module level, for pickle."""

    a: int
    b: str = "b"


OURS, THEIRS = _point(named_tuple.NamedTuple), _point(typing.NamedTuple)


@pytest.mark.parametrize(
    "make",
    [
        lambda point: point(1, 2),
        lambda point: point(1, 2, "three"),
        lambda point: point(1, 2, "three", ("four",)),
        lambda point: point(1, y=2),
        lambda point: point(y=2, x=1, tags=("t",)),
        lambda point: point(1, 2, tags=("t",)),
        lambda point: point._make([1, 2, "three", ()]),
        lambda point: point(1, 2)._replace(label="new", x=5),
        lambda point: point.origin().moved(20),
    ],
)
def test_the_same_values_come_out(make: Callable[[Any], Any]) -> None:
    ours, theirs = make(OURS), make(THEIRS)
    assert tuple(ours) == tuple(theirs)
    assert ours == theirs == tuple(theirs)
    assert hash(ours) == hash(theirs)
    assert repr(ours) == repr(theirs)
    assert ours._asdict() == theirs._asdict()
    assert [*ours._asdict()] == [*theirs._asdict()]
    assert (ours.x, ours.y, ours.label, ours.tags, ours.far) == (
        theirs.x, theirs.y, theirs.label, theirs.tags, theirs.far,
    )  # fmt: skip
    assert isinstance(ours, tuple)
    assert type(ours) is OURS


@pytest.mark.parametrize(
    "make",
    [
        lambda point: point(1),
        lambda point: point(),
        lambda point: point(1, 2, "3", (), 5),
        lambda point: point(1, 2, x=1),
        lambda point: point(1, 2, z=3),
        lambda point: point(1, 2)._replace(z=3),
        lambda point: point._make([1]),
        lambda point: setattr(point(1, 2), "x", 3),
        lambda point: setattr(point(1, 2), "z", 3),
    ],
)
def test_the_same_mistakes_are_refused(make: Callable[[Any], Any]) -> None:
    for point in (OURS, THEIRS):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            make(point)


def test_a_class_says_the_same_of_itself() -> None:
    for name in ("_fields", "_field_defaults", "__match_args__", "__doc__", "__name__", "__slots__"):
        assert getattr(OURS, name) == getattr(THEIRS, name)
    assert type(OURS) is type
    assert not hasattr(OURS(1, 2), "__dict__")


def test_a_default_before_a_field_without_one_is_refused() -> None:
    for base in (named_tuple.NamedTuple, typing.NamedTuple):
        made: Any = base
        with pytest.raises(TypeError):

            class Wrong(made):  # type: ignore[misc]
                a: int = 1
                b: int


def test_it_is_matched_copied_pickled_and_inherited_from() -> None:
    value = Plain(1)
    match value:
        case Plain(a, b):
            assert (a, b) == (1, "b")
    for same in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert same == value
        assert type(same) is Plain

    class More(Plain):
        def sum(self) -> str:
            return f"{self.a}{self.b}"

    assert More(2, "c").sum() == "2c"
    assert isinstance(More(2), Plain)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="it is that of typing there")
def test_nothing_is_compiled() -> None:
    """The first `compile` of a process costs 1 ms: `typing` would do it for a name given as text."""
    code = (
        "import builtins\n"
        "def refuse(*_, **__): raise AssertionError('compiled')\n"
        "from doorward.named_tuple import NamedTuple\n"
        "builtins.compile = builtins.eval = refuse\n"
        "class Point(NamedTuple):\n    x: 'int | None'\n"
        "print(Point(1))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "Point(x=1)\n", done.stderr

"""The names of `typing` that a class statement needs while it runs, without `typing`.

Importing `typing` costs every start 4 ms, for classes that only type checkers look at. What stands in annotations
alone is imported under `TYPE_CHECKING` instead. Imports nothing of doorward: every floor may use it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic as Generic
    from typing import Protocol as Protocol
    from typing import TypeVar as TypeVar
    from typing import cast as cast
else:

    class Protocol:
        """A base that says nothing."""

        __slots__ = ()

    class Generic:
        """A base that can be subscripted."""

        __slots__ = ()

        def __class_getitem__(cls, _parameters):
            return cls

    def TypeVar(name, *_bounds, **_settings):
        return name

    def cast(_type, value):
        return value

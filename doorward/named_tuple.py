"""`NamedTuple`: that of `typing`, made in a tenth of the time.

A start makes sixty such classes. `typing` and `collections` check every field and compile a constructor for each
class, about 0.12 ms; one constructor for all, on a common base, makes it 0.01. Annotations are not looked at, so that
a name only type checkers know may stand there as text and costs nothing (`typing` would compile it: 1 ms the first
time). An instance costs 0.3 µs more. Imports nothing of doorward: every floor may use it.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING or sys.version_info >= (3, 14):  # from 3.14 on a class body no longer holds its annotations
    from typing import NamedTuple as NamedTuple
else:
    from _collections import _tuplegetter  # `collections` itself loads five more modules

    class _Record(tuple):
        """What all of them share. The underscore names are those of `collections.namedtuple`."""

        __slots__ = ()
        _fields = ()
        _field_defaults = {}  # noqa: RUF012
        _last_defaults = ()

        def __new__(cls, *values, **named):
            if named or len(values) != len(cls._fields):
                values = _completed(cls, values, named)
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            return made if len(made) == len(cls._fields) else cls(*made)

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **named):
            made = self._make(map(named.pop, self._fields, self))
            if named:
                raise TypeError(f"{type(self).__name__} has no fields {[*named]}")
            return made

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

        def __getnewargs__(self):  # copy and pickle
            return tuple(self)

    def _completed(cls, values, named):
        """`values` with those given by name and the defaults of the rest. Raises TypeError if they do not fit."""
        missing = len(cls._fields) - len(values)
        if missing > 0 and named:
            rest = cls._fields[-missing:]
            defaults = cls._field_defaults
            try:
                values += tuple([named.pop(field) if field in named else defaults[field] for field in rest])
            except KeyError as error:
                raise TypeError(f"{cls.__name__}: the field {error} has no value") from None
        elif 0 < missing <= len(cls._last_defaults):
            values += cls._last_defaults[-missing:]
        if named or len(values) != len(cls._fields):
            raise TypeError(f"{cls.__name__}: {len(values)} values and {named} do not fit {cls._fields}")
        return values

    class _Making(type):
        def __new__(cls, name, bases, body):
            if not bases:
                return type.__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body[field] for field in fields if field in body}
            if [*fields[len(fields) - len(defaults) :]] != [*defaults]:
                raise TypeError(f"{name}: a field without a default follows one with a default")
            body.update({field: _tuplegetter(index, None) for index, field in enumerate(fields)})
            body.update(__slots__=(), __match_args__=fields, _fields=fields, _field_defaults=defaults)
            body["_last_defaults"] = tuple(defaults.values())
            return type.__new__(type, name, (_Record,), body)

    class NamedTuple(metaclass=_Making):
        """The base that class statements name; what they make is a `tuple`, and no subclass of this."""

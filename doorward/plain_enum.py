"""`StrEnum` and `IntEnum`: those of `enum`, made in a tenth of the time, and without importing `enum`.

A start makes a dozen such classes. `enum` costs 1.2 ms to import with what it needs, and 0.1 ms a class. What is kept:
members are `str` or `int`, one object each, with `name` and `value`; the class iterates over them, finds one by its
value and refuses any other. Imports nothing of doorward: every floor may use it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from enum import IntEnum as IntEnum
    from enum import StrEnum as StrEnum
else:

    class _Making(type):
        def __new__(cls, name, bases, body):
            kind = bases[0].__mro__[-2]  # str or int, for what is made of the two below
            given = {key: body.pop(key) for key in [*body] if key[0] != "_" and type(body[key]) is kind}
            made = type.__new__(cls, name, bases, body)
            made._members = {}
            for key, value in given.items():
                member = kind.__new__(made, value)
                member.name = key
                member.value = value
                made._members[value] = member
                setattr(made, key, member)
            return made

        def __call__(cls, value):
            try:
                return cls._members[value]
            except (KeyError, TypeError):
                raise ValueError(f"{value!r} is not a valid {cls.__name__}") from None

        def __iter__(cls):
            return iter(cls._members.values())

        def __reversed__(cls):
            return reversed(cls._members.values())

        def __len__(cls):
            return len(cls._members)

        def __contains__(cls, value):
            return value in cls._members

        def __getitem__(cls, name):
            for member in cls:
                if member.name == name:
                    return member
            raise KeyError(name)

        @property
        def __members__(cls):
            return {member.name: member for member in cls}

    class _Member:
        __slots__ = ()

        def __repr__(self):
            return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

        def __copy__(self):
            return self

        def __deepcopy__(self, memo):
            return self

        def __reduce__(self):
            return type(self), (self.value,)

    class StrEnum(_Member, str, metaclass=_Making):
        """The base that class statements name."""

        __str__ = str.__str__
        __format__ = str.__format__

    class IntEnum(_Member, int, metaclass=_Making):
        """The base that class statements name."""

        __str__ = int.__repr__
        __format__ = int.__format__

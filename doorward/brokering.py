"""Credentials of one session or door: their values, read outside, and what stands for each inside."""

from __future__ import annotations

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from doorward.credentials import Credential


class Brokered(NamedTuple):
    """`told` is for the worker (`proxy/inspection/credentials`); `secrets` are names, each with a text that must pass
    in no plain request, for the door; `placeholders` are for the command, by variable."""

    told: tuple[dict[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    placeholders: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"Brokered({[each['name'] for each in self.told]})"  # without what is secret


class Brokering:
    """What stands for a value stays the same for as long as this lives, since commands were told it; also for the next
    value, if that is as long."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, credentials: Iterable[Credential], env: Mapping[str, str]) -> Brokered:
        """Read each from its source. Raises UsageError that names the one that cannot be had."""
        told, secrets, placeholders = [], [], {}
        for each in credentials:
            from doorward.credentials import placeholder_for  # for those who have some

            value = each.value(env)
            placeholder = self._known.get(each.name, "")
            if len(placeholder) != len(value) or placeholder == value:
                placeholder = self._known[each.name] = placeholder_for(value)
            secrets += [(each.name, text) for text in (value, placeholder)]
            if each.variable:
                placeholders[each.variable] = placeholder
            told.append(
                {
                    "name": each.name,
                    "value": value,
                    "placeholder": placeholder,
                    "place": each.place,
                    "field": each.field,
                }
            )
        return Brokered(tuple(told), tuple(secrets), placeholders)

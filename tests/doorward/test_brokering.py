"""What stands for a value, and for how long."""

from __future__ import annotations

from doorward.brokering import Brokering
from doorward.credentials import Credential


def credential(name: str = "forge", variable: str = "FORGE") -> Credential:
    return Credential(name, "env", "OUTSIDE", ("a.test",), "header", "authorization", variable)


def test_a_placeholder_stays_while_values_are_renewed() -> None:
    """Commands were told it; of another length it would be another."""
    brokering = Brokering()
    first = brokering.of([credential()], {"OUTSIDE": "ghp_0123456789abcdef"})
    again = brokering.of([credential()], {"OUTSIDE": "ghp_fedcba9876543210"})
    assert first.placeholders == again.placeholders
    assert again.told[0]["value"] == "ghp_fedcba9876543210"
    assert set(again.secrets) == {("forge", "ghp_fedcba9876543210"), ("forge", again.placeholders["FORGE"])}
    longer = brokering.of([credential()], {"OUTSIDE": "ghp_0123456789abcdef0"})
    assert len(longer.placeholders["FORGE"]) == 21


def test_a_placeholder_is_never_the_value() -> None:
    brokering = Brokering()
    made = brokering.of([credential()], {"OUTSIDE": "ghp_0123456789abcdef"}).placeholders["FORGE"]
    assert brokering.of([credential()], {"OUTSIDE": made}).placeholders["FORGE"] != made


def test_nothing_shows_it() -> None:
    found = Brokering().of([credential(variable="")], {"OUTSIDE": "ghp_0123456789abcdef"})
    assert "0123456789" not in repr(found) and not found.placeholders

"""The features there are, each with its stage and whether it is on where nobody says otherwise."""

from collections.abc import Mapping
from typing import Final, Literal

from doorward.named_tuple import NamedTuple

Stage = Literal["stable", "experimental", "under-development", "deprecated", "removed"]
"""How far a feature has come."""


class Feature(NamedTuple):
    """One switch under `[features]`. `summary` is one line without a full stop."""

    name: str
    stage: Stage
    default: bool
    summary: str


GUARDIAN: Final = "guardian_approval"

FEATURES: Final = (
    Feature(GUARDIAN, "stable", False, "a second look at risky actions: they are asked about, or put to the reviewer"),
)


def in_effect(settings: Mapping[str, bool]) -> frozenset[str]:
    """Names of the features that are on: the defaults with `settings` (name to on or off) laid over them."""
    switches = {feature.name: feature.default for feature in FEATURES} | dict(settings)
    return frozenset(name for name, on in switches.items() if on)

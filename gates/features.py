"""The features there are, each with its stage and whether it is on where nobody says otherwise."""

from __future__ import annotations

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final, Literal

    Stage = Literal["stable", "experimental", "under development", "deprecated", "removed"]
    """How far a feature has come."""
else:
    Stage = str

STAGES: Final[tuple[Stage, ...]] = ("stable", "experimental", "under development", "deprecated", "removed")
"""All of them. What is removed is off, whatever is set; setting it, or what is deprecated, is worth a notice."""


class Feature(NamedTuple):
    """One switch under `[features]`. `summary` is one line without a full stop; `once` are names it had before, which
    still mean it."""

    name: str
    stage: Stage
    default: bool
    summary: str
    once: tuple[str, ...] = ()


GUARDIAN: Final = "guardian_approval"

FEATURES: Final = (
    Feature(
        GUARDIAN,
        "stable",
        False,
        "a second look at risky actions: they are asked about, or put to the reviewer",
        once=("smart_approvals",),  # Codex's former name for the same switch
    ),
)

RENAMED: Final = {old: feature.name for feature in FEATURES for old in feature.once}
"""Former names to present ones."""


def in_effect(settings: Mapping[str, bool]) -> frozenset[str]:
    """Names of the features that are on: the defaults with `settings` (name to on or off) laid over them."""
    switches = {feature.name: feature.default for feature in FEATURES} | dict(settings)
    return frozenset(name for name, on in switches.items() if on)

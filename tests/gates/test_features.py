"""Which features are in effect."""

from __future__ import annotations

from doorward.gates.features import FEATURES, GUARDIAN, in_effect


def test_the_guardian_is_stable_and_off_until_enabled() -> None:
    guardian = next(feature for feature in FEATURES if feature.name == GUARDIAN)
    assert (guardian.stage, guardian.default) == ("stable", False)
    assert GUARDIAN not in in_effect({})
    assert in_effect({GUARDIAN: True, "own": False}) == {GUARDIAN}

"""Times as text."""

from doorward.sessions.timestamps import rfc3339


def test_milliseconds_are_cut_not_rounded() -> None:
    assert rfc3339(1_764_459_660_999_999_999) == "2025-11-29T23:41:00.999Z"


def test_the_kept_second_does_not_stick() -> None:
    """Also when the clock goes back."""
    assert rfc3339(1_764_459_661_001_000_000) == "2025-11-29T23:41:01.001Z"
    assert rfc3339(1_764_459_660_002_000_000) == "2025-11-29T23:41:00.002Z"

"""Tells a name that carries data out from one that names a host: a label that is too long, or too much like noise.

Only asked about names that a wildcard lets in; a name that a rule spells out carries nothing it does not. Thresholds
leave room for what content networks and object stores use (32 hexadecimal digits, UUIDs, long words with hyphens).
"""

from __future__ import annotations

from math import log2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

LONGEST_LABEL: Final = 52
"""Characters; a label may have 63 (RFC 1035 §2.3.4), which tunnels use to the full."""

NOISE_FROM: Final = 28
"""Characters from which a label is measured at all: shorter ones carry little, and anything looks like noise."""

NOISE: Final = 4.1
"""Bits a character (Shannon, over the label's own letters). Hexadecimal digits have at most 4, a UUID 4.09; base32 of
40 characters has about 4.4, words have well under 4."""


def why_it_carries_data(labels: str) -> str | None:
    """A clause for a refusal, or None. `labels` is the part of the name that the wildcard stands for."""
    for label in labels.split("."):
        if len(label) > LONGEST_LABEL:
            return f"has a label of {len(label)} characters, which a wildcard does not let in"
        if len(label) >= NOISE_FROM and _bits(label) > NOISE:
            return "has a label that looks like carried data, which a wildcard does not let in"
    return None


def _bits(label: str) -> float:
    size = len(label)
    return -sum(count / size * log2(count / size) for count in map(label.count, set(label)))

"""A line of a rollout as it was seen earlier: what proves that nothing after it was cut."""

from doorward.named_tuple import NamedTuple


class Head(NamedTuple):
    """Its number and its link."""

    ordinal: int
    chain: str

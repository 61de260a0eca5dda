"""What reading a rollout gives where a stretch of it is no record."""

from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum


class DamageKind(StrEnum):
    """Why a stretch of a rollout is not a record."""

    TORN = "torn"
    NOT_UTF8 = "not-utf8"
    NOT_JSON = "not-json"
    TOO_DEEP = "too-deep"
    TOO_LONG = "too-long"
    NOT_A_RECORD = "not-a-record"
    LOST = "lost"
    """Lines that are shared with another session, and that session's file is not there or shorter."""


class Damage(NamedTuple):
    """One line that could not be read. Only itself is lost."""

    kind: DamageKind
    number: int
    offset: int
    length: int
    detail: str

    @property
    def sentence(self) -> str:
        """One plain sentence for a person."""
        if self.kind is DamageKind.LOST:
            return self.detail
        return f"line {self.number} (byte {self.offset}, {self.length} bytes) is skipped: {self.detail}"

"""Renders a refusal on the wire, exactly as DESIGN.md §5 says.

Stub: the contract below is final, the body follows.
"""

from __future__ import annotations

from typing import NamedTuple

from doorward.allowlists.decision import Decision


class Refusal(NamedTuple):
    """The keys of a refusal's body, in order. `port` and `method` as asked; `rule` the text of the rule, or None."""

    status: str
    host: str
    port: int
    protocol: str
    method: str
    decision: str
    reason: str
    source: str
    rule: str | None
    message: str
    hint: str

    @property
    def error_class(self) -> str:
        """The value of x-proxy-error."""
        raise NotImplementedError

    def to_json(self) -> dict[str, object]:
        """The body as a dict, keys in order."""
        return self._asdict()


def refusal_from(decision: Decision, *, protocol: str, method: str, host_text: str, port: int) -> Refusal:
    """What a decision that does not allow looks like on the wire."""
    raise NotImplementedError


def http_refusal(refusal: Refusal) -> bytes:
    """The whole 403: head and JSON body (no body to HEAD)."""
    raise NotImplementedError

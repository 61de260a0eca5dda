"""Renders a refusal on the wire: the same for plain HTTP and CONNECT, readable by programs and by people.

A refusal is no error: a program finds the class in a header and the whole decision as JSON, a person finds one sentence
and the exact option that would allow it, also in the status phrase: many clients show nothing else.
"""

from __future__ import annotations

from doorward.allowlists.decision import Decision, Reason
from doorward.named_tuple import NamedTuple
from doorward.proxy.http1_write import closing_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_CLASSES: Final[dict[str, str]] = {
    Reason.NOT_ALLOWED: "blocked-by-allowlist",
    Reason.NOT_ALLOWED_LOCAL: "blocked-by-allowlist",
    Reason.PORT_NOT_ALLOWED: "blocked-by-allowlist",
    Reason.DENIED: "blocked-by-denylist",
    Reason.METHOD_NOT_ALLOWED: "blocked-by-method-policy",
    Reason.PATH_NOT_ALLOWED: "blocked-by-method-policy",
    Reason.MITM_REQUIRED: "blocked-by-mitm-required",
}
_LONGEST_PHRASE: Final = 400  # well under the 8 KiB that the strictest known clients take as a status line


class Refusal(NamedTuple):
    """What is said about one refused connection or request: the body's keys, in order."""

    status: str
    """Always "blocked"."""
    host: str
    """As asked, IPv6 without brackets."""
    port: int
    protocol: str
    """`http`, `https_connect`, `socks5_tcp`, `transparent_tcp` or `dns`."""
    method: str
    """The request's method; `CONNECT` for tunnels of every protocol, the query type for `dns`."""
    decision: str
    """`deny` or `ask`."""
    reason: str
    source: str
    rule: str | None
    """The rule that decided, as it was written."""
    message: str
    hint: str
    """The exact option or command that would allow it; empty where none would."""

    @property
    def error_class(self) -> str:
        """The value of x-proxy-error."""
        return _CLASSES.get(self.reason, "blocked-by-policy")

    def to_json(self) -> dict[str, object]:
        """The body, keys in order."""
        return self._asdict()


def refusal_from(decision: Decision, *, protocol: str, method: str, host_text: str, port: int) -> Refusal:
    """What a decision other than allow looks like on the wire."""
    return Refusal(
        "blocked",
        host_text,
        port,
        protocol,
        method,
        str(decision.effect),
        str(decision.reason),
        str(decision.source),
        None if decision.rule is None else decision.rule.text,
        decision.message,
        decision.hint,
    )


def http_refusal(refusal: Refusal) -> bytes:
    """The whole 403, head and body (a HEAD gets the head alone). The connection is to be closed behind it."""
    return closing_response(403, phrase(refusal), refusal.error_class, refusal.to_json(), refusal.method)


def phrase(refusal: Refusal) -> str:
    """The status phrase of a 403."""
    text = f"Blocked ({refusal.reason}): {refusal.message}"
    if refusal.hint:
        text += f" - to allow it: {refusal.hint}"
    # a phrase is one line of visible ASCII whatever a rule or a name holds (RFC 9112 §4)
    line = "".join(mark if " " <= mark <= "~" else "?" for mark in " ".join(text.split()))
    return line if len(line) <= _LONGEST_PHRASE else line[: _LONGEST_PHRASE - 3] + "..."

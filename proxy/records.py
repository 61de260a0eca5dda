"""Builds the proxy's records, the only place that does: what was opened, what was refused, what a connection did.

An item is `{"type", "payload"}`, the payload an object or its JSON (`Encoded`). A refused request is one `network` and
one `refusal`; an allowed connection is one `event` when it is decided and one `network` at its end. On a kept-alive
client connection that is one for each host, port and rule, with `requests` counted. Nothing here holds a header value
or a byte of content.
"""

from __future__ import annotations

import itertools
import os

from doorward.allowlists.decision import Decision
from doorward.allowlists.host import host_text
from doorward.proxy.refusal import Refusal
from doorward.start_json import Encoded
from doorward.typing_names import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from doorward.proxy.record_form import Form
    from doorward.proxy.resolver import IP

    # which process asked, as `attribution.py` describes it; `unknown` where that cannot be said for certain
    Attributed: TypeAlias = dict[str, Any] | str

    Item = dict[str, Any]
else:
    Item = dict

VERSION = 1
"""Of the `network` payload; changes when a key changes its meaning or goes."""


_process = os.urandom(4).hex()
_numbers = itertools.count(1)


def _forked() -> None:
    global _process
    _process = os.urandom(4).hex()


os.register_at_fork(after_in_child=_forked)


class Receipt(Protocol):
    """Stands for a record that is on its way to where it is kept."""

    async def wait(self, deadline: float = ...) -> None:
        """Return when it is kept; raises when it cannot be."""

    def then(self, function: Callable[[BaseException | None], None]) -> None:
        """Have `function` called, with None, as soon as it is kept, or with the error. It must not raise."""


class Sink(Protocol):
    """Where records go. `keeps` is false where nobody asks for those of connections that were allowed: then they need
    not be made."""

    keeps: bool

    def post(self, run: str, items: list[Item]) -> None:
        """Hand over a record that nobody waits for. Records arrive in the order they were handed over."""

    def submit(self, run: str, items: list[Item], *, hurry: bool = False, unless: int = -1) -> Receipt:
        """Hand over a record whose keeping an answer waits for. With `hurry` it is passed on at once, and waited for a
        moment; not when the descriptor `unless` can be read, behind which there is other work of the kind."""

    def submit_form(
        self, run: str, form: Form, strings: list[str], *, hurry: bool = False, unless: int = -1
    ) -> Receipt | None:
        """The same for a record that is ready but for some strings. None where it is kept already."""

    def hurry(self) -> object:
        """Pass on what was handed over now, not with the rest of what this round of the loop brings."""


def items_of(form: Form, strings: list[str]) -> list[Item]:
    """The items of a record that was ready but for some strings."""
    told = form.filled(strings).split("\t")[1:]
    return [{"type": kind, "payload": Encoded(text)} for kind, text in zip(told[::2], told[1::2], strict=True)]


def new_connection_id() -> str:
    """Names one record's subject; no two are equal, in this process or another."""
    return f"{_process}-{next(_numbers)}"


class Account:
    """What one allowed (host, port, rule) of one client connection did; becomes one `network` item."""

    __slots__ = ("_connection", "_host", "_start", "address", "closed_by", "content", "decision", "down", "error",
    "kept", "method", "process", "protocol", "receipt", "requests", "up", "upstream")  # fmt: skip

    def __init__(self, decision: Decision, protocol: str, method: str, now: float) -> None:
        self._connection = ""
        self._host = ""
        self.decision = decision
        self.protocol = protocol
        self.method = method  # of the first request
        self.address: IP | None = None  # the one that was dialled last
        self.upstream: str | None = None  # the upstream proxy it went through
        self.up = 0
        self.down = 0
        self.requests = 0
        self.closed_by = "client"
        self.error: str | None = None
        self.content: str | None = None  # of a tunnel, see `first_bytes`
        self.receipt: Receipt | None = None
        self.kept = False  # somebody has waited for the receipt, and it came
        self.process: Attributed | None = None  # None: nobody tries to find out
        self._start = now

    @property
    def connection(self) -> str:
        """Its name in all records."""
        if not self._connection:
            self._connection = new_connection_id()
        return self._connection

    @property
    def host(self) -> str:
        """The host that was asked for, as text."""
        if not self._host:
            self._host = host_text(self.decision.host)
        return self._host

    def opened(self) -> Item:
        """The `event` item of the decision."""
        return {"type": "event", "payload": {"type": "connection_opened", **self._subject()}}

    def closed(self, now: float) -> Item:
        """The `network` item of the end."""
        payload = self._subject()
        address = self.address
        if address is None:
            payload["address"] = None
        else:  # most often the very address that was asked for
            payload["address"] = self.host if self.decision.host == (address,) else str(address)
        if self.upstream is not None:
            payload["upstream_proxy"] = self.upstream
        payload["bytes_up"] = self.up
        payload["bytes_down"] = self.down
        payload["duration_s"] = round(now - self._start, 6)
        payload["requests"] = self.requests
        payload["closed_by"] = self.closed_by
        if self.content is not None:
            payload["content"] = self.content
        if self.error is not None:
            payload["error"] = self.error
        return {"type": "network", "payload": payload}

    def refused(self, decision: Decision, refusal: Refusal, now: float) -> list[Item]:
        """The items of a refusal: of a request that was never allowed, or of a tunnel whose names do not agree."""
        self.decision = decision
        self.closed_by = "proxy"
        payload = {**refusal.to_json(), "connection": self.connection}
        if self.process is not None:
            payload["process"] = self.process
        return [self.closed(now), {"type": "refusal", "payload": payload}]

    def _subject(self) -> Item:
        """What both items say. The enum members are text, and JSON takes them for it."""
        decision = self.decision
        subject: Item = {
            "version": VERSION,
            "connection": self.connection,
            "decision": decision.effect,
            "reason": decision.reason,
            "source": decision.source,
            "rule": None if decision.rule is None else decision.rule.text,
            "host": self.host,
            "port": decision.port,
            "protocol": self.protocol,
            "method": self.method,
        }
        if self.process is not None:
            subject["process"] = self.process
        return subject


def refused(decision: Decision, refusal: Refusal, now: float, process: Attributed | None = None) -> list[Item]:
    """The items of a request that was never allowed."""
    account = Account(decision, refusal.protocol, refusal.method, now)
    account.process = process
    account.requests = 1
    return account.refused(decision, refusal, now)


def malformed(protocol: str, status: int, sentence: str) -> Item:
    """A message that could not be judged, since nobody can say what it asks for."""
    payload = {"type": "malformed_request", "protocol": protocol, "status": status, "message": sentence}
    return {"type": "event", "payload": payload}


def no_capture(why: str) -> Item:
    """The sandbox's network has no transparent capture, though it was asked for."""
    message = (
        f"connections that do not go through the proxy are not captured, since {why}: clients that know no proxy reach "
        "nothing, and names resolve through the proxy only"
    )
    return {"type": "event", "payload": {"type": "capture_unavailable", "message": message}}


def published(inside: int, outside: int) -> Item:
    """A server inside can be reached from the host's loopback."""
    return {"type": "event", "payload": {"type": "published", "port": inside, "address": f"127.0.0.1:{outside}"}}


def published_connection(inside: int, up: int, down: int) -> Item:
    """What somebody on the host did there."""
    payload = {"type": "published_connection", "port": inside, "bytes_up": up, "bytes_down": down}
    return {"type": "event", "payload": payload}


def fault(error: BaseException) -> Item:
    """A fault of ours, which cost one connection. Without the error's text: that may hold what a client sent."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
    return {"type": "event", "payload": {"type": "proxy_fault", "message": f"{type(error).__name__}{where}"}}

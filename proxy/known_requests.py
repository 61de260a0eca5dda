"""Requests that came before, byte by byte: under the same policy the same bytes mean the same, and are not read again.

A client that keeps its connection, or opens one after the other to the same place, sends many heads that differ in
nothing. What a head says, where it leads, what the rules say to it and how it goes on are functions of its bytes and of
the policy, so they may be remembered, as the rules' decisions on hosts are. Each policy has a memory of its own, and a
reload brings another policy: nothing outlives the rules by which it was judged.

Remembered are only heads that came alone and whole in one read and have no body; plain requests only where the rules
themselves allow them. What a person was asked about is asked each time.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.allowlists.decision import Decision
    from doorward.proxy.admission import Located
    from doorward.proxy.http1_message import RequestHead
    from doorward.proxy.target import Target

LONGEST = 2048
"""Bytes of a head that is remembered."""

_MOST = 256  # heads: less than a megabyte


class ReadRequest:
    """A head, and where it leads. `located`: for a tunnel, what the rules alone allow and where that is without a
    look-up, once it is known."""

    __slots__ = ("head", "located", "target")

    def __init__(self, head: RequestHead, target: Target) -> None:
        self.head = head
        self.target = target
        self.located: Located | None = None


class JudgedRequest(ReadRequest):
    """A plain request that is allowed; `up` is its head as it goes to the server itself, with the pseudonym (Via) that
    all doors of a process share."""

    __slots__ = ("decision", "up")

    def __init__(self, head: RequestHead, target: Target, decision: Decision, up: bytes) -> None:
        super().__init__(head, target)
        self.decision = decision
        self.up = up


class KnownRequests:
    """Those of one policy. When there are too many, all are forgotten."""

    __slots__ = ("_known", "find")

    def __init__(self) -> None:
        self._known: dict[bytes, ReadRequest] = {}
        self.find = self._known.get

    def add(self, data: bytes, request: ReadRequest) -> None:
        """Remember what these bytes, a whole head, mean: a CONNECT as it was read, a plain request as it was judged."""
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[data] = request

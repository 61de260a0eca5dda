"""The door's side of a tunnel that is looked into: its first bytes, its questions, its account.

What the client sends first is judged as in any tunnel, and must be TLS or an HTTP head: in anything else no request can
be seen. Then client and server go over to the worker; each request comes back as a question, is put to the same policy
as a plain one, and its record is kept before the worker hears the answer. A further connection to the server is made
here too, to the addresses that were judged when the tunnel was opened.
"""

from __future__ import annotations

import _socket
import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from doorward.allowlists.conditions import Request
from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Name, authority_text, host_text
from doorward.proxy import records
from doorward.proxy.admission import Located, NotAdmitted, Unreachable
from doorward.proxy.channel import Channel
from doorward.proxy.connecting import Connected, connect
from doorward.proxy.first_bytes import Disagreement, FirstBytes
from doorward.proxy.loop import Promise
from doorward.proxy.records import Account
from doorward.proxy.task import Cancelled, DeadlinePassed
from doorward.proxy.tunnel import Tunnel

if TYPE_CHECKING:
    from doorward.proxy.connection import Connection
    from doorward.proxy.inspection.link import InspectionLink

_LAST_WORDS = 2.0  # seconds for the worker to tell how a tunnel ended that is closed from here
_REASONS = {
    "name_mismatch": Reason.NAME_MISMATCH,
    "credential_leak": Reason.CREDENTIAL_LEAK,
    "mitm_required": Reason.MITM_REQUIRED,
}

GONE = "the inspection worker has ended, so nothing that it must look into is let through"


class InspectedTunnel:
    """One of them; `run` it."""

    def __init__(
        self,
        connection: Connection,
        link: InspectionLink,
        account: Account,
        located: Located,
        connected: Connected,
    ) -> None:
        self.connection = connection
        self.server = connection.server
        self.loop = connection.loop
        self._link = link
        self._account = account
        self._located = located
        self._connected: Connected | None = connected
        self._decision = located.decision
        self._over: Promise[Mapping[str, Any] | None] = Promise(connection.loop)
        account.requests = 0  # of the requests inside; the tunnel itself is none

    async def run(self, first: bytes) -> None:
        """From the client's first bytes to the end."""
        limits = self.server.policy.limits
        policy = self.server.policy

        def allows(name: Name) -> bool:
            return policy.decide(name, self._decision.port).effect is Effect.ALLOW

        judge = FirstBytes(
            self._decision.host,
            self._decision.port,
            limits,
            port_named=False,
            tls_any=False,
            allows=allows,
        )
        if not await self._first_bytes(judge, first) or not judge.data:
            return
        if isinstance(judge.finding, Disagreement):
            refused = self._decision.refused(Reason.NAME_MISMATCH, Source.MODE_GUARD, judge.finding.sentence)
            await self.connection.disagreed(self._account, refused, self._account.protocol)
            return
        await self._hand_over(judge)

    async def _first_bytes(self, judge: FirstBytes, first: bytes) -> bool:
        """Feed it until it has found something; False where the client broke off."""
        deadline = self.loop.now + judge.time_limit
        if first:
            judge.feed(first)
        while judge.finding is None:
            try:
                data = await self.connection.channel.recv(deadline=deadline)
            except DeadlinePassed:
                judge.timed_out()
            except OSError:
                self._account.closed_by, self._account.error = "client", "connection reset by the client"
                return False
            else:
                if data:
                    judge.feed(data)
                else:
                    judge.eof()
        return True

    async def _hand_over(self, judge: FirstBytes) -> None:
        connection, account, decision = self.connection, self._account, self._decision
        rules = tuple(self.server.policy.rules.rules_at(decision.host, decision.port))
        inspection = self.server.policy.inspection
        wanted = [rule.conditions for rule in rules if rule.conditions is not None]
        client = _descriptor(connection.channel)
        message = {
            "host": host_text(decision.host),
            "name": isinstance(decision.host, Name),
            "port": decision.port,
            "tls": judge.is_tls,
            "first": base64.b64encode(judge.data).decode("ascii"),
            "headers": sorted({name for each in wanted for name, _ in each.headers}),
            "graphql": any(each.graphql for each in wanted),
            "credentials": [] if inspection is None else inspection.credentials_for(decision),
        }
        self._link.open(account.connection, self, message, (client,))
        try:
            try:
                ended = await self._over.wait()
            except Cancelled:
                self._link.end(account.connection)
                try:
                    ended = await self._over.wait(self.loop.now + _LAST_WORDS)
                    self._told(ended)
                except DeadlinePassed:
                    account.closed_by = "proxy"
                raise
            self._told(ended)
        finally:
            self._link.forget(account.connection)
            if self._connected is not None:
                self._connected.channel.close()

    def _told(self, ended: Mapping[str, Any] | None) -> None:
        account = self._account
        if ended is None:
            account.closed_by, account.error = "proxy", "the inspection worker ended"
            return
        account.up, account.down = ended["up"], ended["down"]
        account.closed_by = ended["closed_by"]
        account.error = ended.get("error")

    # --- what the worker says --------------------------------------------------------------------------------------

    def closed(self, message: Mapping[str, Any] | None) -> None:
        """See `link.Inspected`."""
        self._over.set(message)

    def note(self, message: Mapping[str, Any]) -> None:
        """See `link.Inspected`."""
        event = {**message["event"], "connection": self._account.connection}
        self.server.sink.post(self.server.run, [{"type": "event", "payload": event}])

    async def answer(self, message: Mapping[str, Any]) -> tuple[dict[str, Any], _socket.socket | None]:
        """See `link.Inspected`."""
        kind = message["type"]
        if kind == "ask":
            return await self._judge(message), None
        if kind == "refuse":
            reason = _REASONS[message["reason"]]
            return await self._refuse(
                self._decision.refused(reason, Source.MODE_GUARD, message["message"]), message
            ), None
        if kind == "dial":
            return await self._dial()
        raise ValueError(f"an inspection message of unknown type {kind!r}")

    async def _judge(self, message: Mapping[str, Any]) -> dict[str, Any]:
        self._account.requests += 1
        operations = message["operations"]
        request = Request(
            message["method"],
            message["target"],
            tuple((name, value) for name, value in message["headers"]),
            None if operations is None else tuple(operations),
            message["upgrade"],
        )
        policy, place = self.server.policy, self._decision
        decision = policy.admit(place.host, place.port, *request[:4], visible=True, upgrade=request.upgrade)
        if decision.effect is Effect.ALLOW:
            return {"allow": True, "credentials": policy.credentials_in(decision, request)}
        return await self._refuse(decision, message)

    async def _refuse(self, decision: Decision, message: Mapping[str, Any]) -> dict[str, Any]:
        refusal = await self.connection.refused(
            decision, self._account.protocol, message["method"], decision.host, decision.port
        )
        return {"allow": False, "class": refusal.error_class, "body": refusal.to_json()}

    async def _dial(self) -> tuple[dict[str, Any], _socket.socket | None]:
        connected, self._connected = self._connected, None
        if connected is None:
            policy, decision = self.server.policy, self._decision
            if policy.decide(decision.host, decision.port).effect is not Effect.ALLOW:  # a reload took it away
                place = authority_text(decision.host, decision.port)
                return {"failed": [502, "upstream-failed", f"{place} is no longer allowed."]}, None
            try:
                connected = await connect(self.server.way, policy, self._located)
            except Unreachable as failure:
                return {"failed": [failure.status, failure.error_class, failure.sentence]}, None
            self._account.address = connected.address
        early = base64.b64encode(connected.early).decode("ascii")
        if connected.channel.splices:
            return {"early": early}, _descriptor(connected.channel)
        # TLS with the upstream proxy ends here, so its bytes are passed on between
        ours, theirs = _socket.socketpair()
        ours.setblocking(False)
        self.server.spawn(self._relay(Channel(self.loop, ours), connected.channel))
        return {"early": early}, theirs

    async def _relay(self, ours: Channel, upstream: Channel) -> None:
        try:
            tunnel = Tunnel(self.loop, ours, upstream, self.server.way.pipes)
            await tunnel.run(self.server.policy.limits.tunnel_idle_time)
        finally:
            ours.close()
            upstream.close()


def _descriptor(channel: Channel) -> _socket.socket:
    """The channel's socket, taken off the loop for good."""
    channel.forget(shared=True)
    sock = channel.sock
    taken = _socket.socket(sock.family, sock.type, sock.proto, sock.detach())
    taken.setblocking(False)
    return taken


def refused_without(decision: Decision) -> NotAdmitted:
    """The refusal where the worker is gone."""
    place = authority_text(decision.host, decision.port)
    return NotAdmitted(decision.refused(Reason.MITM_REQUIRED, Source.PROXY_STATE, f"{place} must be inspected: {GONE}"))


__all__ = ["InspectedTunnel", "records", "refused_without"]

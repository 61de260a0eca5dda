"""Opens a tunnel for a client, whichever way it asked (CONNECT, SOCKS5), and keeps its account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Host, Name
from doorward.allowlists.observing import only_observed
from doorward.proxy.admission import Connected, NotAdmitted, Unreachable, connect, locate
from doorward.proxy.first_bytes import FirstBytes
from doorward.proxy.records import Account
from doorward.proxy.refusal import Refusal
from doorward.proxy.tunnel import Tunnel

if TYPE_CHECKING:
    from doorward.proxy.connection import Connection


class Answers(Protocol):
    """The bytes that tell a client, in its protocol, how its request ended."""

    def established(self) -> bytes:
        """The tunnel stands."""

    def refused(self, refusal: Refusal) -> bytes:
        """The door said no."""

    def failed(self, failure: Unreachable) -> bytes:
        """The door said yes, and the way there failed."""


async def serve_tunnel(
    connection: Connection, protocol: str, host: Host, port: int, answers: Answers, first: bytes
) -> None:
    """Judge, connect, answer and relay to the end; `first` is what the client sent ahead."""
    server = connection.server
    try:
        decision = await connection.decide(protocol, "CONNECT", host, port)
        inspects = server.policy.inspection is not None and server.policy.inspects(decision)
        if inspects and (server.inspection is None or server.inspection.dead):
            from doorward.proxy.inspection.tunnel import refused_without

            raise refused_without(decision)
        try:
            located = await locate(server.way, server.policy, decision)
            account = connection.account(decision, protocol, "CONNECT")
            connected = await connect(server.way, server.policy, located)
        except Unreachable as failure:
            await connection.failed(failure, decision, protocol, "CONNECT")
            await connection.say_last(answers.failed(failure))
            return
    except NotAdmitted as no:
        refusal = await connection.refused(no, protocol, "CONNECT", host, port)
        await connection.say_last(answers.refused(refusal))
        return
    connection.idle = False
    try:
        assert account.receipt is not None
        account.closed_by = "proxy"
        account.address = connected.address
        account.upstream = None if connected.parent is None else connected.parent.text
        await account.receipt.wait()
        await connection.channel.send(answers.established(), connection.loop.now + server.policy.limits.idle_time)
        if inspects and server.inspection is not None:
            from doorward.proxy.inspection.tunnel import InspectedTunnel  # only for those who have it

            await InspectedTunnel(connection, server.inspection, account, located, connected).run(first)
        else:
            await _relay(connection, account, connected, decision, first)
    finally:
        connected.channel.close()


async def _relay(
    connection: Connection, account: Account, connected: Connected, decision: Decision, first: bytes
) -> None:
    server = connection.server
    policy = server.policy
    rule = decision.rule
    watched = only_observed(decision)

    def allows(name: Name) -> bool:
        return server.policy.admit(name, decision.port, "CONNECT", visible=False).effect is Effect.ALLOW

    judge = FirstBytes(
        decision.host,
        decision.port,
        policy.limits,
        # what is only watched has no rule that could say so
        port_named=watched or (rule is not None and rule.ports_named),
        tls_any=watched or (rule is not None and rule.tls == "any"),
        allows=allows,
    )
    tunnel = Tunnel(connection.loop, connection.channel, connected.channel, server.pipes)
    tunnel.down.begin_with(connected.early)
    try:
        await tunnel.run(policy.limits.tunnel_idle_time, first, judge)
    finally:
        account.up = tunnel.up.moved
        account.down = tunnel.down.moved
        account.closed_by = tunnel.closed_by
        account.error = tunnel.error
    if tunnel.disagreement is not None:
        account.error = None
        message = tunnel.disagreement.sentence
        refused = decision.refused(Reason.NAME_MISMATCH, Source.MODE_GUARD, message)
        await connection.disagreed(account, refused, account.protocol)

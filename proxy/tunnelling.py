"""Opens a tunnel for a client, whichever way it asked (CONNECT, SOCKS5, transparent capture), and keeps its account."""

from __future__ import annotations

from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Address, Host, Name
from doorward.allowlists.observing import only_observed
from doorward.proxy.admission import Connected, NotAdmitted, Unreachable, connect, locate
from doorward.proxy.first_bytes import FirstBytes
from doorward.proxy.records import Account
from doorward.proxy.refusal import Refusal
from doorward.proxy.tunnel import Tunnel
from doorward.typing_names import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.connection import Connection


class Answers(Protocol):
    """Tells a client, in its protocol, how its request ended."""

    def established(self) -> bytes:
        """The bytes that say: the tunnel stands."""

    async def say_refused(self, refusal: Refusal) -> None:
        """The door said no; the connection's last words."""

    async def say_failed(self, failure: Unreachable) -> None:
        """The door said yes, and the way there failed; likewise the last."""


async def serve_tunnel(
    connection: Connection,
    protocol: str,
    host: Host,
    port: int,
    answers: Answers,
    first: bytes,
    *,
    judged: bool = True,
) -> None:
    """Judge, connect, answer and relay to the end; `first` is what the client sent ahead. An address that stands for a
    name inside the sandbox is taken for that name, whoever looked it up, and stays its own while the tunnel is open.
    Not `judged`: there is no name to hold the first bytes against."""
    stand_ins = connection.server.stand_ins
    name = None if stand_ins is None or not isinstance(host, Address) else stand_ins.name_of(host.ip)
    if stand_ins is None or name is None:
        await _serve(connection, protocol, host, port, answers, first, judged)
        return
    assert isinstance(host, Address)
    stand_ins.hold(host.ip)
    try:
        await _serve(connection, protocol, Name(name), port, answers, first, judged)
    finally:
        stand_ins.release(host.ip)


async def _serve(
    connection: Connection, protocol: str, host: Host, port: int, answers: Answers, first: bytes, judged: bool
) -> None:
    server = connection.server
    try:
        decision = await connection.decide(protocol, "CONNECT", host, port)
        if not judged and decision.rule is not None and decision.rule.limited:
            raise NotAdmitted(server.policy.opaque(decision))  # nobody looks into it
        inspects = judged and server.policy.inspection is not None and server.policy.inspects(decision)
        if inspects and (server.inspection is None or server.inspection.dead):
            from doorward.proxy.inspection.tunnel import refused_without

            raise refused_without(decision)
        try:
            located = await locate(server.way, server.policy, decision)
            account = connection.account(decision, protocol, "CONNECT")
            connected = await connect(server.way, server.policy, located)
        except Unreachable as failure:
            await connection.failed(failure, decision, protocol, "CONNECT")
            await answers.say_failed(failure)
            return
    except NotAdmitted as no:
        refusal = await connection.refused(no, protocol, "CONNECT", host, port)
        await answers.say_refused(refusal)
        return
    connection.idle = False
    try:
        assert account.receipt is not None
        account.closed_by = "proxy"
        account.address = connected.address
        account.upstream = None if connected.parent is None else connected.parent.text
        await account.receipt.wait()
        established = answers.established()
        if established:
            await connection.channel.send(established, connection.loop.now + server.policy.limits.idle_time)
        if inspects and server.inspection is not None:
            from doorward.proxy.inspection.tunnel import InspectedTunnel  # only for those who have it

            await InspectedTunnel(connection, server.inspection, account, located, connected).run(first)
        else:
            await _relay(connection, account, connected, decision, first, judged)
    finally:
        connected.channel.close()


async def _relay(
    connection: Connection, account: Account, connected: Connected, decision: Decision, first: bytes, judged: bool
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
        await tunnel.run(policy.limits.tunnel_idle_time, first, judge if judged else None)
    finally:
        account.up = tunnel.up.moved
        account.down = tunnel.down.moved
        account.closed_by = tunnel.closed_by
        account.error = tunnel.error
        account.content = judge.content if judged else "uninspected"
    if tunnel.disagreement is not None:
        account.error = None
        message = tunnel.disagreement.sentence
        refused = decision.refused(Reason.NAME_MISMATCH, Source.MODE_GUARD, message)
        await connection.disagreed(account, refused, account.protocol)

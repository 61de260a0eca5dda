"""Opens a tunnel for a client, whichever way it asked (CONNECT, SOCKS5, transparent capture), and keeps its account."""

from __future__ import annotations

from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Address, Host, Name
from doorward.allowlists.observing import only_observed
from doorward.proxy.admission import (
    NotAdmitted,
    Unreachable,
    locate,
    located_at_once,
    not_to_itself,
)
from doorward.proxy.connecting import connect
from doorward.proxy.first_bytes import FirstBytes, server_may_speak
from doorward.proxy.refusal import Refusal
from doorward.proxy.tunnel import Tunnel
from doorward.typing_names import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from doorward.proxy.connection import Connection
    from doorward.proxy.known_requests import ReadRequest
    from doorward.proxy.resolver import IP
    from doorward.proxy.server import Server
    from doorward.proxy.stand_ins import StandIns


class Answers(Protocol):
    """Tells a client, in its protocol, how its request ended."""

    established: bytes
    """What says that the tunnel stands; may be empty."""

    async def say_refused(self, refusal: Refusal) -> None:
        """The door said no; the connection's last words."""

    async def say_failed(self, failure: Unreachable) -> None:
        """The door said yes, and the way there failed; likewise the last."""


def serve_tunnel(
    connection: Connection,
    protocol: str,
    host: Host,
    port: int,
    answers: Answers,
    first: bytes,
    *,
    judged: bool = True,
    request: ReadRequest | None = None,
) -> Coroutine[Any, None, None]:
    """Judge, connect, answer and relay to the end; `first` is what the client sent ahead. An address that stands for a
    name inside the sandbox is taken for that name, whoever looked it up, and stays its own while the tunnel is open.
    Not `judged`: there is no name to hold the first bytes against. `request`, of the server's policy: what it comes to
    is kept there, where it may come again."""
    stand_ins = connection.server.stand_ins
    if stand_ins is not None and isinstance(host, Address):
        name = stand_ins.name_of(host.ip)
        if name is not None:
            return _serve_held(stand_ins, host.ip, connection, protocol, Name(name), port, answers, first, judged)
    return _serve(connection, protocol, host, port, answers, first, judged, request)


async def _serve_held(
    stand_ins: StandIns,
    ip: IP,
    connection: Connection,
    protocol: str,
    name: Name,
    port: int,
    answers: Answers,
    first: bytes,
    judged: bool,
) -> None:
    """The same for an address that stands for a name."""
    stand_ins.hold(ip)
    try:
        await _serve(connection, protocol, name, port, answers, first, judged, None)
    finally:
        stand_ins.release(ip)


async def _serve(
    connection: Connection,
    protocol: str,
    host: Host,
    port: int,
    answers: Answers,
    first: bytes,
    judged: bool,
    request: ReadRequest | None,
) -> None:
    server = connection.server
    policy = server.policy
    way = server.way
    located = None if request is None else request.located
    try:
        if located is not None:
            decision = located.decision
        else:
            decision = policy.admit(host, port, "CONNECT", visible=False)
            if decision.effect is not Effect.ALLOW:
                decision = await connection.settle(protocol, "CONNECT", decision)
                policy, request = server.policy, None  # somebody is asked each time
        if not judged and decision.rule is not None and decision.rule.limited:
            raise NotAdmitted(policy.opaque(decision))  # nobody looks into it
        inspects = judged and policy.inspection is not None and policy.inspects(decision)
        if inspects and (server.inspection is None or server.inspection.dead):
            from doorward.proxy.inspection.tunnel import refused_without

            raise refused_without(decision)
        try:
            if located is not None:
                not_to_itself(way, located)
            else:
                located = located_at_once(way, policy, decision)
                if located is None:
                    located = await locate(way, policy, decision)
                elif request is not None:
                    request.located = located
            account = connection.account(decision, protocol, "CONNECT")
            connected = await connect(way, server.policy, located)
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
        account.closed_by = "proxy"
        account.address = connected.address
        account.upstream = None if connected.parent is None else connected.parent.text
        if account.receipt is not None:
            await account.receipt.wait()
        established = answers.established
        if established and (sent := connection.channel.try_send(established)) < len(established):
            await connection.channel.send(established[sent:], connection.loop.now + server.policy.limits.idle_time)
        if inspects and server.inspection is not None:
            from doorward.proxy.inspection.tunnel import InspectedTunnel  # only for those who have it

            await InspectedTunnel(connection, server.inspection, account, located, connected).run(first)
        else:
            tunnel = Tunnel(connection.loop, connection.channel, connected.channel, way.pipes)
            rule = decision.rule
            # what is only watched has no rule that could say so
            watched = only_observed(decision)
            port_named = watched or (rule is not None and rule.ports_named)
            tls_any = watched or (rule is not None and rule.tls == "any")
            try:
                await tunnel.run(
                    server.policy.limits.tunnel_idle_time,
                    first,
                    (lambda: _judge(server, decision, port_named, tls_any)) if judged else None,
                    early=connected.early,
                    may_be_silent=server_may_speak(decision.port, port_named=port_named, tls_any=tls_any),
                )
            finally:
                account.up = tunnel.moved_up
                account.down = tunnel.moved_down
                account.closed_by = tunnel.closed_by
                account.error = tunnel.error
                account.content = tunnel.content if judged else "uninspected"
            if tunnel.disagreement is not None:
                account.error = None
                refused = decision.refused(Reason.NAME_MISMATCH, Source.MODE_GUARD, tunnel.disagreement.sentence)
                await connection.disagreed(account, refused, protocol)
    finally:
        connected.channel.close()


def _judge(server: Server, decision: Decision, port_named: bool, tls_any: bool) -> FirstBytes:
    """Of what the client says first."""

    def allows(name: Name) -> bool:
        return server.policy.admit(name, decision.port, "CONNECT", visible=False).effect is Effect.ALLOW

    return FirstBytes(
        decision.host,
        decision.port,
        server.policy.limits,
        port_named=port_named,
        tls_any=tls_any,
        allows=allows,
    )

"""Relays datagrams to the places that `udp:` rules name, on one port of the sandbox.

- Each pair of sender and destination is a flow: judged once by name, as a connection is, looked up once, and one record
  at its end. What QUIC's ClientHello says must agree (`quic_judge`).
- What is refused is answered as a host answers where no socket is bound, and so is what the other side refuses; what is
  beyond the limits is dropped.
- A flow ends after a minute of silence, and the one silent for longest when there are too many.
- Only answers of the place it was opened to come back: its socket is connected there.
"""

from __future__ import annotations

import _socket

from doorward.allowlists.datagrams import said_of_datagrams
from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Host, Name, address_host, host_text
from doorward.plain_collections import OrderedDict
from doorward.proxy import records
from doorward.proxy.datagram import LONGEST, Datagram, receive
from doorward.proxy.first_bytes import Disagreement
from doorward.proxy.loop import Promise
from doorward.proxy.quic_judge import DatagramJudge
from doorward.proxy.records import Account
from doorward.proxy.refusal import refusal_from
from doorward.proxy.resolver import IP, LookupFailed, LookupTimedOut
from doorward.proxy.task import DeadlinePassed, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TypeAlias

    from doorward.proxy.server import Server

    Key: TypeAlias = tuple[Any, IP]

PROTOCOL: Final = "udp"

SILENCE: Final = 60.0
"""Seconds after which a flow is over. RFC 4787 asks two minutes of a NAT; what is relayed here asks and is answered."""

FLOWS: Final = 256
"""At once, on one port."""

_REFUSALS: Final = 1024  # destinations whose refusal is on record
_QUEUED: Final = 16  # datagrams of a flow that is still being opened
_QUEUED_BYTES: Final = 128 * 1024
_A_TURN: Final = 64


class _Flow:
    """One sender and one destination. `upstream` is None while it is opened."""

    __slots__ = ("account", "datagram", "ended", "heard", "judge", "more", "queue", "upstream")

    def __init__(self, datagram: Datagram, now: float) -> None:
        self.datagram = datagram  # the way back
        self.queue: list[bytes] = [datagram.data]
        self.upstream: _socket.socket | None = None
        self.account: Account | None = None
        self.judge: DatagramJudge | None = None
        self.ended = False
        self.more: Promise[None] | None = None  # set while more of the queue is waited for
        self.heard = now


class UdpRelay:
    """The flows of one socket, which belongs to `port` inside."""

    def __init__(self, server: Server, port: int) -> None:
        self._server = server
        self._port = port
        self._flows: OrderedDict[Key, _Flow] = OrderedDict()
        self._refused: OrderedDict[IP, bool] = OrderedDict()  # to whether that is on record yet
        self._policy = server.policy  # which that was under

    def allows(self, ip: IP) -> bool:
        """Whether a rule lets datagrams to this address, or the name it stands for, out."""
        rules = self._server.policy.rules.udp
        return rules is not None and rules.decide(self._host(ip), self._port).effect is Effect.ALLOW

    def take(self, datagram: Datagram) -> None:
        """Pass one on, open its flow, or drop it."""
        sent_to = datagram.sent_to
        if sent_to is None:
            return
        key = (datagram.sender, sent_to)
        flow = self._flows.get(key)
        if flow is None:
            if self._policy is not self._server.policy:
                self._policy = self._server.policy
                self._refused.clear()
            if sent_to in self._refused:
                if self._refused[sent_to]:
                    datagram.refuse(self._server, self._port)
                return
            if len(self._flows) >= FLOWS:
                _, oldest = self._flows.popitem(last=False)
                self._end(oldest)
            flow = self._flows[key] = _Flow(datagram, self._server.loop.now)
            self._server.start(self._run(key, flow, sent_to))
            return
        self._flows.move_to_end(key)
        flow.heard = self._server.loop.now
        if flow.upstream is None:
            if len(flow.queue) < _QUEUED and sum(map(len, flow.queue)) + len(datagram.data) <= _QUEUED_BYTES:
                flow.queue.append(datagram.data)
                if flow.more is not None:
                    flow.more.set(None)
        else:
            self._pass_on(flow, datagram.data)

    async def _run(self, key: Key, flow: _Flow, sent_to: IP) -> None:
        server = self._server
        stand_ins = server.stand_ins
        if stand_ins is not None:
            stand_ins.hold(sent_to)
        try:
            if await self._open(flow, sent_to):
                await self._answers(flow)
        except (OSError, DeadlinePassed):
            pass
        except Exception as error:
            server.note(error)
        finally:
            if stand_ins is not None:
                stand_ins.release(sent_to)
            if self._flows.get(key) is flow:
                del self._flows[key]
            self._end(flow)

    async def _open(self, flow: _Flow, sent_to: IP) -> bool:
        server = self._server
        rules = server.policy.rules.udp
        host = self._host(sent_to)
        if rules is None:
            return False
        decision = rules.decide(host, self._port)
        if decision.effect is Effect.ALLOW and server.policy.parent is not None:
            message = "datagrams cannot go through the upstream proxy"
            decision = decision.refused(Reason.NOT_ALLOWED, Source.PROXY_STATE, message)
        addresses = rules.pin(host)
        ready: list[bytes] = []
        if decision.effect is Effect.ALLOW:
            ready, disagreement = await self._first(flow, decision)
            if disagreement is not None:
                decision = decision.refused(Reason.NAME_MISMATCH, Source.MODE_GUARD, disagreement.sentence)
                await self._refuse(flow, sent_to, decision, remember=False)
                return False
            if not addresses:
                assert isinstance(host, Name)
                try:
                    addresses = await server.way.resolver.resolve(host, server.policy.limits.resolve_time)
                except (LookupFailed, LookupTimedOut) as error:
                    await self._failed(flow, decision, str(error))
                    flow.datagram.refuse(server, self._port)
                    return False
            verdict = rules.judge(decision, addresses)
            decision, addresses = verdict.decision, verdict.usable
        if decision.effect is not Effect.ALLOW:
            await self._refuse(flow, sent_to, decision)
            return False
        if _is_over(flow):  # there were too many meanwhile
            return False
        account = flow.account = self._account(flow, decision)
        await server.sink.submit(server.run, [account.opened()]).wait()
        account.closed_by = "proxy"
        if _is_over(flow):
            return False
        for ip in addresses:
            family = _socket.AF_INET if ip.version == 4 else _socket.AF_INET6
            sock = _socket.socket(family, _socket.SOCK_DGRAM | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC)
            try:
                sock.connect((str(ip), self._port))
            except OSError as error:
                sock.close()
                account.error = f"{ip}: {(error.strerror or '').lower()}"
                continue
            account.error = None
            account.address = ip
            flow.upstream = sock
            break
        if flow.upstream is None:
            flow.datagram.refuse(server, self._port)
            return False
        for data in ready:
            self._send(flow, data)
        queued, flow.queue = flow.queue, []
        for data in queued:
            self._pass_on(flow, data)
        return True

    async def _first(self, flow: _Flow, decision: Decision) -> tuple[list[bytes], Disagreement | None]:
        """What may go on of the first datagrams, once it is known what they say; or why they may not."""
        loop, rules, rule = self._server.loop, self._server.policy.rules.udp, decision.rule
        assert rules is not None

        def allows(name: Name) -> bool:
            return rules.decide(name, self._port).effect is Effect.ALLOW

        limits = self._server.policy.limits
        tls_any = rule is not None and rule.tls == "any"
        judge = flow.judge = DatagramJudge(decision.host, self._port, limits, tls_any=tls_any, allows=allows)
        deadline = loop.now + limits.first_bytes_time
        ready: list[bytes] = []
        while True:
            queued, flow.queue = flow.queue, []
            for data in queued:
                ready += judge.feed(data)
            if ready or judge.finding is not None:
                return ready, judge.finding
            flow.more = Promise(loop)
            try:
                await flow.more.wait(deadline)
            except DeadlinePassed:
                judge.timed_out()
            finally:
                flow.more = None

    async def _answers(self, flow: _Flow) -> None:
        """Pass on what comes back, until both sides were silent for long enough."""
        upstream, account, loop = flow.upstream, flow.account, self._server.loop
        assert upstream is not None and account is not None
        watch = Watch(loop, upstream.fileno())
        try:
            while flow.upstream is not None:
                try:
                    data = upstream.recv(LONGEST)
                except BlockingIOError:
                    watch.can_read = False
                    try:
                        await watch.readable(flow.heard + SILENCE)
                    except DeadlinePassed:
                        if loop.now >= flow.heard + SILENCE:
                            return
                    continue
                except ConnectionRefusedError:
                    account.error = "nobody answers there (ICMP port unreachable)"
                    flow.datagram.refuse(self._server, self._port)
                    continue
                flow.heard = loop.now
                account.down += len(data)
                flow.datagram.reply(data)
        finally:
            watch.forget()

    def _pass_on(self, flow: _Flow, data: bytes) -> None:
        """What the judge lets pass; the flow ends where another connection in it has another name."""
        judge, account = flow.judge, flow.account
        assert judge is not None
        if account is None:
            return
        for each in judge.feed(data):
            self._send(flow, each)
        account.content = judge.content
        if judge.finding is not None:
            server = self._server
            refused = account.decision.refused(Reason.NAME_MISMATCH, Source.MODE_GUARD, judge.finding.sentence)
            refused = said_of_datagrams(refused)
            text = host_text(refused.host)
            refusal = refusal_from(refused, protocol=PROTOCOL, method="", host_text=text, port=self._port)
            flow.account = None
            server.sink.submit(server.run, account.refused(refused, refusal, server.loop.now), hurry=True).then(
                lambda error: None if error is not None else flow.datagram.refuse(server, self._port)
            )
            self._end(flow)

    def _send(self, flow: _Flow, data: bytes) -> None:
        assert flow.upstream is not None and flow.account is not None
        try:
            flow.account.up += flow.upstream.send(data)
            flow.account.requests += 1
        except OSError:  # the error of an earlier one, or no room: as lost as any datagram may be
            pass

    async def _refuse(self, flow: _Flow, sent_to: IP, decision: Decision, *, remember: bool = True) -> None:
        """`remember`: whatever is sent there is refused, and on record with this."""
        decision = said_of_datagrams(decision)
        if remember:
            self._refused[sent_to] = False
            if len(self._refused) > _REFUSALS:
                self._refused.popitem(last=False)
        text = host_text(decision.host)
        refusal = refusal_from(decision, protocol=PROTOCOL, method="", host_text=text, port=self._port)
        process = flow.datagram.process(self._server, self._port)
        items = records.refused(decision, refusal, self._server.loop.now, process)
        await self._server.sink.submit(self._server.run, items).wait()
        flow.datagram.refuse(self._server, self._port)
        if sent_to in self._refused:
            self._refused[sent_to] = True

    async def _failed(self, flow: _Flow, decision: Decision, why: str) -> None:
        account = self._account(flow, decision)
        account.closed_by = "proxy"
        account.error = f"dns-failed: {why}"
        await self._server.sink.submit(self._server.run, [account.closed(self._server.loop.now)]).wait()

    def _account(self, flow: _Flow, decision: Decision) -> Account:
        account = Account(decision, PROTOCOL, "", self._server.loop.now)
        account.process = flow.datagram.process(self._server, self._port)
        account.content = "uninspected" if flow.judge is None else flow.judge.content
        return account

    def _end(self, flow: _Flow) -> None:
        """Close it, and keep its record; harmless a second time."""
        flow.ended = True
        upstream, flow.upstream = flow.upstream, None
        account, flow.account = flow.account, None
        if upstream is not None:
            upstream.close()
        if account is not None:
            self._server.sink.post(self._server.run, [account.closed(self._server.loop.now)])

    def _host(self, ip: IP) -> Host:
        name = None if self._server.stand_ins is None else self._server.stand_ins.name_of(ip)
        return address_host(ip) if name is None else Name(name)


def _is_over(flow: _Flow) -> bool:
    """Whether it ended while something was waited for."""
    return flow.ended


async def serve_relayed(server: Server, sock: _socket.socket, watch: Watch, port: int) -> None:
    """Datagrams to `port`, for as long as the door is open."""
    relay = UdpRelay(server, port)
    taken = 0
    while True:
        try:
            datagram = receive(sock)
        except BlockingIOError:
            watch.can_read = False
            taken = 0
            await watch.readable()
            continue
        except OSError:
            continue
        relay.take(datagram)
        taken += 1
        if taken % _A_TURN == 0:
            await server.loop.turn()

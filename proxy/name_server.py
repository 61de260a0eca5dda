"""The sandbox's name server: answers with addresses that stand for names, over UDP and TCP; asks nobody.

- An address is given for a name that some rule could allow, or that somebody could be asked about: it stands for that
  name and means nothing else (`stand_ins`). The real look-up is the proxy's, once, when a connection to it is dialled.
- Everything else is REFUSED: other names, other types of records unless a rule lists them, names that carry data.
- Each distinct question is one record, which is kept before it is answered.
- Whatever server a client asks, the answer comes from the address it asked: the sockets listen on every address.
"""

from __future__ import annotations

import _socket
from ipaddress import IPv4Address, IPv6Address

from doorward.allowlists.decision import Decision, Effect, Reason, Source, Words
from doorward.allowlists.host import Address, MalformedHost, Name, address_host, parse_host
from doorward.allowlists.pattern import Kind
from doorward.allowlists.rule import table_text
from doorward.named_tuple import NamedTuple
from doorward.plain_collections import OrderedDict
from doorward.proxy import dns_message as dns
from doorward.proxy import records
from doorward.proxy.carried_data import why_it_carries_data
from doorward.proxy.datagram import Datagram, receive
from doorward.proxy.dns_message import Question, Unanswerable, read_query, write_answer
from doorward.proxy.records import Account
from doorward.proxy.refusal import refusal_from
from doorward.proxy.stand_ins import StandIns, ipv6_stand_in, pointed_at, stands_for_names
from doorward.proxy.task import DeadlinePassed, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from doorward.proxy.connection import Connection
    from doorward.proxy.policy import Policy
    from doorward.proxy.records import Attributed, Item, Receipt
    from doorward.proxy.resolver import IP
    from doorward.proxy.server import Server
    from doorward.proxy.udp_relay import UdpRelay

PROTOCOL: Final = "dns"
PORT: Final = 53

SECONDS_TO_LIVE: Final = 60
"""Of an answer. A stand-in stays the same for longer; a client that asks again keeps its name in the table."""

REMEMBERED: Final = 65_536
"""Questions whose record is known to be kept; one that was forgotten is recorded again."""

_AGAIN: Final = 1024  # answers that are ready to be given again; to who asks for more, they are made anew
_AT_ONCE: Final = 256  # datagrams whose records are on their way; more are dropped, and their clients ask again
_A_TURN: Final = 64  # datagrams before others get their turn
_MALFORMED_KEPT: Final = 64
_STREAM_IDLE: Final = 10.0  # seconds a client may be silent between two questions over TCP (RFC 7766 §6.2.3)
_LOCALHOST: Final = {dns.A: IPv4Address("127.0.0.1").packed, dns.AAAA: IPv6Address("::1").packed}


class _Outcome(NamedTuple):
    """How a question is answered: a code, and the data of one record of the asked type or none. `items` are to be kept
    first; `upstream`: the name that others are to be asked about; `stand_in`: what the answer says of which name."""

    code: int
    data: bytes | None = None
    items: list[Item] | None = None
    upstream: str = ""
    stand_in: tuple[str, IPv4Address] | None = None

    def reply(self, question: Question) -> bytes:
        """The message."""
        data = self.data
        return write_answer(question, self.code, () if data is None else ((question.kind, SECONDS_TO_LIVE, data),))


class _Again(NamedTuple):
    """An answer that was given, without its number, and what it holds under."""

    policy: Policy
    has_ipv6: bool
    stand_in: tuple[str, IPv4Address] | None
    rest: bytes


class NameServer:
    """The questions of one run."""

    def __init__(self, server: Server) -> None:
        self._server = server
        reserved = (rule.pattern.network for rule in server.policy.rules.allow if rule.pattern.network is not None)
        self.stand_ins = server.stand_ins = StandIns(reserved=reserved)
        self._kept: OrderedDict[tuple[bytes, int], Receipt] = OrderedDict()
        self._again: dict[bytes, _Again] = {}  # by the query without its number
        self._malformed: set[str] = set()
        self._to_hurry = False  # whether records were handed over that clients wait for
        self._waiting = 0  # datagrams

    def at_once(self, data: bytes) -> bytes | Question:
        """The answer where nothing is to be recorded or waited for; else the question, for `answer`."""
        again = self._again.get(data[2:])
        if (
            again is not None
            and again.policy is self._server.policy
            and again.has_ipv6 is self._server.has_ipv6
            and (again.stand_in is None or self.stand_ins.keeps(*again.stand_in))
        ):
            return data[:2] + again.rest
        try:
            question = read_query(data)
        except Unanswerable as error:
            self._note(str(error))
            return error.reply
        if _key(question) in self._kept:
            outcome = self._judge(question, None)
            if not outcome.upstream and self._kept[_key(question)] is _KEPT:
                reply = outcome.reply(question)
                self._remember(data, question, outcome, reply)
                return reply
        return question

    def _remember(self, data: bytes, question: Question, outcome: _Outcome, reply: bytes) -> None:
        """Keep the answer ready, if it stays the same: what a PTR says and what a full table does change."""
        refused = outcome.code == dns.REFUSED and question.kind != dns.PTR
        if not (refused or outcome.stand_in) or len(data) > dns.PLAIN_UDP:
            return
        server = self._server
        self._again[data[2:]] = _Again(server.policy, server.has_ipv6, outcome.stand_in, reply[2:])
        if len(self._again) > _AGAIN:
            del self._again[next(iter(self._again))]

    async def answer(self, question: Question, process: Callable[[], Attributed | None]) -> bytes:
        """The answer, once its record is kept. Raises what a lost supervisor raises."""
        outcome, receipt = self._begin(question, process)
        if receipt is not None:
            await receipt.wait()
            self._is_kept(question)
        if outcome.upstream:
            return await self._ask(question, outcome.upstream, udp=False)
        return outcome.reply(question)

    def answer_later(self, question: Question, datagram: Datagram, *, hurry: bool = False) -> None:
        """The same to a datagram, without a task that would wait for the loop's next rounds: half the time. `hurry`:
        have the record passed on at once."""
        if self._waiting >= _AT_ONCE:
            return
        server = self._server
        try:
            outcome, receipt = self._begin(question, lambda: datagram.process(server, PORT))
        except Exception as error:  # a fault of ours: this client gets no answer
            server.note(error)
            return

        if hurry:
            self.hurry()
        # while the record is on its way
        reply = b"" if outcome.upstream else outcome.reply(question)

        def kept(error: BaseException | None) -> None:
            self._waiting -= 1
            if error is not None:  # the supervisor is gone
                return
            self._is_kept(question)
            if outcome.upstream:
                self._waiting += 1
                server.start(self._pass_on(question, outcome.upstream, datagram))
            else:
                datagram.reply(reply)

        self._waiting += 1
        (receipt or _KEPT).then(kept)

    def hurry(self) -> None:
        """Have records passed on that clients wait for."""
        if self._to_hurry:
            self._to_hurry = False
            self._server.sink.hurry()

    def _begin(
        self, question: Question, process: Callable[[], Attributed | None]
    ) -> tuple[_Outcome, Receipt | None]:
        """How it is answered, and the receipt to wait for before."""
        key = _key(question)
        known = self._kept.get(key)
        outcome = self._judge(question, process if known is None else None)
        if known is None and outcome.items is not None:
            known = self._kept[key] = self._server.sink.submit(self._server.run, outcome.items)
            self._to_hurry = True
            if len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)
        return outcome, known

    def _is_kept(self, question: Question) -> None:
        key = _key(question)
        if key in self._kept:
            self._kept[key] = _KEPT

    async def _pass_on(self, question: Question, name: str, datagram: Datagram) -> None:
        try:
            datagram.reply(await self._ask(question, name, udp=True))
        except (OSError, DeadlinePassed):
            pass
        except Exception as error:
            self._server.note(error)
        finally:
            self._waiting -= 1

    async def _ask(self, question: Question, name: str, *, udp: bool) -> bytes:
        from doorward.proxy.dns_upstream import ask

        return await ask(self._server, question, name, udp=udp)

    def _note(self, sentence: str) -> None:
        """A message that is no question; each kind of fault once."""
        if sentence not in self._malformed and len(self._malformed) < _MALFORMED_KEPT:
            self._malformed.add(sentence)
            self._server.sink.post(self._server.run, [records.malformed(PROTOCOL, 400, f"DNS: {sentence}.")])

    def _judge(self, question: Question, process: Callable[[], Attributed | None] | None) -> _Outcome:
        if question.kind == dns.PTR:
            pointed = self._pointed(question, process)
            if pointed is not None:
                return pointed
        try:
            name = question.name
            if name.count(b".") >= max(len(question.labels), 1):
                raise MalformedHost("a label of the name holds a dot")
            host = parse_host(name.decode("ascii", "replace"))
        except MalformedHost as error:
            return self._malformed_name(question, str(error))
        if isinstance(host, Address):
            return self._malformed_name(question, "an address is not looked up")
        if host.text == "localhost" or host.text.endswith(".localhost"):  # RFC 6761 §6.3
            data = _LOCALHOST.get(question.kind)
            return _Outcome(dns.NOERROR, data)
        policy = self._server.policy
        decision = policy.decide_name(host)
        if decision.effect is Effect.DENY:
            message = decision.message.replace(f"{host.text}:{decision.port}", host.text, 1)
            return self._refused(question, decision.at_port(PORT, message), process)
        addresses = question.kind in (dns.A, dns.AAAA)
        if not addresses and question.type_text not in policy.rules.record_types(host):
            return self._other_type(question, host, decision, process)
        rule = decision.rule
        if rule is not None and rule.pattern.kind is not Kind.EXACT:
            why = why_it_carries_data(host.text.removesuffix(rule.pattern.name).rstrip("."))
            if why is not None:
                decision = decision.refused(Reason.NOT_ALLOWED, Source.BASELINE_POLICY, "")
                said = Words(f"{host.text} {why}", f"--allow {host.text}", host.text)
                return self._refused(question, decision._replace(port=PORT, said=said), process)
        if not addresses:
            items = None if process is None else [self._account(question, decision, process, None).closed(self._now)]
            return _Outcome(dns.NOERROR, None, items, host.text)
        address = self.stand_ins.address_of(host.text)
        if address is None:
            return _Outcome(dns.SERVFAIL)
        ip: IP = address
        if question.kind == dns.AAAA:
            if not self._server.has_ipv6:
                return _Outcome(dns.NOERROR)
            ip = ipv6_stand_in(address)
        items = None if process is None else [self._account(question, decision, process, ip).closed(self._now)]
        return _Outcome(dns.NOERROR, ip.packed, items, "", (host.text, address))

    def _other_type(
        self, question: Question, host: Name, decision: Decision, process: Callable[[], Attributed | None] | None
    ) -> _Outcome:
        kind = question.type_text
        message = f"{host.text} may be reached, but no rule lets its {kind} records be asked for"
        entry = table_text({"host": host.text, "dns": [kind]})
        refused = decision.refused(Reason.NOT_ALLOWED, Source.BASELINE_POLICY, message)._replace(
            port=PORT, said=Words(message, f"--allow '{entry}'", entry)
        )
        # browsers and resolvers ask for these beside every address, and do without
        return self._refused(question, refused, process, quiet=question.kind in (dns.HTTPS, dns.SVCB))

    def _pointed(self, question: Question, process: Callable[[], Attributed | None] | None) -> _Outcome | None:
        """A reverse look-up: the name that a stand-in stands for; of other addresses none is known here."""
        ip = pointed_at(question.labels)
        if ip is None:
            return None
        name = self.stand_ins.name_of(ip)
        if name is not None:
            return _Outcome(dns.NOERROR, dns.name_data(name))
        if stands_for_names(ip) or ip.is_loopback:
            return _Outcome(dns.NXDOMAIN)
        decision = Decision(
            Effect.DENY, Reason.NOT_ALLOWED, Source.BASELINE_POLICY, None, address_host(ip), PORT,
            f"the name of {ip} is not looked up: the sandbox's name server asks nobody",
        )  # fmt: skip
        return self._refused(question, decision, process, quiet=True)

    def _malformed_name(self, question: Question, why: str) -> _Outcome:
        shown = question.name[:100].decode("latin-1").encode("unicode_escape").decode("ascii")
        item = records.malformed(PROTOCOL, 400, f"The DNS question names no host ({why}): {shown}")
        return _Outcome(dns.REFUSED, None, [item])

    def _refused(
        self,
        question: Question,
        decision: Decision,
        process: Callable[[], Attributed | None] | None,
        *,
        quiet: bool = False,
    ) -> _Outcome:
        """`quiet`: on record, but not counted as a refusal that a person should hear of. Without `process` the record
        is kept already."""
        if process is None:
            return _Outcome(dns.REFUSED)
        account = self._account(question, decision, process, None)
        refusal = refusal_from(
            decision, protocol=PROTOCOL, method=question.type_text, host_text=account.host, port=PORT
        )
        items = account.refused(decision, refusal, self._now)
        return _Outcome(dns.REFUSED, None, items[:1] if quiet else items)

    def _account(
        self,
        question: Question,
        decision: Decision,
        process: Callable[[], Attributed | None],
        ip: IP | None,
    ) -> Account:
        decided = decision if decision.port == PORT else decision.at_port(PORT)
        account = Account(decided, PROTOCOL, question.type_text, self._now)
        account.requests = 1
        account.address = ip
        account.closed_by = "proxy"
        account.process = process()
        return account

    @property
    def _now(self) -> float:
        return self._server.loop.now


class _Kept:
    """Stands for a receipt that has come."""

    async def wait(self, deadline: float = 0.0) -> None:
        """It has come."""

    def then(self, function: Callable[[BaseException | None], None]) -> None:
        """It has come."""
        function(None)


_KEPT: Final = _Kept()


def names_of(server: Server) -> NameServer:
    """The server's one name server, made when the first question comes."""
    if server.names is None:
        server.names = NameServer(server)
    return server.names


async def serve_stream(connection: Connection) -> None:
    """Questions over TCP, each with its length before it (RFC 1035 §4.2.2), to the end of the connection."""
    names = names_of(connection.server)
    channel, loop = connection.channel, connection.loop
    kept = b""
    while True:
        connection.idle = not kept
        while len(kept) < 2 or len(kept) < 2 + int.from_bytes(kept[:2], "big"):
            data = await channel.recv(deadline=loop.now + _STREAM_IDLE)
            if not data:
                return
            kept += data
        size = int.from_bytes(kept[:2], "big")
        message, kept = kept[2 : 2 + size], kept[2 + size :]
        reply = names.at_once(message)
        if isinstance(reply, Question):
            reply = await names.answer(reply, connection.process)
        if not reply:
            return
        await channel.send(len(reply).to_bytes(2, "big") + reply, loop.now + _STREAM_IDLE)


async def serve_datagrams(server: Server, sock: _socket.socket, watch: Watch) -> None:
    """Questions over UDP, for as long as the door is open; those to a server that a `udp:` rule names go there."""
    names = names_of(server)
    relay: UdpRelay | None = None
    taken = 0
    while True:
        try:
            datagram = receive(sock)
        except BlockingIOError:
            names.hurry()  # with all that came together
            watch.can_read = False
            taken = 0
            await watch.readable()
            continue
        except OSError:  # an ICMP error of an earlier answer
            continue
        if server.policy.rules.udp is not None and datagram.to_another and (sent_to := datagram.sent_to) is not None:
            if relay is None:
                from doorward.proxy.udp_relay import UdpRelay

                relay = UdpRelay(server, PORT)
            if relay.allows(sent_to):
                relay.take(datagram)
                continue
        reply = names.at_once(datagram.data)
        if isinstance(reply, bytes):
            datagram.reply(reply)
        else:
            names.answer_later(reply, datagram, hurry=taken == 0)  # most often it comes alone
        taken += 1
        if taken % _A_TURN == 0:
            await server.loop.turn()


def _key(question: Question) -> tuple[bytes, int]:
    """Names are the same in any case. The lengths of labels stay in, so that a dot in one is no other name's."""
    return question.raw[:-4].lower(), question.kind

"""The sandbox's name server: answers with addresses that stand for names, over UDP and TCP; asks nobody.

- An address is given for a name that some rule could allow, or that somebody could be asked about: it stands for that
  name and means nothing else (`stand_ins`). The real look-up is the proxy's, once, when a connection to it is dialled.
- Everything else is REFUSED: other names, other types of records unless a rule lists them, names that carry data.
- Each distinct question is one record, which is kept before it is answered.
- Whatever server a client asks, the answer comes from the address it asked: the sockets listen on every address.
"""

from __future__ import annotations

import _socket
from ipaddress import IPv4Address

from doorward.named_tuple import NamedTuple
from doorward.plain_collections import OrderedDict
from doorward.proxy import dns_message as dns
from doorward.proxy import records
from doorward.proxy.datagram import Datagram, receive
from doorward.proxy.dns_message import Question, Unanswerable, read_query
from doorward.proxy.name_judgement import PORT, PROTOCOL, Judgement, Outcome
from doorward.proxy.sibling_names import Siblings
from doorward.proxy.stand_ins import StandIns, ipv6_stand_in
from doorward.proxy.task import DeadlinePassed, Watch
from doorward.start_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from doorward.proxy.connection import Connection
    from doorward.proxy.policy import Policy
    from doorward.proxy.records import Attributed, Receipt
    from doorward.proxy.server import Server
    from doorward.proxy.udp_relay import UdpRelay

REMEMBERED: Final = 65_536
"""Questions whose record is known to be kept; one that was forgotten is recorded again."""

_AGAIN: Final = 1024  # answers that are ready to be given again; to who asks for more, they are made anew
_AT_ONCE: Final = 256  # datagrams whose records are on their way; more are dropped, and their clients ask again
_A_TURN: Final = 64  # datagrams before others get their turn
_MALFORMED_KEPT: Final = 64
_STREAM_IDLE: Final = 10.0  # seconds a client may be silent between two questions over TCP (RFC 7766 §6.2.3)


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
        self._judgement = Judgement(server, self.stand_ins)
        self._kept: OrderedDict[tuple[bytes, int], Receipt] = OrderedDict()
        self._again: dict[bytes, _Again] = {}  # by the query without its number
        self._siblings = Siblings()
        self._process: tuple[Attributed, str] = "", '""'  # the one that asked last, and its JSON
        self._malformed: set[str] = set()
        self._to_hurry = False  # whether records were handed over that clients wait for
        self.waiting = 0  # datagrams whose records are on their way

    def again(self, data: bytes) -> bytes | None:
        """The answer that was given to the same question, if it is ready and still holds."""
        again = self._again.get(data[2:])
        if (
            again is not None
            and again.policy is self._server.policy
            and again.has_ipv6 is self._server.has_ipv6
            and (again.stand_in is None or self.stand_ins.keeps(*again.stand_in))
        ):
            return data[:2] + again.rest
        return None

    def at_once(self, data: bytes) -> bytes | Question:
        """The answer where nothing is to be recorded or waited for; else the question, for `answer`."""
        try:
            question = read_query(data)
        except Unanswerable as error:
            self._note(str(error))
            return error.reply
        if _key(question) in self._kept:
            outcome = self._judgement.judge(question, None)
            if not outcome.upstream and self._kept[_key(question)] is _KEPT:
                reply = outcome.reply(question)
                self._remember(data, question, outcome, reply)
                return reply
        return question

    def _remember(self, data: bytes, question: Question, outcome: Outcome, reply: bytes) -> None:
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
            self._is_kept(_key(question))
        if outcome.upstream:
            return await self._ask(question, outcome.upstream, udp=False)
        return outcome.reply(question)

    def take(self, datagram: Datagram, *, hurry: bool = False) -> None:
        """Answer a datagram, at once or when its record is kept, without a task that would wait for the loop's next
        rounds: half the time. `hurry`: have the record passed on at once."""
        reply = self.again(datagram.data)
        if reply is not None:
            self._reply(datagram, reply)
            return
        try:
            if self._as_sibling(datagram, hurry=hurry):
                return
            question = self.at_once(datagram.data)
            if isinstance(question, bytes):
                self._reply(datagram, question)
            else:
                self._answer_later(question, datagram, hurry=hurry)
        except Exception as error:  # a fault of ours: this client gets no answer
            self._server.note(error)

    def _as_sibling(self, datagram: Datagram, *, hurry: bool) -> bool:
        """Answer a question about a new name for which nearly all is ready (`sibling_names`). False for any other:
        nothing has happened then."""
        server, data = self._server, datagram.data
        ready = self._siblings.find(data, server.policy)
        asked = None if ready is None else ready.read(data)
        if ready is None or asked is None or self.waiting >= _AT_ONCE:
            return False
        name, raw = asked
        key = raw, ready.kind
        if key in self._kept:
            return False
        packed, address = b"", ""
        if ready.allowed:
            number = self.stand_ins.number_of(name)
            if number is None:
                return False
            if key[1] == dns.A:
                packed = number.to_bytes(4, "big")
                address = _socket.inet_ntoa(packed)
            else:
                ip = ipv6_stand_in(IPv4Address(number))
                packed, address = ip.packed, str(ip)
        process = datagram.process(server, PORT)
        if process is None:
            return False
        if process is not self._process[0]:
            self._process = process, dumps(process)
        form, strings = ready.record(name, records.new_connection_id(), self._process[1], address)
        reply = ready.reply(data, packed)
        receipt = server.sink.submit_form(server.run, form, strings, hurry=hurry, unless=datagram.fileno())
        self._note_receipt(key, receipt or _KEPT, hurry=hurry)
        if receipt is None:
            self._reply(datagram, reply)
            return True

        def kept(error: BaseException | None) -> None:
            self.waiting -= 1
            if error is None:
                self._is_kept(key)
                self._reply(datagram, reply)

        self.waiting += 1
        receipt.then(kept)
        return True

    def _answer_later(self, question: Question, datagram: Datagram, *, hurry: bool) -> None:
        """As `answer`, to a datagram."""
        if self.waiting >= _AT_ONCE:
            return
        server, policy = self._server, self._server.policy
        unless = datagram.fileno() if hurry else -1
        outcome, receipt = self._begin(question, lambda: datagram.process(server, PORT), hurry=hurry, unless=unless)
        # while the record is on its way
        reply = b"" if outcome.upstream else outcome.reply(question)

        def kept(error: BaseException | None) -> None:
            self.waiting -= 1
            if error is not None:  # the supervisor is gone
                return
            self._is_kept(_key(question))
            if outcome.upstream:
                self.waiting += 1
                server.start(self._pass_on(question, outcome.upstream, datagram))
                return
            self._reply(datagram, reply)
            if outcome.decision is not None and outcome.items is not None:
                items, decision = outcome.items, outcome.decision
                self._siblings.learn(datagram.data, policy, question, decision, items, reply, outcome.data)

        self.waiting += 1
        (receipt or _KEPT).then(kept)

    def _reply(self, datagram: Datagram, reply: bytes) -> None:
        """Answer; what its client does now comes before what else there is to do."""
        datagram.reply(reply)
        self._server.loop.give_way()

    def hurry(self) -> None:
        """Have records passed on that clients wait for."""
        if self._to_hurry:
            self._to_hurry = False
            self._server.sink.hurry()

    def _begin(
        self,
        question: Question,
        process: Callable[[], Attributed | None],
        *,
        hurry: bool = False,
        unless: int = -1,
    ) -> tuple[Outcome, Receipt | None]:
        """How it is answered, and the receipt to wait for before."""
        key = _key(question)
        known = self._kept.get(key)
        outcome = self._judgement.judge(question, process if known is None else None)
        if known is None and outcome.items is not None:
            known = self._server.sink.submit(self._server.run, outcome.items, hurry=hurry, unless=unless)
            self._note_receipt(key, known, hurry=hurry)
        return outcome, known

    def _note_receipt(self, key: tuple[bytes, int], receipt: Receipt, *, hurry: bool) -> None:
        self._kept[key] = receipt
        if not hurry:
            self._to_hurry = True
        if len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)

    def _is_kept(self, key: tuple[bytes, int]) -> None:
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
            self.waiting -= 1

    async def _ask(self, question: Question, name: str, *, udp: bool) -> bytes:
        from doorward.proxy.dns_upstream import ask

        return await ask(self._server, question, name, udp=udp)

    def _note(self, sentence: str) -> None:
        """A message that is no question; each kind of fault once."""
        if sentence not in self._malformed and len(self._malformed) < _MALFORMED_KEPT:
            self._malformed.add(sentence)
            self._server.sink.post(self._server.run, [records.malformed(PROTOCOL, 400, f"DNS: {sentence}.")])


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
        reply = names.again(message) or names.at_once(message)
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
        names.take(datagram, hurry=not names.waiting)  # most often it comes alone
        taken += 1
        if taken % _A_TURN == 0:
            await server.loop.turn()


def _key(question: Question) -> tuple[bytes, int]:
    """Names are the same in any case. The lengths of labels stay in, so that a dot in one is no other name's."""
    return question.raw[:-4].lower(), question.kind

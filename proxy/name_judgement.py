"""How a question of the sandbox is answered, and what goes on record about it; nothing is sent or waited for here."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from doorward.allowlists.decision import Decision, Effect, Reason, Source, Words
from doorward.allowlists.host import Address, MalformedHost, Name, address_host, parse_host
from doorward.allowlists.pattern import Kind
from doorward.allowlists.rule import table_text
from doorward.named_tuple import NamedTuple
from doorward.proxy import dns_message as dns
from doorward.proxy import records
from doorward.proxy.carried_data import why_it_carries_data
from doorward.proxy.dns_message import Question, write_answer
from doorward.proxy.records import Account
from doorward.proxy.refusal import refusal_from
from doorward.proxy.stand_ins import StandIns, ipv6_stand_in, pointed_at, stands_for_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from doorward.proxy.records import Attributed, Item
    from doorward.proxy.resolver import IP
    from doorward.proxy.server import Server

PROTOCOL: Final = "dns"
PORT: Final = 53

SECONDS_TO_LIVE: Final = 60
"""Of an answer. A stand-in stays the same for longer; a client that asks again keeps its name in the table."""

_LOCALHOST: Final = {dns.A: IPv4Address("127.0.0.1").packed, dns.AAAA: IPv6Address("::1").packed}


class Outcome(NamedTuple):
    """How a question is answered: a code, and the data of one record of the asked type or none. `items` are to be kept
    first; `upstream`: the name that others are to be asked about; `stand_in`: what the answer says of which name;
    `decision`: what rules say about the name, where nothing else was looked at."""

    code: int
    data: bytes | None = None
    items: list[Item] | None = None
    upstream: str = ""
    stand_in: tuple[str, IPv4Address] | None = None
    decision: Decision | None = None

    def reply(self, question: Question) -> bytes:
        """The message."""
        data = self.data
        return write_answer(question, self.code, () if data is None else ((question.kind, SECONDS_TO_LIVE, data),))


class Judgement:
    """Of one run's questions. Without `process`, which tells who asked, nothing goes on record: it is there already."""

    def __init__(self, server: Server, stand_ins: StandIns) -> None:
        self._server = server
        self.stand_ins = stand_ins

    def judge(self, question: Question, process: Callable[[], Attributed | None] | None) -> Outcome:
        """The answer to one, which only changes when the policy does, or the table of stand-ins."""
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
            return Outcome(dns.NOERROR, data)
        policy = self._server.policy
        decision = policy.decide_name(host)
        if decision.effect is Effect.DENY:
            message = about_name(decision.words, host.text, decision.port)
            refused = self._refused(question, decision.at_port(PORT, message), process)
            return refused._replace(decision=decision)
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
            return Outcome(dns.NOERROR, None, items, host.text)
        address = self.stand_ins.address_of(host.text)
        if address is None:
            return Outcome(dns.SERVFAIL)
        ip: IP = address
        if question.kind == dns.AAAA:
            if not self._server.has_ipv6:
                return Outcome(dns.NOERROR)
            ip = ipv6_stand_in(address)
        items = None if process is None else [self._account(question, decision, process, ip).closed(self._now)]
        return Outcome(dns.NOERROR, ip.packed, items, "", (host.text, address), decision)

    def _other_type(
        self, question: Question, host: Name, decision: Decision, process: Callable[[], Attributed | None] | None
    ) -> Outcome:
        kind = question.type_text
        message = f"{host.text} may be reached, but no rule lets its {kind} records be asked for"
        entry = table_text({"host": host.text, "dns": [kind]})
        refused = decision.refused(Reason.NOT_ALLOWED, Source.BASELINE_POLICY, message)._replace(
            port=PORT, said=Words(message, f"--allow '{entry}'", entry)
        )
        # browsers and resolvers ask for these beside every address, and do without
        return self._refused(question, refused, process, quiet=question.kind in (dns.HTTPS, dns.SVCB))

    def _pointed(self, question: Question, process: Callable[[], Attributed | None] | None) -> Outcome | None:
        """A reverse look-up: the name that a stand-in stands for; of other addresses none is known here."""
        ip = pointed_at(question.labels)
        if ip is None:
            return None
        name = self.stand_ins.name_of(ip)
        if name is not None:
            return Outcome(dns.NOERROR, dns.name_data(name))
        if stands_for_names(ip) or ip.is_loopback:
            return Outcome(dns.NXDOMAIN)
        decision = Decision(
            Effect.DENY, Reason.NOT_ALLOWED, Source.BASELINE_POLICY, None, address_host(ip), PORT,
            f"the name of {ip} is not looked up: the sandbox's name server asks nobody",
        )  # fmt: skip
        return self._refused(question, decision, process, quiet=True)

    def _malformed_name(self, question: Question, why: str) -> Outcome:
        shown = question.name[:100].decode("latin-1").encode("unicode_escape").decode("ascii")
        item = records.malformed(PROTOCOL, 400, f"The DNS question names no host ({why}): {shown}")
        return Outcome(dns.REFUSED, None, [item])

    def _refused(
        self,
        question: Question,
        decision: Decision,
        process: Callable[[], Attributed | None] | None,
        *,
        quiet: bool = False,
    ) -> Outcome:
        """`quiet`: on record, but not counted as a refusal that a person should hear of. Without `process` the record
        is kept already."""
        if process is None:
            return Outcome(dns.REFUSED)
        account = self._account(question, decision, process, None)
        refusal = refusal_from(
            decision, protocol=PROTOCOL, method=question.type_text, host_text=account.host, port=PORT
        )
        items = account.refused(decision, refusal, self._now)
        return Outcome(dns.REFUSED, None, items[:1] if quiet else items)

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


def about_name(words: Words, name: str, port: int) -> str:
    """The sentence of a decision about a name on a port, as one about the name alone."""
    return words.message.replace(f"{name}:{port}", name, 1)

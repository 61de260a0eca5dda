"""Asks the machine's own name servers for records that a rule lets be asked about: TXT, MX, SRV and the like.

By dnspython, in a worker thread, imported with the first such question: it costs over 100 ms, and few runs ask one.
"""

from __future__ import annotations

from doorward.proxy import dns_message
from doorward.proxy.task import DeadlinePassed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.dns_message import Question
    from doorward.proxy.server import Server


async def ask(server: Server, question: Question, name: str, *, udp: bool) -> bytes:
    """The answer for the client, in wire form: the servers' answer section under the client's own question. SERVFAIL
    where they say nothing in time."""
    seconds = server.policy.limits.resolve_time
    servers = server.name_servers
    room = (question.udp_size or dns_message.PLAIN_UDP) if udp else 65_535
    try:
        answer = await server.loop.in_thread(
            lambda: _asked(name, question, seconds, servers, room), server.loop.now + seconds + 1
        )
    except DeadlinePassed:
        return dns_message.write_answer(question, dns_message.SERVFAIL)
    return dns_message.cut_short(question) if answer is None else answer


def _asked(
    name: str, question: Question, seconds: float, servers: tuple[tuple[str, int], ...] | None, room: int
) -> bytes | None:
    """In the worker thread. None where the answer has no room."""
    import dns.exception
    import dns.flags
    import dns.message
    import dns.rcode
    import dns.rdatatype
    import dns.resolver

    kind = dns.rdatatype.RdataType.make(question.kind)
    query = dns.message.make_query(f"{name}.", kind)
    query.id = question.number
    reply = dns.message.make_response(query, recursion_available=True)
    try:
        resolver = dns.resolver.Resolver(configure=servers is None)
        if servers is not None:
            resolver.nameservers = [host for host, _ in servers]
            resolver.port = servers[0][1]
        found = resolver.resolve(f"{name}.", kind, raise_on_no_answer=False, lifetime=seconds)
        reply.answer = found.response.answer
    except dns.resolver.NXDOMAIN:
        reply.set_rcode(dns.rcode.NXDOMAIN)
    except (dns.exception.DNSException, OSError):
        reply.set_rcode(dns.rcode.SERVFAIL)
    if question.udp_size is not None:
        reply.use_edns(0, payload=4096)
    try:
        return reply.to_wire(max_size=room)
    except dns.exception.TooBig:
        return None

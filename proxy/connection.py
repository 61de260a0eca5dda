"""One client connection: told apart by its first byte, then served; and what all its protocols share.

What is promised here for every protocol: a record is kept before its answer is sent; a last answer arrives, whatever
the client still sends; at the end each account becomes one record.
"""

from __future__ import annotations

from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Host, host_text
from doorward.proxy import records
from doorward.proxy.admission import NotAdmitted, Unreachable, settle
from doorward.proxy.channel import Channel, linger
from doorward.proxy.http_connection import serve_http
from doorward.proxy.records import Account
from doorward.proxy.refusal import Refusal, refusal_from
from doorward.proxy.task import DeadlinePassed, HungUp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeAlias

    from doorward.proxy.http1_message import RequestHead
    from doorward.proxy.records import Attributed
    from doorward.proxy.resolver import IP
    from doorward.proxy.server import Server
    from doorward.proxy.target import Target

    Entry: TypeAlias = "Callable[[Connection], Coroutine[Any, None, None]]"

LINGER_TIME = 5.0
"""Seconds a client gets to take the last answer and close."""

LINGER_BYTES = 256 * 1024 * 1024
"""Bytes a client may still send meanwhile; they are read and dropped."""

_ACCOUNTS = 64
"""Most accounts held open at once; a client that asks for more hosts on one connection gets several records."""

_SOCKS5 = 5


class Connection:
    """A client connection of `server`. `idle`: between two requests, so that a drain may end it."""

    __slots__ = ("_accounts", "_entry", "_latest", "_process", "channel", "deadline", "idle", "loop", "original",
    "server")  # fmt: skip

    def __init__(self, server: Server, channel: Channel, entry: Entry | None = None) -> None:
        self.server = server
        self.loop = server.loop
        self.channel = channel
        self.idle = True
        self.deadline = self.loop.now + server.policy.limits.head_time
        self.original: tuple[IP, int] | None = None  # where the client believes it is connected, if not to us
        self._entry = entry
        self._process: Attributed | None = None
        self._accounts: list[Account] = []
        self._latest: Account | None = None  # of them

    async def serve(self) -> None:
        """Serve it to its end and close it. A fault of ours is the server's to note."""
        channel = self.channel
        try:
            try:
                if self._entry is not None:
                    await self._entry(self)
                    return
                first = channel.try_recv()
                if first is None:
                    first = await channel.recv(deadline=self.deadline)
                if not first:
                    return
                if first[0] == _SOCKS5:
                    from doorward.proxy.socks5_connection import serve_socks5

                    await serve_socks5(self, first)
                else:
                    await serve_http(self, first)
            except (OSError, DeadlinePassed):
                pass  # the client broke off, or takes nothing more
            finally:
                if self._accounts:
                    self._settle_accounts()
        except Exception as error:  # a fault of ours must not take the other connections with it
            self.server.note(error)
            channel.abort()
        finally:
            channel.close()
            self.server.ended(self)

    def judge(self, request: RequestHead, target: Target) -> Decision:
        """What the rules say to a plain request, whatever that is; the same for as long as the policy is. Raises
        NotAdmitted."""
        policy = self.server.policy
        host, port = target.host, target.port
        known = policy.decide(host, port)
        inspection = policy.inspection
        if inspection is not None and inspection.secrets and known.effect is Effect.ALLOW:
            from doorward.proxy.inspection.plain import leak_in_plain

            leak_in_plain(inspection.secrets, known, request, target.path)
        if known.rule is not None and known.rule.limited:
            known = policy.admit(
                host,
                port,
                request.method,
                target.path.decode("latin-1"),
                ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in request.headers),
                visible=True,
                upgrade=request.upgrade is not None,
            )
        return known

    async def settle(self, protocol: str, method: str, known: Decision) -> Decision:
        """An allow out of what was judged, by asking where the rules ask. Raises as `decide`."""
        server = self.server
        try:
            return await settle(server.policy, known, protocol, server.asking, self.channel)
        except HungUp:
            message = f"{known.message}, and the client left before an answer"
            decision = known.refused(Reason.NOT_ANSWERED, Source.DECIDER, message)
            refusal = refusal_from(
                decision, protocol=protocol, method=method, host_text=host_text(known.host), port=known.port
            )
            server.sink.post(server.run, records.refused(decision, refusal, self.loop.now, self.process()))
            raise ConnectionAbortedError from None

    def process(self) -> Attributed | None:
        """Which process this connection belongs to; looked up once. None for a door that is no sandbox's."""
        if self._process is None and self.server.attribution is not None:
            self._process = self.server.attribution.of_connection(self.channel.sock, self.original)
        return self._process

    def account(self, decision: Decision, protocol: str, method: str) -> Account:
        """The account of this decision; a new one's record is on its way: wait for `receipt`, if there is one, before
        any answer."""
        latest = self._latest
        if latest is not None and latest.decision is decision and latest.protocol == protocol:
            latest.requests += 1
            return latest
        account = self._account_of(decision, protocol)
        if account is None:
            if len(self._accounts) >= _ACCOUNTS:
                self._settle_accounts()
            account = Account(decision, protocol, method, self.loop.now)
            self._accounts.append(account)
            account.process = self.process()
            sink = self.server.sink
            if sink.keeps:
                account.receipt = sink.submit(self.server.run, [account.opened()])
        account.requests += 1
        self._latest = account
        return account

    def _account_of(self, decision: Decision, protocol: str) -> Account | None:
        """The one for the same host, port and rule: few connections have more than one."""
        for account in self._accounts:
            known = account.decision
            if (
                known.rule is decision.rule
                and known.port == decision.port
                and account.protocol == protocol
                and known.host == decision.host
            ):
                return account
        return None

    def _take(self, account: Account) -> None:
        self._accounts.remove(account)
        self._latest = None

    async def refused(self, no: NotAdmitted | Decision, protocol: str, method: str, host: Host, port: int) -> Refusal:
        """Keep the record of a refusal; then it may be told."""
        decision = no.decision if isinstance(no, NotAdmitted) else no
        refusal = refusal_from(decision, protocol=protocol, method=method, host_text=host_text(host), port=port)
        items = records.refused(decision, refusal, self.loop.now, self.process())
        await self.server.sink.submit(self.server.run, items).wait()
        return refusal

    async def failed(self, failure: Unreachable, decision: Decision, protocol: str, method: str) -> None:
        """Keep the record of an allowed request that got nowhere; then it may be told."""
        account = self._account_of(decision, protocol)
        if account is not None:
            self._take(account)
        else:
            account = Account(decision, protocol, method, self.loop.now)
            account.process = self.process()
            account.requests = 1
        account.closed_by = "proxy" if failure.error_class.startswith("dns") else "server"
        account.error = f"{failure.error_class}: {failure.sentence}"
        await self.server.sink.submit(self.server.run, [account.closed(self.loop.now)]).wait()

    async def disagreed(self, account: Account, decision: Decision, protocol: str) -> None:
        """Keep the record of a tunnel that was opened and then refused."""
        refusal = refusal_from(
            decision,
            protocol=protocol,
            method=account.method,
            host_text=host_text(decision.host),
            port=decision.port,
        )
        if account in self._accounts:
            self._take(account)
        await self.server.sink.submit(self.server.run, account.refused(decision, refusal, self.loop.now)).wait()

    async def say_last(self, answer: bytes, closed_by: str = "proxy") -> None:
        """Send the connection's last bytes and see that they arrive."""
        deadline = self.loop.now + LINGER_TIME
        if answer:
            await self.channel.send(answer, deadline)
        self._settle_accounts(closed_by)  # nothing more is forwarded, however long the client takes to leave
        await linger(self.channel, deadline, LINGER_BYTES)

    def _settle_accounts(self, closed_by: str | None = None) -> None:
        """Hand over the records of all accounts; `closed_by` where the accounts do not know it themselves."""
        if self._accounts:
            accounts, self._accounts, self._latest = self._accounts, [], None
            if self.server.sink.keeps:
                items = []
                for account in accounts:
                    if closed_by is not None:
                        account.closed_by = closed_by
                    items.append(account.closed(self.loop.now))
                self.server.sink.post(self.server.run, items)

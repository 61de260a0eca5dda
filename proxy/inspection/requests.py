"""What is done with each request and response of an inspected connection, on mitmproxy's hooks.

- A request is held to what it may be at all (`strict`), looked through for credentials that do not belong there, then
  put to the door. Only after its yes are credentials put in, and the body let through.
- Where rules ask for GraphQL operations the body is read first, up to a bound.
- A fault of ours is an answer, never a way on: the request is not sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mitmproxy import http

from doorward.proxy.http1 import BadMessage
from doorward.proxy.inspection import answers
from doorward.proxy.inspection.credentials import (
    BodyWatch,
    Credential,
    Leak,
    Mirror,
    leak_in,
    replaced_header,
    replaced_target,
)
from doorward.proxy.inspection.door import Door, DoorGone, NoConnection, Refused
from doorward.proxy.inspection.evidence import Evidence
from doorward.proxy.inspection.operations import may_hold_operations, operations_in_body, operations_in_target
from doorward.proxy.inspection.sigv4 import CannotSign, authorization, needs_body, signed_with
from doorward.proxy.inspection.streams import ANSWERED, HELD_FOR_JUDGEMENT, LEAKED
from doorward.proxy.inspection.strict import check_http2, names_disagree

if TYPE_CHECKING:
    from doorward.proxy.inspection.worker import Setting

_USED = "doorward.used"  # key of a flow's metadata: the credentials that were put in
_MAY_HOLD = "doorward.may-hold"  # the same: those that may be put in
_EVIDENCE = "doorward.evidence"

log = logging.getLogger("doorward.inspection")


class Requests:
    """Those of one connection. `stop` ends it; `failed` is set where the way to the server failed."""

    def __init__(self, setting: Setting, door: Door, message: Mapping[str, Any], stop: Callable[[], None]) -> None:
        self.door = door
        self.name: str = message["tunnel"]
        self.host: str = message["host"]
        self.port: int = message["port"]
        self.tls: bool = message["tls"]
        self.failed: NoConnection | None = None
        self._stop = stop
        self._record = setting.record
        self._limits = setting.limits
        self._fingerprint_key = setting.fingerprint_key
        self._wanted = frozenset(message["headers"])
        self._graphql: bool = message["graphql"]
        self._at_home = frozenset(each for each in setting.credentials if each.name in message["credentials"])
        self._mine = tuple(each for each in setting.credentials if self.tls and each in self._at_home)
        self._signers = tuple(each for each in self._mine if each.place == "aws")
        # signers come last, since what others put in is among what is signed
        self._mine = (*(each for each in self._mine if each.place != "aws"), *self._signers)
        self._others = tuple(each for each in setting.credentials if each not in self._mine)
        self._noted: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def malformed(self, error: BadMessage) -> None:
        """Tell of a message that was not judged."""
        protocol = "https" if self.tls else "http"
        event = {"type": "malformed_request", "protocol": protocol, "status": error.status, "message": error.sentence}
        self.door.note(self.name, event)

    async def requestheaders(self, flow: http.HTTPFlow) -> None:
        """The head is there."""
        if flow.error is not None:
            return  # mitmproxy refuses it by itself
        await self._guarded(flow, self._take_up(flow))

    async def request(self, flow: http.HTTPFlow) -> None:
        """The body is there: of a request that waited for it, or of one that passed already."""
        if flow.metadata.pop(HELD_FOR_JUDGEMENT, None) and ANSWERED not in flow.metadata and flow.error is None:
            await self._guarded(flow, self._judge_with_body(flow))

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """The response's head is there."""
        if ANSWERED in flow.metadata or flow.response is None:
            return
        used = flow.metadata.get(_USED)
        passing: Any = None
        if used:
            passing = Mirror(used)
            flow.response.headers.fields = tuple(
                (name, passing.header(value)) for name, value in flow.response.headers.fields
            )
        evidence = flow.metadata.get(_EVIDENCE)
        if evidence is not None:
            evidence.response(flow.response)
            passing = evidence.watching("response", passing)
        flow.response.stream = passing or True

    def response(self, flow: http.HTTPFlow) -> None:
        """The response is over."""
        self._keep(flow, None)

    def error(self, flow: http.HTTPFlow) -> None:
        """The exchange broke off."""
        self._keep(flow, None if flow.error is None else flow.error.msg)

    def _keep(self, flow: http.HTTPFlow, error: str | None) -> None:
        evidence = flow.metadata.pop(_EVIDENCE, None)
        if evidence is not None and ANSWERED not in flow.metadata:
            self.door.note(self.name, evidence.event(error))

    async def _guarded(self, flow: http.HTTPFlow, work: Any) -> None:
        try:
            await work
        except BadMessage as error:
            self.malformed(error)
            _answer(flow, answers.failure(error.status, "bad-request", error.sentence))
        except Refused as refused:
            _answer(flow, answers.refusal(refused.error_class, refused.body))
        except Exception as error:
            if not isinstance(error, DoorGone):
                log.error("a fault while a request was judged", exc_info=True)
            _answer(flow, answers.failure(503, "proxy-fault", "The request could not be judged."))
            self._stop()

    async def _take_up(self, flow: http.HTTPFlow) -> None:
        request: Any = flow.request
        if request.is_http2:
            check_http2(request, self._limits)
        said = names_disagree(request, self.host, self.port, tls=self.tls)
        if said is not None:
            message = f"the tunnel was opened to {self.host} port {self.port}, but a request in it names {said}"
            raise await self.door.refuse(self.name, "name_mismatch", message, request.method)
        await self._look_for_leaks(request, self._others)
        if self._graphql and may_hold_operations(request.method, request.headers.get("content-type", "")):
            flow.metadata[HELD_FOR_JUDGEMENT] = True
            return
        if self._signers and needs_body(_lower(request)):
            flow.metadata[HELD_FOR_JUDGEMENT] = True  # what was signed is told with its body
            return
        operations = operations_in_target(request.path) if self._graphql and request.method == "GET" else None
        await self._ask(flow, operations)
        self._let_go(flow)

    async def _judge_with_body(self, flow: http.HTTPFlow) -> None:
        request: Any = flow.request
        body = request.raw_content or b""
        await self._look_for_leaks_in((body.decode("latin-1"),), self._others, request.method)
        operations = None
        if self._graphql:
            headers = request.headers
            kind, encoding = headers.get("content-type", ""), headers.get("content-encoding", "")
            operations = operations_in_body(request.path, kind, encoding, body)
        await self._ask(flow, operations)
        await self._look_for_leaks_in((body.decode("latin-1"),), self._not_in(flow), request.method)
        self._let_go(flow, whole=True)

    async def _ask(self, flow: http.HTTPFlow, operations: tuple[str, ...] | None) -> None:
        """Have the door judge it; what it may hold is known then, and looked at once more."""
        request: Any = flow.request
        granted = await self.door.ask(
            self.name,
            {
                "method": request.method,
                "target": request.path,
                "headers": [
                    (name.lower(), value)
                    for name, value in request.headers.items(multi=True)
                    if name.lower() in self._wanted
                ],
                "operations": operations,
                "upgrade": _upgrade(request),
            },
        )
        flow.metadata[_MAY_HOLD] = tuple(each for each in self._mine if each.name in granted)
        await self._look_for_leaks(request, self._not_in(flow))

    def _not_in(self, flow: http.HTTPFlow) -> tuple[Credential, ...]:
        """Those for this host that no rule puts into this request."""
        return tuple(each for each in self._mine if each not in flow.metadata[_MAY_HOLD])

    def _let_go(self, flow: http.HTTPFlow, *, whole: bool = False) -> None:
        """The door said yes. `whole`: the body is here, and is sent with the head."""
        request: Any = flow.request
        failed = self.failed
        if failed is not None and not flow.server_conn.connected:
            self.failed = None
            more = {"host": self.host, "port": self.port}
            _answer(flow, answers.failure(failed.status, failed.error_class, failed.sentence, **more))
            return
        evidence = None
        if self._record != "off":
            evidence = Evidence(self.host, self.port, bodies=self._record == "bodies", key=self._fingerprint_key)
            flow.metadata[_EVIDENCE] = evidence
            evidence.request(request)
        if flow.metadata[_MAY_HOLD]:
            self._put_in(flow, request.raw_content if whole else None)
        watched = (*self._others, *self._not_in(flow))
        passing: Any = self._body_watch(flow, watched) if watched else None
        if evidence is not None:
            passing = evidence.watching("request", passing)
        if whole:
            if evidence is not None:
                passing(request.raw_content or b"")
        else:
            request.stream = passing or True

    # --- credentials -----------------------------------------------------------------------------------------------

    async def _look_for_leaks(self, request: Any, credentials: tuple[Credential, ...]) -> None:
        if credentials:
            texts = (request.path, *(value for _, value in request.headers.items(multi=True)))
            await self._look_for_leaks_in(texts, credentials, request.method)

    async def _look_for_leaks_in(
        self, texts: tuple[str, ...], credentials: tuple[Credential, ...], method: str
    ) -> None:
        leak = leak_in(texts, credentials)
        if leak is not None:
            raise await self.door.refuse(self.name, "credential_leak", self._leak_message(leak), method)

    def _leak_message(self, leak: Leak) -> str:
        what = "its value" if leak.real else "what stands for it"
        if leak.credential in self._at_home:
            how = "in a request that is allowed by no rule that names it" if self.tls else "without TLS"
            return f"the credential {leak.credential.name} ({what}) was about to be sent to {self.host} {how}"
        told = f"the credential {leak.credential.name} ({what}) was about to be sent to {self.host}"
        return f"{told}, which it is not for"

    def _body_watch(self, flow: http.HTTPFlow, credentials: tuple[Credential, ...]) -> BodyWatch:
        def leaked(leak: Leak) -> None:
            flow.metadata[LEAKED] = True
            task = asyncio.get_running_loop().create_task(self._leaked(leak, flow.request.method))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return BodyWatch(credentials, leaked)

    async def _leaked(self, leak: Leak, method: str) -> None:
        """A body is under way already, so there is no answer but the end."""
        try:
            await self.door.refuse(self.name, "credential_leak", f"{self._leak_message(leak)}, in a body", method)
        except DoorGone:
            pass
        self._stop()

    def _put_in(self, flow: http.HTTPFlow, body: bytes | None) -> None:
        request: Any = flow.request
        used = []
        mine: tuple[Credential, ...] = flow.metadata[_MAY_HOLD]
        before = request.method, request.path, _lower(request)
        try:
            signed = [(each, signed_with(each.placeholder, *before, body)) for each in mine if each.place == "aws"]
        except CannotSign as error:
            raise BadMessage(501, f"This request cannot be signed anew: {error}.") from None
        for each in mine:
            put = False
            fields = []
            for name, value in request.headers.fields:
                changed = replaced_header(each, name.decode("latin-1").lower(), value.decode("latin-1"))
                put = put or changed is not None
                fields.append((name, value if changed is None else changed.encode("latin-1")))
            request.headers.fields = tuple(fields)
            target = replaced_target(each, request.path)
            if target is not None:
                request.path, put = target, True
            how = next((how for signer, how in signed if signer is each), None)
            if how is not None:
                fresh = authorization(each.value, how, request.method, request.path, _lower(request))
                request.headers["authorization"], put = fresh, True
            if put:
                used.append(each)
                if each.name not in self._noted:
                    self._noted.add(each.name)
                    event = {"type": "credential_used", "credential": each.name, "place": each.place}
                    self.door.note(self.name, {**event, "host": self.host, "port": self.port})
        if used:
            flow.metadata[_USED] = used
            request.headers["accept-encoding"] = "identity"  # so that an echo can be seen


def _lower(request: Any) -> list[tuple[str, str]]:
    """The headers as signatures see them: names in lower case, the Host among them."""
    found = [(name.lower(), value) for name, value in request.headers.items(multi=True)]
    if request.is_http2 and not any(name == "host" for name, _ in found):
        found.append(("host", request.authority))
    return found


def _answer(flow: http.HTTPFlow, response: http.Response) -> None:
    if flow.request.is_http2:
        response.headers.pop("connection", None)
    flow.response = response
    flow.metadata[ANSWERED] = True


def _upgrade(request: Any) -> bool:
    """Whether it asks for another protocol; one that would be HTTP/2 in the clear is struck out (RFC 9113 §3.1)."""
    asked = request.headers.get("upgrade", "")
    if not asked or request.is_http2:
        return False
    if "h2c" in asked.lower():
        for name in ("upgrade", "http2-settings"):
            request.headers.pop(name, None)
        return False
    return True

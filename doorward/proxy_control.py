"""The control listener of the door alone: health, metrics, refusals, reload; on loopback or a unix socket only.

Browsers can be made to send requests to loopback. So a request must name this listener as its Host (else a name that
was rebound to 127.0.0.1 would do), and one that says it comes from a page (Origin) is refused.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Any, NamedTuple

from aiohttp import web

from doorward.errors import UsageError
from doorward.listen_address import ListenAddress, bound_address, open_listeners, parse_listen
from doorward.standalone_proxy import Reloaded, StandaloneProxy

_UNIX = "unix:"
_RELOAD_TIME = 60.0  # seconds
_QUEUED = 1000  # refusals a slow listener may be behind before it misses some
_HEARTBEAT = 15.0  # seconds of silence in a stream after which its reader is told that it still lives

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ControlSocket(NamedTuple):
    """`path` is that of a unix socket, else empty."""

    sock: socket.socket
    path: str


def open_control(text: str) -> ControlSocket:
    """`unix:PATH` or `127.0.0.1:PORT`. Raises UsageError."""
    if text.startswith(_UNIX):
        path = os.path.abspath(text.removeprefix(_UNIX))
        return ControlSocket(_open_unix(path), path)
    address = parse_listen(text, "--control")
    if not ip_address(address.host).is_loopback:
        raise UsageError(
            f"doorward proxy: --control {text}: the control listener is for this machine alone; "
            "--control 127.0.0.1:PORT or --control unix:PATH"
        )
    return ControlSocket(open_listeners(address, 1, "--control")[0], "")


def _open_unix(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # the socket is 0600 from the moment it is there
    try:
        _remove_stale(path)
        sock.bind(path)
        sock.listen(64)
    except OSError as error:
        sock.close()
        why = "another program listens there" if error.errno == errno.EADDRINUSE else str(error.strerror or error)
        raise UsageError(
            f"doorward proxy: --control unix:{path}: {why}; name a free path in a folder of your own"
        ) from None
    finally:
        os.umask(before)
    return sock


def _remove_stale(path: str) -> None:
    """Remove the socket a program left that has ended. Raises OSError (EADDRINUSE) for any other file."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, "there is a file of that name")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise OSError(errno.EADDRINUSE, "taken")


class ControlListener:
    """The requests, answered from `proxy`."""

    def __init__(self, control: ControlSocket, proxy: StandaloneProxy) -> None:
        self._control = control
        self._proxy = proxy
        self._bound = bound_address(control.sock)
        self._inode = os.stat(control.path).st_ino if control.path else 0
        app = web.Application(middlewares=[self._guarded])
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/decisions", self._decisions)
        app.router.add_post("/reload", self._reload)
        self._runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=1.0)

    async def start(self) -> None:
        """Answer from now on."""
        await self._runner.setup()
        await web.SockSite(self._runner, self._control.sock).start()

    async def close(self) -> None:
        """End every request, and remove the unix socket if it is still this one."""
        await self._runner.cleanup()
        try:
            if self._control.path and os.stat(self._control.path).st_ino == self._inode:
                os.unlink(self._control.path)
        except OSError:
            pass

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        if not names_this(request.headers.get("Host", ""), self._bound):
            return _problem(403, "the Host header does not name this listener")
        if "Origin" in request.headers:
            return _problem(403, "this listener is for programs, not for pages")
        try:
            response = await handler(request)
        except web.HTTPException as error:
            return _problem(error.status, f"{request.method} {request.path}: {error.reason}", dict(error.headers))
        if not response.prepared:
            response.headers["Cache-Control"] = "no-store"
        return response

    async def _health(self, _: web.Request) -> web.StreamResponse:
        self._proxy.catch_up()
        health = self._proxy.health()
        return web.json_response(health, status=200 if health["ok"] else 503)

    async def _metrics(self, _: web.Request) -> web.StreamResponse:
        text = self._proxy.metrics_text()
        return web.Response(body=text.encode(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def _reload(self, _: web.Request) -> web.StreamResponse:
        done: asyncio.Future[Reloaded] = asyncio.get_running_loop().create_future()

        def settle(outcome: Reloaded) -> None:
            if not done.done():
                done.set_result(outcome)

        self._proxy.reload("POST /reload", settle)
        try:
            outcome = await asyncio.wait_for(done, _RELOAD_TIME)
        except TimeoutError:
            return _problem(504, "not every worker took the new rules in time")
        document = {"reloaded": not outcome.problem, "problem": outcome.problem, "notices": list(outcome.notices)}
        return web.json_response(document, status=409 if outcome.problem else 200)

    async def _decisions(self, request: web.Request) -> web.StreamResponse:
        self._proxy.catch_up()
        if request.query.get("stream") in (None, "", "0"):
            return web.json_response({"decisions": self._proxy.refusals.last()})
        return await self._stream(request)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Each refusal from now on: server-sent events for who asks for them, else a JSON object a line."""
        events = "text/event-stream" in request.headers.get("Accept", "")
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream" if events else "application/x-ndjson",
                "Cache-Control": "no-store",
            }
        )
        queue: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        missed = 0

        def hear(refusal: Mapping[str, Any] | None) -> None:
            nonlocal missed
            if refusal is not None and queue.qsize() >= _QUEUED:
                missed += 1
            else:
                queue.put_nowait(refusal)

        forget = self._proxy.refusals.listen(hear)
        try:
            await response.prepare(request)
            while True:
                try:
                    refusal = await asyncio.wait_for(queue.get(), _HEARTBEAT)
                except TimeoutError:
                    await response.write(b": alive\n\n" if events else b"\n")
                    continue
                if refusal is None:
                    return response
                document = dict(refusal)
                if missed:
                    document["missed_before"], missed = missed, 0
                line = json.dumps(document).encode("ascii")
                await response.write(b"event: refusal\ndata: " + line + b"\n\n" if events else line + b"\n")
        except ConnectionError:
            return response  # its reader left
        finally:
            forget()


def names_this(host: str, bound: ListenAddress | None) -> bool:
    """Whether a Host header is one that only a request meant for the listener carries. A unix socket (`bound` None)
    cannot be reached by a name that was rebound, and its clients send what they like."""
    if bound is None:
        return True
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit():
        name, port = host, "80"
    own = f"[{bound.host}]" if ":" in bound.host else bound.host
    return port == str(bound.port) and name.lower() in (own, "localhost")


def _problem(status: int, sentence: str, headers: Mapping[str, str] = {}) -> web.Response:
    kept = {name: value for name, value in headers.items() if name == "Allow"}
    return web.json_response({"error": sentence}, status=status, headers=kept)

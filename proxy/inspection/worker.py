"""The inspection worker's own process: `python -m doorward.proxy.inspection.worker SETUP LINK`, two descriptors.

SETUP is a socket to the supervisor: one line comes in, what is to be done; one line goes out, that it can begin or why
not. LINK leads to the door. When either ends, the worker does.

    {"folder": PATH, "names": [NAME, …] or null, "roots": PATH or null, "record": "off", "credentials": [{…}, …],
     "limits": {NAME: VALUE, …}}
    {"ready": {"bundle": PATH, "ca": PATH, "java": PATH}} or {"error": SENTENCE}
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any

_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)  # the supervisor decides what they mean


class Setting:
    """What all connections share."""

    def __init__(
        self,
        options: Any,
        server_side: Any,
        client_side: Any,
        limits: Any,
        credentials: Any = (),
        record: str = "off",
    ) -> None:
        self.record = record
        self.limits = limits
        self.fingerprint_key: bytes | None = None
        """The home's secret, where what is hidden in the record is to be asked for."""
        self.options = options
        self.server_side = server_side
        self.client_side = client_side
        self.credentials = tuple(credentials)


def main(arguments: list[str]) -> int:
    """Serve until the supervisor or the door is gone."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    _set_limits()
    setup = socket.socket(fileno=int(arguments[0]))
    link = socket.socket(fileno=int(arguments[1]))
    with setup.makefile("r", encoding="utf-8") as lines:
        line = lines.readline()
    if not line:
        return 0
    told = json.loads(line)
    try:
        setting, paths = prepare(told)
    except ImportError as error:
        _say(setup, {"error": f"inspection needs mitmproxy 12, and {error}"})
        return 1
    except OSError as error:
        _say(setup, {"error": f"inspection cannot begin: {error}"})
        return 1
    _say(setup, {"ready": paths})
    asyncio.run(_serve(setting, setup, link))
    return 0


def prepare(told: Mapping[str, Any]) -> tuple[Setting, Mapping[str, str]]:
    """Certificates, contexts, mitmproxy's options; where the files for the sandbox are. Raises ImportError, OSError."""
    from mitmproxy.options import Options

    from doorward.proxy.inspection import streams, tls_layers
    from doorward.proxy.inspection.certificates import Issuer, alone_in, authority
    from doorward.proxy.inspection.credentials import Credential
    from doorward.proxy.inspection.trust import system_roots, write_trust
    from doorward.proxy.inspection.upstream import ClientSide, ServerSide
    from doorward.proxy.limits import limits_from

    streams.install()
    tls_layers.install()
    roots = system_roots(told["roots"])
    limits = limits_from(told.get("limits") or {})
    paths: Mapping[str, str] = {}

    def issuer() -> Issuer:
        nonlocal paths
        with alone_in(told["folder"]):
            home = authority(told["folder"])
            paths = write_trust(told["folder"], home, roots)
        return home.issuer(told["names"])

    client_side = ClientSide(issuer)
    options = Options()
    for name, kind, value in (
        ("store_streamed_bodies", bool, False),
        ("connection_strategy", str, "lazy"),
        ("keep_host_header", bool, True),
        ("validate_inbound_headers", bool, True),
        ("body_size_limit", str | None, None),
        ("stream_large_bodies", str | None, None),
        ("tcp_timeout", int, max(1, round(limits.tunnel_idle_time))),
        ("websocket", bool, False),
        ("rawtcp", bool, True),
        ("http2", bool, True),
        ("http3", bool, False),
        ("http2_ping_keepalive", int, 0),
        ("normalize_outbound_headers", bool, True),
        ("http_connect_send_host_header", bool, True),
    ):
        if name in options:
            options.update(**{name: value})
        else:
            options.add_option(name, kind, value, "")
    credentials = map(Credential.told, told.get("credentials", ()))
    setting = Setting(options, ServerSide(roots), client_side, limits, credentials, told.get("record", "off"))
    if told.get("fingerprint_key"):
        setting.fingerprint_key = bytes.fromhex(told["fingerprint_key"])
    return setting, paths


async def _serve(setting: Setting, setup: socket.socket, link: socket.socket) -> None:
    from doorward.proxy.inspection.door import Door
    from doorward.proxy.inspection.handler import Inspection, Stream

    loop = asyncio.get_running_loop()
    handlers: dict[str, Inspection] = {}
    tasks: set[asyncio.Task[None]] = set()

    async def inspect(message: Mapping[str, Any], client: socket.socket) -> None:
        import base64

        stream = Stream()
        try:
            reader, writer = await stream.open(client, base64.b64decode(message["first"]))
        except OSError:
            door.closed(message["tunnel"], up=0, down=0, closed_by="client", error="connection reset by the client")
            return
        handler = handlers[message["tunnel"]] = Inspection(setting, door, message, stream, reader, writer)
        try:
            await handler.run()
        finally:
            del handlers[message["tunnel"]]

    def on_tunnel(message: Mapping[str, Any], client: socket.socket) -> None:
        task = loop.create_task(inspect(message, client))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def on_close(name: str) -> None:
        if name in handlers:
            handlers[name].stop()

    door = Door(link, on_tunnel, on_close)
    alone: asyncio.Future[None] = loop.create_future()
    loop.add_reader(setup.fileno(), _settle, alone)
    await asyncio.wait((door.ended, alone), return_when=asyncio.FIRST_COMPLETED)
    os._exit(0)  # everything here is descriptors


def _set_limits() -> None:
    """A tunnel takes two descriptors; and what is in memory here, credentials among it, is not for a core file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit, value in ((resource.RLIMIT_NOFILE, (most, most)), (resource.RLIMIT_CORE, (0, 0))):
        try:
            resource.setrlimit(limit, value)
        except (OSError, ValueError):
            pass


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _say(setup: socket.socket, message: Mapping[str, Any]) -> None:
    setup.sendall(json.dumps(message).encode("utf-8") + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`doorward proxy`: the network door alone, for containers, services and other sandboxes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from doorward.errors import UsageError
from doorward.listen_address import ANY_ADDRESS, bound_address, open_listeners, parse_listen, require_loopback
from doorward.options import HelpWanted, Option, Parsed, help_text, parse

if TYPE_CHECKING:
    import socket

    from doorward.callback_loop import EventLoop
    from doorward.client_environment import ClientEnvironment
    from doorward.proxy_control import ControlSocket
    from doorward.proxy_worker import WorkerSetup
    from doorward.watched_configuration import Loaded, WatchedConfiguration

_OPTIONS = (
    Option("listen", "where to accept HTTP and SOCKS5; port 0 takes a free one", "ADDR:PORT", repeat=True),
    Option("allow", "a host, address or @preset that may be reached", "RULE", repeat=True),
    Option("deny", "one that may not, whatever else allows it", "RULE", repeat=True),
    Option("inspect", "look into every tunnel, not only where a rule needs it"),
    Option("config", "any configuration key", "KEY=VALUE", "c", repeat=True),
    Option("profile", "a profile of $DOORWARD_HOME/profiles", "NAME"),
    Option("log-json", "one JSON record a line for each connection; - is standard output", "FILE"),
    Option("client-env", "a file for shells: the proxy, whom to trust, placeholders of credentials", "FILE"),
    Option("workers", "processes that share the connections (default: one a processor, at most 4)", "N"),
    Option("drain", "how long open connections may go on after SIGTERM (default 30)", "SECONDS"),
    Option("control", "health, metrics, refusals, reload: unix:PATH or 127.0.0.1:PORT", "WHERE"),
    Option(ANY_ADDRESS, "accept on addresses that other machines can reach"),
)
_USAGE = "doorward proxy --listen ADDR:PORT [options]"
_SUMMARY = "Run the network door alone: a proxy that reaches what its rules allow and refuses the rest with a reason."
_EXAMPLES = (
    "doorward proxy --listen 127.0.0.1:3128 --allow example.com --log-json -",
    "https_proxy=http://127.0.0.1:3128 curl https://example.com/",
)
_MOST_WORKERS = 256
_WORKERS_UNASKED = 4  # a process serves on one processor; each costs 3 MB
_DRAIN = 30.0  # seconds


def main(args: list[str]) -> int:
    """Serve until a signal ends it. Returns 0 after that, 2 for what was asked wrongly, 125 if it cannot serve."""
    try:
        parsed = parse("proxy", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(help_text(_USAGE, _SUMMARY, _OPTIONS, _EXAMPLES))
        return 0
    if parsed.words:
        raise UsageError(f"doorward proxy: {parsed.words[0]!r} is no option; doorward run -- CMD runs a command")
    return _serve(parsed)


def _serve(parsed: Parsed) -> int:
    from doorward import systemd
    from doorward.connection_log import ConnectionLog
    from doorward.proxy_worker import WorkerSetup
    from doorward.watched_configuration import WatchedConfiguration

    _fill_standard_streams()
    asked = _workers(parsed)
    drain = _seconds(parsed)
    addresses = [parse_listen(text) for text in parsed.all("listen")]
    require_loopback(addresses, parsed.has(ANY_ADDRESS))
    adopted = systemd.take_sockets(os.environ)
    if not addresses and not adopted:
        raise UsageError("doorward proxy: nowhere to listen; doorward proxy --listen 127.0.0.1:3128")
    bound = [address for sock in adopted if (address := bound_address(sock)) is not None]
    require_loopback(bound, parsed.has(ANY_ADDRESS), "ListenStream")
    configuration = WatchedConfiguration(_options(parsed), os.environ)
    loaded = configuration.load()
    workers = asked or _usual_workers(inspects=loaded.inspection is not None)
    log = ConnectionLog(_log_path(parsed.last("log-json"))) if parsed.has("log-json") else None
    control = _control(parsed.last("control")) if parsed.has("control") else None
    opened = [open_listeners(address, workers) for address in addresses]
    shared = [(*(each[place] for each in opened), *adopted) for place in range(workers)]
    setup = WorkerSetup(log, control is not None, drain, () if control is None else (control.sock,))
    where = ", ".join(_text(sock) for sock in shared[0])
    clients = _client_environment(parsed.last("client-env"), shared[0][0]) if parsed.has("client-env") else None
    if control is None:
        from doorward.callback_loop import CallbackLoop

        return _alone(CallbackLoop(), configuration, loaded, shared, setup, where, clients)
    return _controlled(control, configuration, loaded, shared, setup, where, clients)


def _alone(
    loop: EventLoop,
    configuration: WatchedConfiguration,
    loaded: Loaded,
    listeners: Sequence[Sequence[socket.socket]],
    setup: WorkerSetup,
    where: str,
    clients: ClientEnvironment | None,
) -> int:
    from doorward.standalone_proxy import StandaloneProxy

    try:
        return StandaloneProxy(loop, configuration, loaded, listeners, setup, where, clients).run()
    finally:
        loop.close()


def _controlled(
    control: ControlSocket,
    configuration: WatchedConfiguration,
    loaded: Loaded,
    listeners: Sequence[Sequence[socket.socket]],
    setup: WorkerSetup,
    where: str,
    clients: ClientEnvironment | None,
) -> int:
    import asyncio

    from doorward.proxy_control import ControlListener
    from doorward.standalone_proxy import StandaloneProxy, say

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        proxy = StandaloneProxy(loop, configuration, loaded, listeners, setup, where, clients)
        listener = ControlListener(control, proxy)
        loop.run_until_complete(listener.start())
        say(f"control on {f'unix:{control.path}' if control.path else _text(control.sock)}")
        try:
            return proxy.run()
        finally:
            loop.run_until_complete(listener.close())
    finally:
        loop.close()


def _fill_standard_streams() -> None:
    """Open what was closed before the start, so that no socket gets the number of standard error."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open("/dev/null", os.O_RDWR)  # takes the lowest free number, which is this one


def _options(parsed: Parsed) -> dict[str, Any]:
    """The document `opening.settings_for` reads."""
    flags: dict[str, Any] = {
        f"network.{name}": list(parsed.all(name)) for name in ("allow", "deny") if parsed.has(name)
    }
    if parsed.has("inspect"):
        flags["inspect.all"] = True
    return {
        "flags": flags,
        "overrides": list(parsed.all("config")),
        "profile": parsed.last("profile") or None,
    }


def _client_environment(path: str, sock: socket.socket) -> ClientEnvironment:
    from doorward.client_environment import ClientEnvironment

    host, port = sock.getsockname()[:2]
    loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return ClientEnvironment(path, f"http://{f'[{loopback}]' if ':' in loopback else loopback}:{port}")


def _control(text: str) -> ControlSocket:
    try:
        from doorward.proxy_control import open_control
    except ModuleNotFoundError as error:
        if error.name != "aiohttp":
            raise
        raise UsageError(
            "doorward proxy: --control needs aiohttp, which is not installed; pip install 'doorward[control]'"
        ) from None
    return open_control(text)


def _log_path(text: str) -> str:
    return text if text == "-" else os.path.abspath(text)


def _workers(parsed: Parsed) -> int | None:
    """How many are asked for, if any number is."""
    if not parsed.has("workers"):
        return None
    text = parsed.last("workers")
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= _MOST_WORKERS:
        raise UsageError(f"doorward proxy: --workers takes a number from 1 to {_MOST_WORKERS}, not {text!r}")
    return int(text)


def _usual_workers(*, inspects: bool) -> int:
    """As many as there are processors for them. One where something is inspected, since each has an inspection worker
    beside it, a large process; and where the kernel does not spread connections among listeners, as only Linux does."""
    if inspects or not hasattr(os, "sched_getaffinity"):
        return 1
    return min(len(os.sched_getaffinity(0)), _WORKERS_UNASKED)


def _seconds(parsed: Parsed) -> float:
    text = parsed.last("drain", f"{_DRAIN:g}")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise UsageError(f"doorward proxy: --drain takes a number of seconds, not {text!r}")
    return value


def _text(sock: socket.socket) -> str:
    address = bound_address(sock)
    return str(sock.getsockname()) if address is None else address.text

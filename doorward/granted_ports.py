"""What `--allow-loopback` and `--publish` come to: the door's plan, rules for the proxy, listeners on the host.

Imported only by runs that have any.
"""

from __future__ import annotations

import os
import socket
import sys

from doorward.configuration import Configuration
from doorward.errors import UsageError
from doorward.launcher.interface import Door
from doorward.ports import ALL, AUTO, Published, listen_on_host, ports_with_servers
from doorward.start_json import dumps

MOST_UDP_PORTS = 64
"""Each is a socket inside, on every address."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping
    from typing import Any


def granted(configuration: Configuration, door: Door) -> Door:
    """The door with what was granted. Ports that have a server now are there before the command starts; with "all"
    those that get one later follow."""
    follow = follows(configuration)
    ports = set(_loopback(configuration))
    published = _published(configuration)
    if "loopback" in follow:
        ports.update(ports_with_servers())
        ports.difference_update(each.inside for each in published)
    return door._replace(loopback=tuple(sorted(ports)), on_demand=bool(follow or published))


def relayed(settings: Mapping[str, Any], door: Door) -> Door:
    """The door with the ports of every rule for datagrams. Raises UsageError for more than `MOST_UDP_PORTS`."""
    from doorward.allowlists.rule import MalformedRule, Origin, parse_rule

    ports: set[int] = set()
    for row in settings["allow"]:
        try:
            rule = parse_rule(row["rule"], "allow", Origin(row["source"], row["where"]))
        except MalformedRule:
            continue  # the proxy says so, with its place
        if not rule.udp:
            continue
        for low, high in rule.ports:
            if high - low >= MOST_UDP_PORTS:
                raise UsageError(
                    f"doorward: {row['where']}: {rule.text} names {high - low + 1} ports; "
                    f"datagrams are relayed on {MOST_UDP_PORTS} at most"
                )
            ports.update(range(low, high + 1))
    ports.discard(53)  # the sandbox's name server is there, and passes on what a rule lets out
    if len(ports) > MOST_UDP_PORTS:
        raise UsageError(
            f"doorward: the rules for datagrams name {len(ports)} ports; they are relayed on {MOST_UDP_PORTS} at most"
        )
    return door._replace(udp=tuple(sorted(ports)))


def follows(configuration: Configuration) -> list[str]:
    """What is followed while the command runs, as the proxy's settings say it."""
    found = []
    if AUTO in configuration.value("network.publish"):
        found.append("publish")
    if ALL in configuration.value("network.loopback"):
        found.append("loopback")
    return found


def loopback_rules(configuration: Configuration) -> list[dict[str, object]]:
    """The rules that the granted ports are: by both addresses, and by the name."""
    rules: list[dict[str, object]] = []
    for entry, origin in configuration.entries("network.loopback"):
        for port in ("*",) if entry == ALL else entry:
            rules += [
                {"rule": f"{host}:{port}", "source": origin.source, "where": origin.where}
                for host in ("localhost", "127.0.0.1", "[::1]")
            ]
    return rules


def publish(configuration: Configuration, handover: _socket.socket, run: str, policy: str) -> None:
    """Open the listeners on the host's loopback and hand them to the proxy. Raises UsageError where one is taken."""
    opened = listen_on_host(_published(configuration))
    try:
        for inside, listener in opened:
            text = dumps({"run": run, "policy": policy, "listener": "published", "port": inside}).encode()
            rights = listener.fileno().to_bytes(4, sys.byteorder)
            handover.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    finally:
        for _, listener in opened:
            listener.close()


def tell(event: Mapping[str, Any]) -> None:
    """Say on stderr, at once, where a server inside is reached: a person waits for it."""
    text = f"doorward: port {event['port']} inside is reached at http://{event['address']}/\n"
    try:
        os.write(2, text.encode())
    except OSError:
        pass  # nobody is listening; the rollout has it


def _loopback(configuration: Configuration) -> tuple[int, ...]:
    return tuple(port for entry in configuration.value("network.loopback") if entry != ALL for port in entry)


def _published(configuration: Configuration) -> tuple[Published, ...]:
    return tuple(dict.fromkeys(entry for entry in configuration.value("network.publish") if entry != AUTO))

"""Says which host, port and path a request is for, or refuses to guess.

Stub: the contract below is final, the body follows.
"""

from __future__ import annotations

from typing import NamedTuple

from doorward.allowlists.decision import Decision
from doorward.allowlists.host import Host
from doorward.proxy.http1 import RequestHead


class Target(NamedTuple):
    """`scheme` is "http" or "connect"; `path` is the origin-form (`/a?b`), empty for CONNECT."""

    scheme: str
    host: Host
    port: int
    path: bytes


class RefusedTarget(Exception):
    """A well-formed request that no rule can allow; answered 403 with `decision`."""

    target: Target
    decision: Decision


class NameMismatch(RefusedTarget):
    """The Host header names another host or port than the target (`host_header` as received)."""

    def __init__(self, target: Target, host_header: str) -> None:
        raise NotImplementedError


class SchemeNotAllowed(RefusedTarget):
    """An absolute target of another scheme than http (https belongs into CONNECT)."""

    def __init__(self, target: Target) -> None:
        raise NotImplementedError


def parse_target(head: RequestHead) -> Target:
    """The target of `head`; raises BadMessage (400), NameMismatch, SchemeNotAllowed."""
    raise NotImplementedError


def parse_authority(text: bytes, default_port: int | None = None) -> tuple[Host, int]:
    """`host:port`, strictly (RFC 9112 §3.2.3; ports are 1–65535 in plain digits); raises BadMessage (400)."""
    raise NotImplementedError


def names_agree(host_header: bytes, host: Host, port: int, *, default_port: int | None) -> bool:
    """Whether a Host header of a cleartext head inside a tunnel names what was asked for; raises BadMessage (400).
    `default_port` None: a Host without a port agrees with any port."""
    raise NotImplementedError

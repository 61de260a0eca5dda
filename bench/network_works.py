"""What each proxy is asked to do, and one measurement of it."""

from __future__ import annotations

import time
from typing import NamedTuple

from network_generator import Job
from network_proxies import Proxy
from timing import DidNotWork

# The name is reserved (RFC 6761) and in no proxy's rules.
REFUSED = "refused.test:80"
IDLE = "idle tunnels"


class Scale(NamedTuple):
    """How much: bytes of all streams together, seconds at most for streams and for the rest, tunnels left idle and
    seconds at most to open them."""

    bytes: int
    stream_s: float
    other_s: float
    idle: int
    idle_s: float


FULL = Scale(2_000_000_000, 6.0, 1.2, 2_000, 25.0)
QUICK = Scale(200_000_000, 0.5, 0.2, 300, 2.0)


class Work(NamedTuple):
    """`kind`: stream, tunnel (CONNECT until its 200), used (with one small request inside), request (keep-alive),
    refusal. `unit` is that of the value; CPU time is per `each`."""

    name: str
    kind: str
    concurrency: int
    unit: str
    each: str


WORKS = (
    Work("1 stream", "stream", 1, "GB/s", "GB"),
    Work("32 streams", "stream", 32, "GB/s", "GB"),
    Work("new tunnels, 1 at a time", "tunnel", 1, "/s", "tunnel"),
    Work("new tunnels, 16 at a time", "tunnel", 16, "/s", "tunnel"),
    Work("tunnels with a request, 16 at a time", "used", 16, "/s", "tunnel"),
    Work("plain requests, 16 connections kept", "request", 16, "/s", "request"),
    Work("refusals, 16 at a time", "refusal", 16, "/s", "refusal"),
)


class Figure(NamedTuple):
    """One measurement: the value in its work's unit, the proxy's CPU seconds for each GB, tunnel, request or refusal
    (None without a proxy), and the time each took."""

    value: float
    cpu_s: float | None
    p50_ms: float
    p99_ms: float


def job(work: Work, proxy: Proxy, scale: Scale) -> Job:
    """What the generator is told. Without a proxy a tunnel is simply a connection."""
    proxied = proxy.pid is not None
    streams = work.kind == "stream"
    path = f"/bytes/{scale.bytes // work.concurrency}" if streams else None if work.kind == "tunnel" else "/small"
    refused = work.kind == "refusal"
    return Job(
        proxy.host,
        proxy.port,
        proxy.credentials,
        REFUSED if refused else proxy.authority,
        tunnel=proxied and work.kind in ("stream", "tunnel", "used"),
        path=path,
        absolute=proxied and work.kind in ("request", "refusal"),
        status=403 if refused else 200,
        after="keep" if work.kind == "request" else "close",
        concurrency=work.concurrency,
        answers=work.concurrency if streams else 1_000_000,
        seconds=scale.stream_s if streams else scale.other_s,
    )


def unable(work: Work, proxy: Proxy) -> str | None:
    """Why this work makes no sense without a proxy."""
    if proxy.pid is None and work.kind in ("tunnel", "refusal"):
        return "there is no proxy to ask"
    return None


def measure(work: Work, proxy: Proxy, scale: Scale) -> Figure:
    """Raises DidNotWork."""
    before = proxy.cpu_s()
    seen = proxy.generator.run(job(work, proxy, scale))
    time.sleep(0.03)  # its last records are still being written
    after = proxy.cpu_s()
    amount = seen.bytes / 1e9 if work.kind == "stream" else seen.done
    if not amount or not seen.seconds:
        raise DidNotWork("nothing came through in time")
    cpu = None if before is None or after is None else (after - before) / amount
    return Figure(amount / seen.seconds, cpu, seen.p50_ms, seen.p99_ms)


def idle_kb(proxy: Proxy, scale: Scale) -> tuple[float, int]:
    """PSS in kB that each idle tunnel adds to a proxy that was just started, and how many there were. Each has carried
    one small request and its answer. Raises DidNotWork."""
    used = next(work for work in WORKS if work.kind == "used")
    told = job(used, proxy, scale)._replace(seconds=scale.idle_s)
    proxy.generator.run(told._replace(answers=64))  # what is loaded and allocated once is not a tunnel's cost
    time.sleep(0.3)
    before = proxy.pss_kb()
    opened = proxy.generator.run(told._replace(after="hold", answers=scale.idle)).done
    try:
        time.sleep(0.5)
        after = proxy.pss_kb()
    finally:
        proxy.generator.drop()
    return (after - before) / opened, opened

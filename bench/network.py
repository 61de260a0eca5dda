"""The network door beside other proxies: bytes, tunnels, requests, refusals and memory, on the host and in a sandbox.

    python bench/network.py --peers DIR --mitmdump PATH --nono-python PATH

Every proxy is started once and asked the same things in turn, round after round, by a load generator and an origin of
our own, all on loopback. Printed are medians, ratios, and what doorward aims at. Compare ratios; absolute figures
belong to the machine and the moment. docs/performance.md says how to repeat a run.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

import network_table as table
from network_generator import HERE, Generator, Origin, build
from network_proxies import HOST, INSIDE, STARTS, Bench, Proxy, Started
from network_table import Row
from network_works import FULL, IDLE, QUICK, WORKS, Figure, Scale, Work, idle_kb, job, measure, unable
from timing import DidNotWork

ROUNDS = 3
SETTLE_S = 0.05  # what the last one left to do should not burden the next


def main() -> int:
    """Measure, print, write. Exit status 1 if doorward itself could not be measured."""
    options = _parser().parse_args()
    # ended from outside, it still ends what it started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # Not below a temporary directory: sandboxes make those private.
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="doorward-bench-") as scratch:
        os.chmod(scratch, 0o711)  # squid and tinyproxy leave root
        bench = _bench(options, scratch)
        try:
            return _measure(options, bench)
        finally:
            bench.generator.close()
            bench.origin.close()


def _bench(options: argparse.Namespace, scratch: str) -> Bench:
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    env["DOORWARD_HOME"] = os.path.join(scratch, "doorward-home")
    load = build(scratch)
    doorward = options.doorward or os.path.join(os.path.dirname(sys.executable), "doorward")
    return Bench(
        *(load, Origin(load, env, scratch), Generator(load, env, scratch), env, scratch),
        *(doorward, options.peers, options.mitmdump, options.nono_python),
    )


def _measure(options: argparse.Namespace, bench: Bench) -> int:
    scale = QUICK if options.quick else FULL
    rounds = options.runs or (1 if options.quick else ROUNDS)
    names = options.only or list(STARTS)
    busy = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs before"
    began = time.monotonic()

    rows: list[Row] = []
    proxies: list[Proxy] = []
    closers: list[Callable[[], None]] = []
    try:
        for name in names:
            for start in STARTS[name]:
                _progress(f"starting {name}")
                try:
                    started, close = start(bench)
                except (DidNotWork, OSError) as error:
                    where = INSIDE if start.__name__.endswith("inside") else HOST
                    rows.append(Row(name, where, "all", None, "", why=str(error)))
                    continue
                proxies += started
                closers.append(close)
        rows += _interleave(proxies, scale, rounds)
    finally:
        for close in closers:
            close()
    # a start of each takes seconds
    rows += _idle([name for name in names if not options.quick or name in ("doorward", "squid")], bench, scale)
    if "doorward" in names and not options.quick:
        rows.append(_decision(bench))
    _progress("")

    generator = "compiled" if len(bench.load) == 1 else "in Python"
    print(f"medians of {rounds} interleaved rounds, {busy}; load generator and origin {generator}; ", end="")
    print(f"{scale.bytes / 1e9:g} GB in 1 and in 32 streams; {time.monotonic() - began:.0f} s in all\n")
    print(table.absolute(rows))
    print(f"\n{table.ratios(rows)}\n\n{table.targets(rows)}")
    for each in rows:
        if each.value is None:
            print(f"not measured: {each.column}, {each.work}: {each.why}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(table.document(rows))
    return 0 if any(each.proxy == "doorward" and each.value is not None for each in rows) else 1


def _interleave(proxies: Sequence[Proxy], scale: Scale, rounds: int) -> list[Row]:
    """Every work on every proxy in turn, `rounds` times. A proxy that fails at a work leaves that work."""
    figures: dict[tuple[Proxy, Work], list[Figure]] = {}
    missing: list[Row] = []
    for work in WORKS:
        for proxy in proxies:
            if unable(work, proxy) is None:
                figures[proxy, work] = []
    for proxy in proxies:
        _progress(f"warming up {proxy.name}")
        for work in WORKS:
            if work.kind in ("used", "request") and (proxy, work) in figures:
                try:
                    proxy.generator.run(job(work, proxy, scale)._replace(answers=100))
                except DidNotWork:  # the measurement will say why
                    pass
    for turn in range(rounds):
        for work in WORKS:
            for proxy in proxies:
                if (proxy, work) not in figures:
                    continue
                _progress(f"round {turn + 1} of {rounds}: {work.name}, {proxy.name}")
                try:
                    figures[proxy, work].append(measure(work, proxy, scale))
                except DidNotWork as error:
                    del figures[proxy, work]
                    missing.append(Row(proxy.name, proxy.where, work.name, None, work.unit, why=str(error)))
                time.sleep(SETTLE_S)
    return [table.row(proxy.name, proxy.where, work, each) for (proxy, work), each in figures.items()] + missing


def _idle(names: Sequence[str], bench: Bench, scale: Scale) -> list[Row]:
    """Each proxy started anew, so that memory freed by earlier work does not hide what a tunnel takes."""
    rows = []
    for name in names:
        for start in STARTS[name]:
            _progress(f"idle tunnels, {name}")
            started: Started | None = None
            try:
                started = start(bench)
                for proxy in started[0]:
                    if proxy.pid is not None:
                        rows.append(_idle_row(proxy, scale))
            except (DidNotWork, OSError):  # told when it was started first
                pass
            finally:
                if started is not None:
                    started[1]()
    return rows


def _idle_row(proxy: Proxy, scale: Scale) -> Row:
    try:
        value, opened = idle_kb(proxy, scale)
    except DidNotWork as error:
        return Row(proxy.name, proxy.where, IDLE, None, "kB", why=str(error))
    why = None if opened == scale.idle else f"only {opened} of {scale.idle} tunnels were open after {scale.idle_s:g} s"
    return Row(proxy.name, proxy.where, IDLE, value, "kB", each="tunnel", why=why)


def _decision(bench: Bench) -> Row:
    python = os.path.join(os.path.dirname(bench.doorward), "python")
    argv = [
        python if os.access(python, os.X_OK) else sys.executable,
        os.path.join(HERE, "network_decision.py"),
        "100000",
    ]
    _progress("rule decisions")
    ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if ran.returncode:
        last = ran.stderr.strip().splitlines()[-1:]
        return Row("doorward", HOST, table.DECISION, None, "µs", why=last[0] if last else f"exit {ran.returncode}")
    return Row("doorward", HOST, table.DECISION, float(ran.stdout), "µs")


def _progress(text: str) -> None:
    """A line that overwrites itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, metavar="N", help=f"rounds ({ROUNDS}; with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="less of everything, and not all of it, in under 50 s")
    parser.add_argument("--only", nargs="+", choices=tuple(STARTS), metavar="NAME", help="of: " + ", ".join(STARTS))
    for option, metavar, text in (
        ("--doorward", "PATH", "the executable to measure, instead of this environment's"),
        ("--peers", "DIR", "where srt's node_modules lies; else PATH"),
        ("--mitmdump", "PATH", "mitmproxy's executable; else PATH"),
        ("--nono-python", "PATH", "an interpreter that has nono-py; else this one"),
    ):
        parser.add_argument(option, type=os.path.abspath, metavar=metavar, help=text)
    parser.add_argument("--json", metavar="FILE", help="write every row")
    return parser


if __name__ == "__main__":
    sys.exit(main())

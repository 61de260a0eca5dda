"""What keeping and finding sessions costs: append, list, rebuild, fork, last turn, verify.

    python bench/sessions.py [--sessions 20000] [--megabytes 200]

Prints one table; each row has its budget beside it. Everything is made in a temporary folder (TMPDIR says where).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from doorward.sessions import items
from doorward.sessions.filters import Filter
from doorward.sessions.fork import fork
from doorward.sessions.home import Home
from doorward.sessions.lookup import SessionRef
from doorward.sessions.mirror import Mirror
from doorward.sessions.one_turn import one_turn
from doorward.sessions.rollout import Rollout
from doorward.sessions.verify import verify

NETWORK = {
    "version": 1, "connection": "1-1", "decision": "allow", "reason": "allowed", "source": "baseline_policy",
    "rule": "files.example", "host": "files.example", "port": 443, "protocol": "https_connect", "method": "CONNECT",
    "address": "192.0.2.1", "bytes_up": 5123, "bytes_down": 81233, "duration_s": 0.25, "requests": 1,
    "closed_by": "client",
}  # fmt: skip


def turn(rollout: Rollout, *, connections: int, output: int) -> None:
    """One turn as a run writes it."""
    number = rollout.turns + 1
    argv = ["pip", "install", f"package-{number}"]
    for item in items.turn_start(
        rollout.id, number, argv=argv, cwd="/work", approval_policy="never", sandbox_policy={"type": "read-only"}
    ):
        rollout.append(*item)
    verdict = {"verdict": "allow", "gate": "approval", "reasons": [{"gate": "policy", "sentence": "no rule"}] * 7}
    rollout.append(*items.verdict(number, verdict, argv=argv, cwd="/work"))
    for index in range(connections):
        rollout.append(*items.network(number, {**NETWORK, "host": f"h{index % 50}.example"}))
    text = "Collecting package\n" * (output // 19)
    rollout.append(*items.observation(number, exit_code=0, output={"head": text, "tail": "", "omitted": 0}))
    rollout.append(*items.turn_end(rollout.id, number))


def best(work: Callable[[], object], times: int = 5) -> float:
    """Seconds of the quickest of several."""
    found = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        work()
        found = min(found, time.perf_counter() - started)
    return found


def appended(home: Home) -> float:
    """Seconds of one append, without fsync: the mean of many."""
    with Rollout.create(home, cwd="/work") as rollout:
        count = 5000

        def many() -> None:
            for _ in range(count):
                rollout.append("network", NETWORK)

        return best(many, 3) / count


def filled(home: Home, count: int) -> None:
    """Many small sessions of the same few days: one is made, the others are copies under ids of their own."""
    from doorward.sessions.ids import day_folder, rollout_name, uuid7

    with Rollout.create(home, cwd="/work") as rollout:
        turn(rollout, connections=3, output=500)
    with open(rollout.path, "rb") as file:
        data = file.read()
    now = time.time_ns()
    for index in range(count):
        moment_ns = now - index * 40_000_000_000
        session, moment = uuid7(moment_ns), time.gmtime(moment_ns // 1_000_000_000)
        folder = f"{home.sessions}/{day_folder(moment)}"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(f"{folder}/{rollout_name(session, moment)}", "wb") as file:
            file.write(data.replace(rollout.id.encode(), session.encode()))


def big(home: Home, megabytes: int, *, connections: int, output: int) -> SessionRef:
    """One session of this size."""
    with Rollout.create(home, cwd="/work") as rollout:
        while os.path.getsize(rollout.path) < megabytes << 20:
            turn(rollout, connections=connections, output=output)
    return SessionRef(rollout.id, None, rollout.path, False)


def command(home: Home, *words: str) -> float:
    """Seconds of one `doorward` process."""
    env = {**os.environ, "DOORWARD_HOME": home.path}
    argv = [sys.executable, "-P", "-m", "doorward", *words]
    return best(lambda: subprocess.run(argv, env=env, capture_output=True, check=True), 7)


def rebuilt(home: Home) -> float:
    """CPU seconds of making the mirror anew."""
    if os.path.exists(home.mirror):
        os.unlink(home.mirror)
    started = time.process_time()
    with Mirror.open(home) as mirror:
        mirror.refresh()
    return time.process_time() - started


def row(what: str, value: float, unit: str, budget: str = "") -> None:
    """One line of the table."""
    print(f"{what:<58} {value:>10.3g} {unit:<6} {budget}", flush=True)


def main() -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=20_000)
    parser.add_argument("--megabytes", type=int, default=200)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="sessions-")
    try:
        empty = Home(f"{folder}/empty")
        python = best(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), 7)
        row("python -c pass, for comparison", python * 1e3, "ms")
        row("append a network record, no fsync", appended(empty) * 1e6, "µs", "60")

        many = Home(f"{folder}/many")
        many.ensure()
        filled(many, options.sessions)
        row(f"doorward sessions, newest 50 of {options.sessions}", command(many, "sessions") * 1e3, "ms", "60")
        row("  the mirror of these made anew, CPU", rebuilt(many), "s")
        row("  doorward sessions --json, every one", command(many, "sessions", "--json") * 1e3, "ms")
        row("  doorward sessions --search, mirror up to date", command(many, "sessions", "--search", "pip") * 1e3, "ms")
        with Mirror.open(many) as mirror:
            row("  mirror brought up to date, nothing new", best(mirror.refresh, 3) * 1e3, "ms")
            query = Filter(search="package", host="h1.example")
            row("  query by words and host", best(lambda: mirror.sessions(limit=50, only=query)) * 1e3, "ms")

        for name, connections, output in (("network records", 2000, 2000), ("outputs", 20, 60_000)):
            home = Home(f"{folder}/{name.split()[0]}")
            session = big(home, options.megabytes, connections=connections, output=output)
            size = os.path.getsize(session.path)
            row(f"rebuild of a mirror, mostly {name}, per core", size / rebuilt(home) / 1e6, "MB/s", "150")
            row(f"  verify, mostly {name}", size / best(lambda path=session.path: verify(path), 1) / 1e6, "MB/s")
        last = Rollout.open(home, session.path)
        turns = last.turns
        last.close()
        row(f"fork of {size >> 20} MB, at its end", best(lambda: fork(home, session)) * 1e3, "ms", "20")
        row("fork of it in its middle", best(lambda: fork(home, session, at=turns // 2)) * 1e3, "ms", "20")
        row("its last turn", best(lambda: one_turn(home, session.id, session.path, turns)) * 1e3, "ms")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

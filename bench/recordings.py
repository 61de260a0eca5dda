"""What a recording costs to read: `summary` and `allowlist learn` over 10,000 connections, start of Python included.

    python bench/recordings.py

Bounds: each under 1 s. Beside them stands Python doing nothing but reading the same lines as JSON: what the machine can
do at best.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from doorward.sessions.home import Home
from doorward.sessions.rollout import Rollout

_CONNECTIONS = 10_000
_HOSTS = 200
_ROUNDS = 5
_BOUND_S = 1.0
_PLAIN = "import json, sys; [json.loads(line) for line in open(sys.argv[1], 'rb')]"


def main() -> int:
    """Print the table. Exit status 1 when a bound does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "DOORWARD_HOME": folder, "HOME": folder}
        path = _record(Home(folder))
        doorward = [sys.executable, "-P", "-m", "doorward"]
        candidates = {
            "plain Python, json.loads of each line": [sys.executable, "-c", _PLAIN, path],
            "doorward summary": [*doorward, "summary", "bench"],
            "doorward allowlist learn": [*doorward, "allowlist", "learn", "bench"],
        }
        seconds: dict[str, list[float]] = {name: [] for name in candidates}
        for _ in range(_ROUNDS):
            for name, argv in candidates.items():
                started = time.perf_counter()
                subprocess.run(argv, env=env, cwd=folder, capture_output=True, check=True)
                seconds[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    base = next(iter(medians.values()))
    held = True
    load = os.getloadavg()[0]
    print(f"{_CONNECTIONS} connections to {_HOSTS} hosts; medians of {_ROUNDS} interleaved rounds, load {load:.1f}\n")
    for name, median in medians.items():
        bound = ""
        if name.startswith("doorward"):
            held = held and median <= _BOUND_S
            bound = f"  bound {_BOUND_S:.0f} s: {'holds' if median <= _BOUND_S else 'MISSED'}"
        print(f"{name:<40} {median * 1000:7.0f} ms  x{median / base:4.1f}{bound}")
    return 0 if held else 1


def _record(home: Home) -> str:
    home.ensure()
    with Rollout.create(home, cwd="/srv", name="bench") as rollout:
        for number in range(_CONNECTIONS):
            allowed = number % 10 != 0
            record = {
                "version": 1, "connection": f"b-{number}", "decision": "allow" if allowed else "deny",
                "reason": "allowed" if allowed else "not_allowed", "source": "baseline_policy",
                "rule": "*.cdn.test" if allowed else None, "host": f"h{number % _HOSTS}.cdn.test", "port": 443,
                "protocol": "https_connect", "method": "CONNECT", "address": "203.0.113.7", "bytes_up": 700,
                "bytes_down": 40_000, "duration_s": 0.2, "requests": 1, "closed_by": "client",
                "process": {"pid": 4711, "executable": "/usr/bin/curl", "argv": ["curl", "https://h.cdn.test/"]},
            }  # fmt: skip
            rollout.append("network", {"turn": 1, **json.loads(json.dumps(record))})
        return rollout.path


if __name__ == "__main__":
    sys.exit(main())

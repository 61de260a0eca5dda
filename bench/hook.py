"""What an agent waits for at each tool: one answer of `doorward hook`, process start included, beside Python alone.

    python bench/hook.py [--rounds 30]

Each round runs every event once, in turn; the first warms up and does not count. `doorward` is the one beside this
interpreter, with a home of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

BUDGET_MS = 80
EVENTS: dict[str, tuple[str, dict[str, str]]] = {
    "a plain command": ("Bash", {"command": "ls -la"}),
    "a script": ("Bash", {"command": "cd src && git status --short | head -5; for f in *.py; do wc -l \"$f\"; done"}),
    "one that is asked about": ("Bash", {"command": "rm -rf build"}),
    "a write outside, denied": ("Write", {"file_path": "/etc/x"}),
    "a write": ("Write", {"file_path": "x"}),
    "a tool of no concern": ("Grep", {"pattern": "x"}),
}


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    doorward = Path(sys.executable).parent / "doorward"
    with tempfile.TemporaryDirectory() as base:
        env = os.environ | {"DOORWARD_HOME": f"{base}/home", "HOME": base}
        (Path(base) / "project").mkdir()
        candidates = {"python -c pass": ([sys.executable, "-c", "pass"], b"")}
        for name, (tool, arguments) in EVENTS.items():
            event = {
                "session_id": "bench", "cwd": f"{base}/project", "hook_event_name": "PreToolUse", "tool_name": tool,
                "tool_input": arguments, "tool_use_id": "t",
            }  # fmt: skip
            candidates[name] = ([str(doorward), "hook", "claude-code"], json.dumps(event).encode())
        times: dict[str, list[float]] = {name: [] for name in candidates}
        for number in range(rounds + 1):
            for name, (argv, data) in candidates.items():
                started = time.perf_counter()
                subprocess.run(argv, input=data, stdout=subprocess.DEVNULL, env=env, check=True, timeout=60)
                if number:
                    times[name].append((time.perf_counter() - started) * 1000)
    alone = median(times["python -c pass"])
    load = os.getloadavg()[0]
    print(f"medians of {rounds} rounds, load average {load:.1f}; budget of a plain command: {BUDGET_MS} ms\n")
    print("| | ms | fastest | × Python alone |\n|---|---|---|---|")
    for name, values in times.items():
        print(f"| {name} | {median(values):.0f} | {min(values):.0f} | {median(values) / alone:.1f} |")


if __name__ == "__main__":
    main()

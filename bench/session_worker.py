"""Holds one library session open and times commands in it: a JSON argv a line in, a JSON sample a line out.

A process of its own, so that the benchmark's imports and doorward's do not mix.
"""

from __future__ import annotations

import json
import sys
import time

import doorward


def main() -> None:
    with doorward.open_session() as session:
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            argv = json.loads(line)
            started = time.perf_counter()
            seen = session.exec(argv)
            ms = (time.perf_counter() - started) * 1e3
            print(json.dumps({"ms": ms, "exit_code": seen.exit_code, "output": seen.output}), flush=True)


if __name__ == "__main__":
    main()

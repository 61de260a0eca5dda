"""What the start-up path of the writer costs: the modules it pulls in, and the time of one append."""

import json
import subprocess
import sys
import time

from doorward.sessions.home import Home
from doorward.sessions.rollout import Rollout

WRITER = ("home", "ids", "items", "rollout", "environment", "output")
HEAVY = {
    "argparse", "asyncio", "base64", "dataclasses", "datetime", "hashlib", "hmac", "idna", "importlib.metadata",
    "importlib.resources", "inspect", "ipaddress", "logging", "pathlib", "random", "shutil", "sqlite3", "ssl",
    "subprocess", "tempfile", "threading", "tomllib", "urllib", "uuid", "zoneinfo",
}  # fmt: skip


def test_the_writer_imports_next_to_nothing() -> None:
    """Modules are counted, not milliseconds."""
    imports = ", ".join(f"doorward.sessions.{name}" for name in WRITER)
    program = f"import sys; before = set(sys.modules); import {imports}; import json"
    program += "; print(json.dumps([*set(sys.modules) - before]))"
    run = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    loaded = set(json.loads(run.stdout))
    assert not loaded & HEAVY
    ours = {name.rpartition(".")[2] for name in loaded if name.startswith("doorward.sessions.")}
    assert ours == {
        *WRITER, "chain", "line", "lock", "regular_file", "sha256", "timestamps",
    }  # fmt: skip


def test_an_append_is_quick(home: Home) -> None:
    """The best of many is well under the 60 µs of the design, also on a busy machine."""
    payload = {"turn": 1, "host": "a.test", "port": 443, "decision": "allow", "bytes_up": 1, "text": "x" * 200}
    with Rollout.create(home, cwd="/work") as rollout:
        best = 1.0
        for _ in range(2000):
            started = time.perf_counter()
            rollout.append("network", payload)
            best = min(best, time.perf_counter() - started)
    assert best < 60e-6

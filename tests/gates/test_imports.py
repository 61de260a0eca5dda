"""The gates are on the start-up path: importing them pulls in next to nothing."""

from __future__ import annotations

import subprocess
import sys

_PROBE = """
import __future__, enum, json, os, typing, sys
before = set(sys.modules)
import doorward.gates.resolver, doorward.gates.refusal
print(*sorted(name for name in set(sys.modules) - before if not name.startswith("doorward")))
"""


def test_nothing_beyond_enum_json_os_and_typing_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []

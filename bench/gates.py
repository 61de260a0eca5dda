"""What the gates cost: loading a thousand rules, verdicts on commands and scripts, beside codex where it is at hand.

    python bench/gates.py [--codex BINARY]

Medians over rounds in one process, in which nothing is kept from verdict to verdict but the loaded rules: time on the
clock, and of the processor (that of child processes included), which other work on the machine moves less.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.gates.policy_gate import PolicyGate
from doorward.gates.policy_rules import Policy
from doorward.gates.resolver import resolve
from doorward.policy_loading import policy_from
from doorward.programs import which
from doorward.sessions.home import Home

RULES = 1000
_DECISIONS = ("allow", "prompt", "forbidden")
_ORDINARY = """#!/bin/bash
# Builds, tests and packs one tool; meant to be run by hand and by the nightly job.
set -euo pipefail
cd "$(dirname "$0")/.."

VERSION="${1:-$(git describe --tags --always)}"
OUT=dist
LOG="$OUT/build.log"
mkdir -p "$OUT"
echo "building $VERSION" | tee "$LOG"

if [ -n "$(git status --porcelain)" ]; then
    echo "the tree is not clean" >&2
    git diff --stat
    exit 1
fi

for tool in cc make python3 tar sha256sum; do
    command -v "$tool" >/dev/null || { echo "missing: $tool"; exit 2; }
done

make -j"$(nproc)" all 2>&1 | tee -a "$LOG" | tail -n 5
if ! make check >> "$LOG" 2>&1; then
    grep -n 'FAIL' "$LOG" | head -n 20
    exit 3
fi

python3 -m venv "$OUT/venv"
"$OUT/venv/bin/pip" install --quiet --upgrade pip wheel
"$OUT/venv/bin/pip" wheel --no-deps --wheel-dir "$OUT" .

find src -name '*.h' -newer "$LOG" -print0 | xargs -0 -r cp -t "$OUT/include"
cat > "$OUT/README" <<'END'
Unpack with tar -xf and run ./install.sh.
Remove with rm -rf /opt/tool.
END

while read -r name; do
    case "$name" in
        *.txt|*.md) cp "docs/$name" "$OUT/" ;;
        *.png) cp "docs/img/$name" "$OUT/img/" ;;
        *) echo "skipped: $name" ;;
    esac
done < docs/list

sizes=$(du -sk "$OUT" | cut -f1)
(( sizes < 100000 )) || echo "large: $sizes KiB"
tar -C "$OUT" -czf "tool-$VERSION.tar.gz" --exclude=venv .
sha256sum "tool-$VERSION.tar.gz" > "tool-$VERSION.tar.gz.sha256"
ls -l "tool-$VERSION".tar.gz*
grep -c . "$LOG" && wc -l < "$LOG"
env LC_ALL=C sort -u "$OUT/include/names" | uniq -c | sort -rn | head -n 3
test -f "$OUT/README" && printf '%s\n' "done: $VERSION" "log: $LOG"
git log -1 --format='%h %an %ad %s' --date=short
date -u +%Y-%m-%dT%H:%M:%SZ >> "$LOG"
"""
"""A script as people write them: 2 KB, fifty commands."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codex", default=shutil.which("codex"), help="a codex binary to load the same rules")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "thousand.rules"
        file.write_text("".join(map(_rule, range(RULES))))
        home = Home(f"{folder}/home")
        _loading(file, home, given.rounds)
        _verdicts(policy_from([str(file)], home), given.rounds)
        if given.codex:
            _beside_codex(given.codex, file, given.rounds)


def _rule(number: int) -> str:
    """Rules for fifty programs, each with alternatives, a reason and an example; a fifth are for git."""
    program = "git" if number % 5 == 0 else f"program{number % 50}"
    return (
        f'prefix_rule(pattern=["{program}", "verb{number}", ["a", "b"]], decision="{_DECISIONS[number % 3]}", '
        f'justification="reason {number}", match=["{program} verb{number} a"])\n'
    )


def _loading(file: Path, home: Home, rounds: int) -> None:
    cold = [_timed(lambda: policy_from([str(file)], None)) for _ in range(rounds)]
    policy_from([str(file)], home)
    kept = [_timed(lambda: policy_from([str(file)], home)) for _ in range(rounds)]
    _print(f"load {RULES} rules, evaluated in a process of their own", cold, 1e3, "ms")
    _print(f"load {RULES} rules, from the cache", kept, 1e3, "ms")


def _verdicts(policy: Policy, rounds: int) -> None:
    gc.collect()
    gc.disable()  # as `doorward run` does; a collection here would walk the thousand rules of this very bench
    planted = ("/srv/project", "/tmp", "/dev/shm")
    made = [_timed(lambda: PolicyGate(policy, planted, which, os.path.realpath)) for _ in range(rounds)]
    _print("make the rules ready, once a session", made, 1e3, "ms")
    gate = PolicyGate(policy, planted, which, os.path.realpath)
    dial = Dial(workspace="/srv/project", policy=gate, locate=which, canonical=os.path.realpath)
    for title, argv in (
        ("verdict: true", ("true",)),
        ("verdict: git verb500 c", ("git", "verb500", "c")),
        ("verdict: env A=1 nice make all", ("env", "A=1", "nice", "make", "all")),
        ("verdict: sh -c 'ls | wc -l'", ("sh", "-c", "ls | wc -l")),
        ("verdict: an ordinary script of 2 KB", ("sh", "-c", _ORDINARY)),
        ("verdict: 2 KB of nothing but short commands", ("sh", "-c", _repeated("git log -3 | wc -l && ls\n", 2048))),
    ):
        action = Action("shell", argv, "/srv/project", dict(os.environ), program=which(argv[0], os.environ["PATH"]))
        repeat = 5 if argv[0] == "sh" else 100
        resolve(dial, action)
        spent = [_judged(dial, action, repeat) for _ in range(rounds)]
        _print(title, spent, 1e6, "µs")


def _judged(dial: Dial, action: Action, repeat: int) -> Spent:
    """One verdict; a new action each time, since the last one taken apart is remembered."""
    actions = [action._replace(cwd="/srv/project") for _ in range(repeat)]
    return _timed(lambda: [resolve(dial, each) for each in actions], repeat)


def _repeated(text: str, size: int) -> str:
    """`text` again and again, up to `size` characters."""
    return text * (size // len(text))


def _beside_codex(codex: str, file: Path, rounds: int) -> None:
    """Two programs that load the rules and judge one command, started and ended."""
    asked = ("--rules", str(file), "--", "git", "verb500", "a")
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(_timed(lambda: _run(codex, "execpolicy", "check", *asked)))
        ours.append(_timed(lambda: _run(sys.executable, "-m", "doorward", "policy", "check", *asked)))
    _print("codex execpolicy check, the whole program", theirs, 1e3, "ms")
    _print("doorward policy check, the whole program, no cache", ours, 1e3, "ms")


def _run(*argv: str) -> None:
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)


class Spent(NamedTuple):
    """Seconds on the clock and of the processor."""

    clock: float
    cpu: float


def _timed(work: Callable[[], object], times: int = 1) -> Spent:
    """What `work` costs, a `times`-th of it."""
    before, began = os.times(), time.perf_counter()
    own = time.process_time()
    work()
    clock, own = time.perf_counter() - began, time.process_time() - own
    after = os.times()
    children = after.children_user + after.children_system - before.children_user - before.children_system
    return Spent(clock / times, (own + children) / times)


def _print(title: str, spent: list[Spent], scale: float, unit: str) -> None:
    clock, cpu = (median(each[column] for each in spent) * scale for column in (0, 1))
    print(f"{title:<58} {clock:10.2f} {unit}   CPU {cpu:10.2f} {unit}")


if __name__ == "__main__":
    main()

"""What `--explain-denials` costs: the same work in the same sandbox, with and without, one beside the other.

python bench/denials.py [--rounds N] [--only WORD…]

Each line is one piece of work: the median of the rounds without, with, and with when something is hidden too (opens for
reading are watched then), and the ratios. Rounds alternate, so that a slow moment of the machine meets all three.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKS = {
    "nothing (a start)": "true",
    "compile 12 C files": "rm -f *.o; for f in f*.c; do cc -O1 -c $f; done; cc -shared -o lib.so *.o",
    "git status, 5000 files": "git -C tree status --short > /dev/null",
    "git add and commit": "cd tree; for i in 1 2 3 4 5; do echo $i >> f1; git commit -q -a -m $i; done",
    "read 5000 files": "cat tree/f* > /dev/null",
    "write 5000 files": 'python3 -c "for i in range(5000): open(f\'w{i}\', \'w\').close()"',
    "remove 5000 files": 'rm -f w[0-9]*',
    "import 100 modules": 'python3 -c "import asyncio, json, http.client, email, xml.dom, unittest, sqlite3, decimal"',
}  # fmt: skip
MODES: dict[str, tuple[str, ...]] = {
    "without": (),
    "with": ("--explain-denials",),
    "with, hiding": ("--explain-denials", "--deny-read", "hidden"),
}
_DOORWARD = (sys.executable, "-P", "-m", "doorward", "run", "-a", "never", "--network", "off")


def main() -> int:
    """Print the table. Returns 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="works whose name has one of these words")
    given = parser.parse_args()
    rounds = given.rounds
    folder = Path(tempfile.mkdtemp(prefix="doorward-bench-", dir="/var/tmp"))
    try:
        env = {**os.environ, "DOORWARD_HOME": str(folder / "home"), "HOME": str(folder)}
        work = folder / "work"
        _prepare(work, env)
        print(f"{'work':<24}" + "".join(f"{mode:>15}" for mode in MODES) + f"{'with':>9}{'hiding':>9}")
        for name, script in WORKS.items():
            if given.only and not any(word in name for word in given.only):
                continue
            took: dict[str, list[float]] = {mode: [] for mode in MODES}
            for _ in range(rounds):
                for mode, options in MODES.items():
                    took[mode].append(_run(options, script, work, env))
                    if name.startswith("remove"):
                        _run((), WORKS["write 5000 files"], work, env)
            middle = {mode: statistics.median(each) for mode, each in took.items()}
            ratios = [middle[mode] / middle["without"] for mode in ("with", "with, hiding")]
            print(
                f"{name:<24}"
                + "".join(f"{middle[mode] * 1000:>12.1f} ms" for mode in MODES)
                + "".join(f"{ratio:>8.2f}x" for ratio in ratios),
                flush=True,
            )
    finally:
        shutil.rmtree(folder)
    return 0


def _prepare(work: Path, env: dict[str, str]) -> None:
    (work / "tree").mkdir(parents=True)
    (work / "hidden").write_text("")
    for number in range(1, 13):
        text = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        text += "".join(f"int f{number}_{i}(int a) {{ printf(\"%d\", a); return a * {i}; }}\n" for i in range(200))
        (work / f"f{number}.c").write_text(text)
    for number in range(5000):
        (work / "tree" / f"f{number}").write_text(f"{number}\n")
    for command in (["init", "-q"], ["config", "user.email", "a@b.test"], ["config", "user.name", "a"], ["add", "."]):
        subprocess.run(["git", *command], cwd=work / "tree", env=env, check=True)
    subprocess.run(["git", "commit", "-q", "-m", "first"], cwd=work / "tree", env=env, check=True)


def _run(options: tuple[str, ...], script: str, work: Path, env: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(
        [*_DOORWARD, *options, "--", "sh", "-ec", script],
        cwd=work, env=env, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())

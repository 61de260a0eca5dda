"""Runs one fuzz target for a number of seconds: coverage-guided with atheris, where that is installed, else hypothesis.

A target is a function from bytes to nothing that raises for a finding. Its corpus is the folder `corpus/<name>` beside
this file: small files, each named after what it shows. What a run finds stays in a temporary folder and is printed,
to become a test; the corpus is changed by hand only.

    python integration/fuzz/fuzz_http1.py --seconds 60
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

Check = Callable[[bytes], None]

_LONGEST_INPUT = 4096
_HAVE_ATHERIS = importlib.util.find_spec("atheris") is not None


def instrumented() -> AbstractContextManager[object]:
    """Imports of the code under test inside this context are watched for coverage."""
    if "--worker" not in sys.argv:
        return nullcontext()
    import atheris  # type: ignore[import-untyped,unused-ignore]

    context: AbstractContextManager[object] = atheris.instrument_imports(
        include=["doorward.proxy", "doorward.allowlists"]
    )
    return context


def main(name: str, check: Check) -> int:
    """The exit status: 0 without a finding, 1 with one."""
    parser = argparse.ArgumentParser(description=f"Fuzz the {name} core.")
    parser.add_argument("--seconds", type=int, default=60, help="how long (60)")
    parser.add_argument("--input", type=Path, help="run this one file and stop")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    corpus = Path(__file__).parent / "corpus" / name
    if options.input is not None:
        check(options.input.read_bytes())
        return 0
    for seed in sorted(corpus.iterdir()):
        check(seed.read_bytes())
    if options.worker is not None:
        _work(check, options.seconds, corpus, Path(options.worker))
    if _HAVE_ATHERIS:
        return _guide(name, options.seconds)
    return _search(name, check, options.seconds, [seed.read_bytes() for seed in sorted(corpus.iterdir())])


def _guide(name: str, seconds: int) -> int:
    """Run a worker under libFuzzer, which ends its own process, and say what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with log.open("wb") as out:
            command = [sys.executable, sys.argv[0], "--seconds", str(seconds), "--worker", folder]
            status = subprocess.run(command, stdout=out, stderr=out, check=False).returncode
        text = log.read_text(errors="replace")
        findings = [path for path in Path(folder).iterdir() if path.name.startswith(("crash-", "timeout-", "oom-"))]
        if status != 0 or findings:
            print(text[-4000:])
            for path in findings:
                print(f"{name}: finding {path.read_bytes()!r}")
            return 1
        executed = re.search(r"stat::number_of_executed_units: *(\d+)", text)
        coverage = re.findall(r"cov: (\d+) ft: (\d+)", text)
        edges, features = coverage[-1] if coverage else ("?", "?")
        print(
            f"{name}: {executed[1] if executed else '?'} executions in {seconds} s, "
            f"{edges} edges, {features} features (atheris), no finding"
        )
        return 0


def _work(check: Check, seconds: int, corpus: Path, folder: Path) -> None:
    import atheris  # type: ignore[import-untyped,unused-ignore]

    found = folder / "found"
    found.mkdir()
    arguments = [
        sys.argv[0],
        f"-max_total_time={seconds}",
        f"-max_len={_LONGEST_INPUT}",
        "-timeout=10",
        "-print_final_stats=1",
        f"-artifact_prefix={folder}/",
        str(found),
        str(corpus),
    ]
    atheris.Setup(arguments, check)
    atheris.Fuzz()  # does not return


def _search(name: str, check: Check, seconds: int, seeds: list[bytes]) -> int:
    """Without atheris: hypothesis, round after round with another seed, from damaged corpus files and plain bytes."""
    from hypothesis import HealthCheck, given, seed, settings
    from hypothesis import strategies as st

    damages = st.lists(st.tuples(st.integers(0, _LONGEST_INPUT), st.binary(max_size=4), st.integers(0, 4)), max_size=4)
    damaged = st.builds(_damage, st.sampled_from(seeds), damages)
    joined = st.builds(bytes.__add__, damaged, damaged)
    executed = 0
    end = time.monotonic() + seconds

    def one(data: bytes) -> None:
        nonlocal executed
        if time.monotonic() < end:
            executed += 1
            check(data)

    rounds = 0
    while time.monotonic() < end:
        rounds += 1
        test = given(st.one_of(damaged, joined, st.binary(max_size=200)))(one)
        test = settings(max_examples=1000, deadline=None, database=None, suppress_health_check=list(HealthCheck))(test)
        seed(rounds)(test)()  # a finding is raised with the smallest input that shows it
    print(f"{name}: {executed} executions in {seconds} s (hypothesis), no finding")
    return 0


def _damage(data: bytes, damages: list[tuple[int, bytes, int]]) -> bytes:
    for place, new, removed in damages:
        place %= len(data) + 1
        data = data[:place] + new + data[place + removed :]
    return data

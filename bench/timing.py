"""Run candidates side by side and keep what their clocks said: one sample a command, medians over interleaved rounds.

The rules that make two figures comparable:
- all candidates of a workload run one after the other in every round (A B C … A B C …), so that whatever else the
  machine does falls on all of them;
- the first round only warms caches up and shows who works; its times are thrown away;
- a candidate that fails, in any round, leaves the table with its reason. It is never dropped silently.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from statistics import median
from typing import NamedTuple, Protocol

# Long enough for the slowest peer on a busy machine, short enough to notice one that hangs.
DEADLINE_S = 30.0
# The kernel takes namespaces apart after the command has ended; the next candidate should not pay for that.
SETTLE_S = 0.02


class DidNotWork(Exception):
    """A candidate did not do what was asked; the message is one plain sentence."""


class Workload(NamedTuple):
    """A command to run. With `answer`, its output must hold these bytes and the time counts to the last of them."""

    name: str
    argv: tuple[str, ...]
    answer: bytes | None = None


class Sample(NamedTuple):
    """One measured command, in ms from just before its start."""

    answered_ms: float | None  # until the last byte of its standard output was read; None where nothing was printed
    ended_ms: float  # until it was reaped
    cpu_ms: float | None = None  # user and system time of it and of all that it waited for; None if not known


class Candidate(Protocol):
    """Something that runs commands: `name` for options, `title` for people."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    def unable(self, workload: Workload) -> str | None:
        """Why this candidate cannot run this workload, or None."""

    def measure(self, workload: Workload) -> Sample:
        """Run it once. Raises DidNotWork."""


class Measured(NamedTuple):
    """All samples of one candidate on one workload."""

    candidate: str
    title: str
    workload: str
    samples: tuple[Sample, ...]
    answers: bool

    @property
    def ended_ms(self) -> float:
        """Median time until the command had ended."""
        return median(sample.ended_ms for sample in self.samples)

    @property
    def cpu_ms(self) -> float | None:
        """Median CPU time; it moves less than the clock where other work goes on beside."""
        known = [sample.cpu_ms for sample in self.samples if sample.cpu_ms is not None]
        return median(known) if known else None

    @property
    def headline_ms(self) -> float:
        """Median time until the answer was there; for a workload (or candidate) without one, until the end."""
        if not self.answers:
            return self.ended_ms
        return median(s.ended_ms if s.answered_ms is None else s.answered_ms for s in self.samples)


class NotMeasured(NamedTuple):
    """Why there is no figure. `workload` is None if the candidate took no part at all."""

    candidate: str
    title: str
    workload: str | None
    why: str


def run_once(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: str, answer: bytes | None = None, status: int = 0
) -> Sample:
    """Start `argv`, read its standard output to the end, reap it.

    Raises DidNotWork unless it ends with `status` and, if an answer is wanted, has said it.
    """
    # Errors go to a file: nobody has to read them while the clock runs.
    with tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=env,
                cwd=cwd,
                start_new_session=True,  # so that a candidate that hangs can be ended with its children
            )
        except OSError as error:
            raise DidNotWork(f"{os.path.basename(argv[0])}: {error.strerror}") from None
        with process:
            assert process.stdout is not None
            output, last_byte = _read_to_end(process, process.stdout.fileno(), started + DEADLINE_S)
            _, wait_status, usage = os.wait4(process.pid, 0)
            ended = time.perf_counter()
            ended_with = process.returncode = os.waitstatus_to_exitcode(wait_status)
        if ended_with != status:
            errors.seek(0)
            raise DidNotWork(f"exit status {ended_with}: {last_message(errors.read())}")
    if answer is not None and answer not in output:
        raise DidNotWork(f"the answer does not say {answer.decode()!r} but {output[:80]!r}")
    answered_ms = None if last_byte is None else (last_byte - started) * 1e3
    return Sample(answered_ms, (ended - started) * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3)


def _read_to_end(process: subprocess.Popen[bytes], descriptor: int, deadline: float) -> tuple[bytes, float | None]:
    output, last_byte = b"", None
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.perf_counter()))
        if not ready:
            os.killpg(process.pid, signal.SIGKILL)
            raise DidNotWork(f"no end after {DEADLINE_S:.0f} s")
        data = os.read(descriptor, 65536)
        if not data:
            return output, last_byte
        output, last_byte = output + data, time.perf_counter()


def last_message(errors: bytes) -> str:
    """The last error that was told on stderr, with the indented lines that follow; the last message if none is.

    Node puts its stack and its version after the error, Python puts the error last.
    """
    lines = errors.decode(errors="replace").rstrip().splitlines()
    if not lines:
        return "nothing on stderr"
    starts = [n for n, line in enumerate(lines) if line[:1].strip()] or [0]
    told = [n for n in starts if re.match(r"[\w.]*error: ", lines[n], re.IGNORECASE)]
    start = (told or starts)[-1]
    more = takewhile(lambda line: line[:1].isspace() and not line.lstrip().startswith("at "), lines[start + 1 :])
    return " ".join(line.strip() for line in (lines[start], *more))


def interleave(
    candidates: Sequence[Candidate],
    workloads: Sequence[Workload],
    rounds: int,
    progress: Callable[[str], None],
) -> tuple[list[Measured], list[NotMeasured]]:
    """Measure every candidate on every workload, `rounds` times after one round to warm up."""
    samples: dict[tuple[int, int], list[Sample]] = {}
    missing: list[NotMeasured] = []
    for w, workload in enumerate(workloads):
        for c, candidate in enumerate(candidates):
            why = candidate.unable(workload)
            if why is None:
                samples[c, w] = []
            else:
                missing.append(NotMeasured(candidate.name, candidate.title, workload.name, why))
    for turn in range(rounds + 1):
        progress(f"round {turn} of {rounds}" if turn else "warming up")
        for w, workload in enumerate(workloads):
            for c, candidate in enumerate(candidates):
                if (c, w) not in samples:
                    continue
                try:
                    sample = candidate.measure(workload)
                except DidNotWork as error:
                    del samples[c, w]
                    when = f" (in round {turn})" if turn else ""
                    missing.append(NotMeasured(candidate.name, candidate.title, workload.name, f"{error}{when}"))
                    continue
                if turn:
                    samples[c, w].append(sample)
                time.sleep(SETTLE_S)
    measured = []
    for (c, w), kept in sorted(samples.items()):
        candidate, workload = candidates[c], workloads[w]
        answers = workload.answer is not None
        measured.append(Measured(candidate.name, candidate.title, workload.name, tuple(kept), answers))
    return measured, missing


def columns(rows: Sequence[Sequence[str]]) -> str:
    """A plain table: the first column to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *figures in rows:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)

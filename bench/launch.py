"""Start-up side by side: bare bubblewrap, `doorward run`, the library in an open session, Python alone, and peers.

    python bench/launch.py --peers DIR        # DIR: where `npm install @openai/codex @anthropic-ai/sandbox-runtime` ran

Each candidate runs `true` and a `curl` that its proxy refuses, interleaved in one run on one machine. Printed are
medians in ms, their ratio to bare bubblewrap with the same namespaces and mounts, and the difference to it. Compare
ratios; absolute times belong to the machine and the moment. docs/performance.md says how to repeat a run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence

import memory
import peers
from candidates import BareBubblewrap, CommandCandidate, OpenSession, PythonAlone
from timing import Candidate, DidNotWork, Measured, NotMeasured, Workload, columns, interleave

TRUE = Workload("true", ("true",))
# Every peer's refusal says "blocked" in its body. The name is reserved (RFC 6761) and never looked up.
REFUSED = Workload("curl refused", ("curl", "-sS", "http://refused.test/"), b"blocked")
WORKLOADS = (TRUE, REFUSED)
BASE = "bwrap"


TITLES = {
    BASE: "bare bwrap",
    "doorward": "doorward run",
    "library": "doorward library, open session",
    "python": "python -c pass, same environment",
    "codex": "codex sandbox, no network",
    "codex-proxy": "codex sandbox, proxy on",
    "srt": "srt",
}


def main() -> int:
    """Measure, print, write. Exit status 1 if bare bubblewrap itself does not run: nothing has a ratio then."""
    options = _parser().parse_args()
    # Not below a temporary directory: sandboxes make those private, and codex keeps its links out of them.
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="doorward-bench-") as scratch:
        return _measure(options, scratch)


def _measure(options: argparse.Namespace, scratch: str) -> int:
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    env["DOORWARD_HOME"] = os.path.join(scratch, "doorward-home")
    cwd = os.path.join(scratch, "workspace")
    os.mkdir(cwd)
    wanted = [name for name in TITLES if not options.only or name in options.only or name == BASE]
    rounds = options.runs or (3 if options.quick else 15)
    # A busy machine stretches everything, and not all by the same factor: a figure to quote needs a quiet one.
    busy = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs before"

    candidates, missing = _candidates(wanted, options, scratch, env, cwd)
    try:
        measured, dropped = interleave(candidates, WORKLOADS, rounds, _progress)
    finally:
        _progress("")
        for candidate in candidates:
            if isinstance(candidate, OpenSession):
                candidate.close()
    missing += dropped

    held: memory.Memory | str | None = None
    if "doorward" in wanted and not options.quick:
        _progress("memory")
        try:
            held = memory.quiet_run(_doorward(options), seconds=5, env=env, cwd=cwd)
        except (DidNotWork, OSError) as error:
            held = str(error)
        _progress("")

    print(f"medians of {rounds} interleaved rounds, {busy}; × and + against bare bwrap\n")
    print(_table(measured))
    if comparison := _against_peers(measured):
        print(f"\n{comparison}")
    for each in missing:
        print(f"not measured: {each.title}{f', {each.workload}' if each.workload else ''}: {each.why}")
    if isinstance(held, memory.Memory):
        print(
            f"\nmemory of a quiet run, doorward's own {held.processes} processes together: "
            f"PSS {held.pss_mb:.1f} MB, private {held.private_mb:.1f} MB, RSS {held.rss_mb:.1f} MB"
        )
    elif held is not None:
        print(f"\nnot measured: memory: {held}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(_document(rounds, measured, missing, held), file, indent=1)
            file.write("\n")
    return 0 if any(each.candidate == BASE for each in measured) else 1


def _candidates(
    wanted: Sequence[str], options: argparse.Namespace, scratch: str, env: Mapping[str, str], cwd: str
) -> tuple[list[Candidate], list[NotMeasured]]:
    def anew(name: str, title: str, start: peers.Start, no_answer: str | None = None) -> Candidate:
        return CommandCandidate(name, title, start.prefix, start.env, cwd, no_answer)

    def ours(name: str, title: str) -> Candidate:
        return anew(name, title, peers.Start((_doorward(options), "run", "--"), env))

    def codex(name: str, title: str) -> Candidate:
        proxy = name == "codex-proxy"
        start = peers.codex(options.peers, scratch, env, proxy=proxy)
        return anew(name, title, start, None if proxy else "without its proxy nobody answers")

    def srt(name: str, title: str) -> Candidate:
        return anew(name, title, peers.srt(options.peers, scratch, env))

    python = _python(options)
    makers: dict[str, Callable[[str, str], Candidate]] = {
        BASE: lambda name, title: BareBubblewrap(env, cwd, name, title),
        "doorward": ours,
        "library": lambda name, title: OpenSession(name, title, python, env, cwd),
        "python": lambda name, title: PythonAlone(python, env, cwd, name, title),
        "codex": codex,
        "codex-proxy": codex,
        "srt": srt,
    }
    ready: list[Candidate] = []
    missing: list[NotMeasured] = []
    for name in wanted:
        try:
            ready.append(makers[name](name, TITLES[name]))
        except (DidNotWork, OSError) as error:
            missing.append(NotMeasured(name, TITLES[name], None, str(error)))
    return ready, missing


def _doorward(options: argparse.Namespace) -> str:
    """The executable of this interpreter's own environment. sys.executable is not resolved: it may be a link."""
    path: str = options.doorward or os.path.join(os.path.dirname(sys.executable), "doorward")
    if not os.access(path, os.X_OK):
        raise DidNotWork("no doorward executable in this interpreter's environment; name one with --doorward")
    return path


def _python(options: argparse.Namespace) -> str:
    """The interpreter that belongs to the doorward that is measured."""
    if options.doorward:
        beside = os.path.join(os.path.dirname(options.doorward), "python")
        if os.access(beside, os.X_OK):
            return beside
    return sys.executable


def _table(measured: Sequence[Measured]) -> str:
    """One line a candidate; for each workload the median, its ratio to bare bwrap and the difference."""
    rows = [["candidate", "true ms", "×", "+ ms", "CPU ms", "curl refused: answer ms", "×", "+ ms", "ended ms"]]
    for name in dict.fromkeys(each.candidate for each in measured):
        mine = {each.workload: each for each in measured if each.candidate == name}
        row = [next(iter(mine.values())).title]
        for workload in WORKLOADS:
            each, base = mine.get(workload.name), _find(measured, BASE, workload)
            if each is None or base is None:
                row += [f"{each.headline_ms:.1f}" if each else "–", "–", "–"]
            else:
                mine_ms, base_ms = each.headline_ms, base.headline_ms
                row += [f"{mine_ms:.1f}", f"{mine_ms / base_ms:.2f}", f"{mine_ms - base_ms:+.1f}"]
            if workload is TRUE:
                row.append("–" if each is None or each.cpu_ms is None else f"{each.cpu_ms:.1f}")
        last = mine.get(REFUSED.name)
        rows.append([*row, f"{last.ended_ms:.1f}" if last else "–"])
    return columns(rows)


def _against_peers(measured: Sequence[Measured]) -> str:
    """How `doorward run` compares with each peer that does the same job."""
    lines = []
    for workload in WORKLOADS:
        ours = _find(measured, "doorward", workload)
        for name in ("codex", "codex-proxy", "srt"):
            theirs = _find(measured, name, workload)
            if ours and theirs:
                ratio = ours.headline_ms / theirs.headline_ms
                lines.append(f"doorward run / {theirs.title}, {workload.name}: {ratio:.2f}")
    return "\n".join(lines)


def _find(measured: Sequence[Measured], candidate: str, workload: Workload) -> Measured | None:
    return next((each for each in measured if each.candidate == candidate and each.workload == workload.name), None)


def _document(
    rounds: int, measured: Sequence[Measured], missing: Sequence[NotMeasured], held: memory.Memory | str | None
) -> dict[str, object]:
    rows = []
    for each in measured:
        base = next((b for b in measured if b.candidate == BASE and b.workload == each.workload), None)
        rows.append(
            {
                "candidate": each.candidate,
                "workload": each.workload,
                "median_ms": round(each.headline_ms, 3),
                "ended_median_ms": round(each.ended_ms, 3),
                "cpu_median_ms": None if each.cpu_ms is None else round(each.cpu_ms, 3),
                "ratio": round(each.headline_ms / base.headline_ms, 3) if base else None,
                "difference_ms": round(each.headline_ms - base.headline_ms, 3) if base else None,
                "samples": [sample._asdict() for sample in each.samples],
            }
        )
    return {
        "rounds": rounds,
        "rows": rows,
        "not_measured": [{"candidate": each.candidate, "workload": each.workload, "why": each.why} for each in missing],
        "memory": held._asdict() if isinstance(held, memory.Memory) else held,
    }


def _progress(text: str) -> None:
    """A line that overwrites itself, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, metavar="N", help="rounds after the one to warm up (15; with --quick 3)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no memory")
    parser.add_argument("--only", nargs="+", choices=tuple(TITLES), metavar="NAME", help="of: " + ", ".join(TITLES))
    parser.add_argument(
        "--doorward",
        type=os.path.abspath,
        metavar="PATH",
        help="the executable to measure, instead of this environment's",
    )
    parser.add_argument(
        "--peers", type=os.path.abspath, metavar="DIR", help="where the peers' node_modules lies; else PATH"
    )
    parser.add_argument("--json", metavar="FILE", help="write every row and sample")
    return parser


if __name__ == "__main__":
    if shutil.which("bwrap") is None:
        sys.exit("bwrap not found on PATH: there is nothing to compare with")
    sys.exit(main())

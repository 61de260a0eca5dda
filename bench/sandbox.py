"""What the sandbox itself costs: its set-up beside bare bubblewrap with the same mounts, system calls, a build.

    python bench/sandbox.py [--quick] [--json FILE]

Everything is measured in turn, round after round, in one process that has loaded the launcher, as a library's has;
what Python's own start costs is in bench/launch.py. Printed are medians, the ratio or difference that matters, its
bound, and whether it holds. Compare ratios; absolute times belong to the machine and the moment.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple

import sandbox_works as works
from timing import SETTLE_S, DidNotWork, columns

from doorward.launcher.bubblewrap import MAX_ARGUMENTS
from doorward.launcher.interface import Command, Mode, SandboxPolicy, Stdio
from doorward.launcher.linux import Linux, LinuxConfinement
from doorward.launcher.survey import survey

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}


class Row(NamedTuple):
    """One line of the table: two figures in ms (or ns), how they are compared, and the bound."""

    name: str
    unit: str
    theirs: float  # outside, or bare bubblewrap
    ours: float
    compared: float
    bound: float | None
    difference: bool = False  # `compared` is ours - theirs in the unit, else a ratio

    @property
    def verdict(self) -> str:
        """Whether the bound holds."""
        return "" if self.bound is None else "holds" if self.compared <= self.bound else "MISSED"


class Place:
    """A workspace, a doorward home, and the ways to run a command in them."""

    def __init__(self, folder: str, name: str, **policy: tuple[str, ...]) -> None:
        self.workspace = os.path.join(folder, name)
        home = os.path.join(folder, "home")
        os.makedirs(self.workspace, exist_ok=True)
        os.makedirs(home, mode=0o700, exist_ok=True)
        self._policy = SandboxPolicy(Mode.WORKSPACE_WRITE, self.workspace, home, home + "/cache", "off", **policy)  # type: ignore[arg-type]
        self._open: LinuxConfinement | None = None

    @property
    def confinement(self) -> LinuxConfinement:
        """Prepared once, as in an open session."""
        if self._open is None:
            prepared = Linux().prepare(self._policy)
            assert isinstance(prepared, LinuxConfinement)
            self._open = prepared
        return self._open

    def sandboxed(self, *argv: str, ahead: bool = False) -> Callable[[], float]:
        """Runs it in the sandbox; gives ms."""

        def run() -> float:
            if ahead:
                self.confinement.start_ahead()
                time.sleep(SETTLE_S)  # as long as a session is at rest before its next command
            started = time.perf_counter()
            process = self.confinement.spawn(Command(argv, self.workspace, ENV), Stdio(-1, -1, 2))
            try:
                process.release()
                outcome = process.wait()
            finally:
                process.close()
            took = (time.perf_counter() - started) * 1e3
            if outcome.exit_code != 0:
                raise DidNotWork(f"{argv[0]}: exit status {outcome.exit_code} {outcome.failure or ''}")
            return took

        return run

    def bare(self, *argv: str) -> Callable[[], float]:
        """Runs it in bare bubblewrap with the same mounts and namespaces, and without a filter; gives ms."""
        confinement = self.confinement
        found = survey(self._policy, confinement._rules, uid=os.geteuid())
        launch = confinement._launch(found, Command(argv, self.workspace, ENV), Stdio(-1, -1, -1))
        masks = [word for mask, paths in launch.plan.masks for path in paths for word in ("--ro-bind", mask, path)]
        words = ("--unshare-net", *launch.plan.arguments, *masks)
        if len(words) > MAX_ARGUMENTS:
            raise DidNotWork("more mounts than bubblewrap takes")
        arguments = b"\0".join(map(os.fsencode, words))

        def run() -> float:
            memory = os.memfd_create("arguments", 0)
            os.write(memory, arguments)
            os.lseek(memory, 0, os.SEEK_SET)
            try:
                return self._spawn(launch.bubblewrap, ["bwrap", "--args", str(memory), "--", *argv])
            finally:
                os.close(memory)

        return run

    def outside(self, *argv: str) -> Callable[[], float]:
        """Runs it without a sandbox; gives ms."""
        path = shutil.which(argv[0], path=ENV["PATH"]) or argv[0]
        return lambda: self._spawn(path, list(argv))

    def _spawn(self, path: str, argv: list[str]) -> float:
        null = os.open("/dev/null", os.O_RDWR)
        before = os.getcwd()
        os.chdir(self.workspace)
        try:
            actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
            started = time.perf_counter()
            child = os.posix_spawn(path, argv, ENV, file_actions=actions)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            took = (time.perf_counter() - started) * 1e3
        finally:
            os.chdir(before)
            os.close(null)
        if status != 0:
            raise DidNotWork(f"{argv[0]}: exit status {status}")
        return took


def interleaved(rounds: int, candidates: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Runs all of them in turn, round after round; the first round only warms up. Raises DidNotWork."""
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(rounds + 1):
        for name, run in candidates.items():
            value = run()
            if turn:
                samples[name].append(value)
            time.sleep(SETTLE_S)
    return samples


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the rounds' ratios: what else the machine does falls on both of a round."""
    return median(mine / other for mine, other in zip(ours, theirs, strict=True))


def difference(ours: list[float], theirs: list[float]) -> float:
    """The median of the rounds' differences."""
    return median(mine - other for mine, other in zip(ours, theirs, strict=True))


def set_up(folder: str, rounds: int) -> Iterator[Row]:
    """`true` in a repository with a few protected names."""
    place = Place(folder, "repository")
    works.large_repository(place.workspace, 200)
    for name in (".bashrc", ".vscode"):
        os.mkdir(os.path.join(place.workspace, name))
    got = interleaved(
        rounds,
        {
            "bare": place.bare("true"),
            "ours": place.sandboxed("true"),
            "ahead": place.sandboxed("true", ahead=True),
        },
    )
    for key, name in (("ours", "set-up"), ("ahead", "set-up, the next command of an open session")):
        yield Row(name, "ms", median(got["bare"]), median(got[key]), difference(got[key], got["bare"]), 10, True)


def masks(folder: str, rounds: int, count: int) -> Iterator[Row]:
    """A rule that hides thousands of files one by one."""
    place = Place(folder, "secrets", deny_read=("many/*.key",))
    works.many_secrets(os.path.join(place.workspace, "many"), count)
    got = interleaved(rounds, {"bare": place.bare("true"), "ours": place.sandboxed("true")})
    yield Row(
        f"{count} hidden files",
        "ms",
        median(got["bare"]),
        median(got["ours"]),
        ratio(got["ours"], got["bare"]),
        3,
    )


def patterns(folder: str, rounds: int, files: int) -> Iterator[Row]:
    """Fifteen tree-wide globs in a large tree, from the second start on."""
    plain = Place(folder, "tree")
    works.tree(plain.workspace, files)
    globs = ("**/*.key", *(f"**/secret{number}*" for number in range(14)))
    globbed = Place(folder, "tree", deny_read=globs)
    time.sleep(2.1)  # a folder that changed just now is not remembered
    first = globbed.sandboxed("true")()
    got = interleaved(rounds, {"plain": plain.sandboxed("true"), "globs": globbed.sandboxed("true")})
    name = f"15 globs over {files} files"
    yield Row(f"{name}, the first start", "ms", median(got["plain"]), first, first / median(got["plain"]), None)
    extra = difference(got["globs"], got["plain"])
    yield Row(f"{name}, later starts", "ms", median(got["plain"]), median(got["globs"]), extra, None, True)


def calls(folder: str, rounds: int) -> Iterator[Row]:
    """One system call, over and over: outside, under a filter that allows everything, and in the sandbox."""
    place = Place(folder, "calls")
    program = works.loop_of_calls(place.workspace)
    anything = os.path.join(place.workspace, "anything.bpf")
    with open(anything, "wb") as file:
        file.write(works.ALLOW_EVERYTHING)
    empty = f"exec 9< {shlex.quote(anything)}; exec bwrap --dev-bind / / --seccomp 9 "

    def measured(run: Callable[..., Callable[[], float]], before: str, way: int) -> Callable[[], float]:
        command = f"{before}{shlex.quote(program)} 400000 {way} < /dev/null > result"

        def once() -> float:
            run("sh", "-c", command)()
            with open(os.path.join(place.workspace, "result"), encoding="ascii") as file:
                return float(file.read())

        return once

    for way, name in enumerate(works.CALLS):
        got = interleaved(
            rounds,
            {
                "outside": measured(place.outside, "", way),
                "empty": measured(place.outside, empty, way),
                "inside": measured(place.sandboxed, "", way),
            },
        )
        outside, empty_filter, inside = (got[key] for key in ("outside", "empty", "inside"))
        # with any filter the kernel takes its longer way in, about 40 ns; a call that does something hides that
        bound = 1.05 if name == "stat" else None
        yield Row(f"one {name}", "ns", median(outside), median(inside), ratio(inside, outside), bound)
        # only where arguments are compared does our filter run at all
        bound = None if name == "ioctl" else 1.05
        title = f"one {name}, beside a filter that allows everything"
        yield Row(title, "ns", median(empty_filter), median(inside), ratio(inside, empty_filter), bound)


def builds(folder: str, rounds: int, files: int) -> Iterator[Row]:
    """A build and `git status`, inside and outside; the set-up is in the figures."""
    project = Place(folder, "project")
    works.c_project(project.workspace)
    make = ("sh", "-c", "rm -rf build && make -s -j2")
    ten = "for n in 1 2 3 4 5 6 7 8 9 10; do git status --porcelain || exit; done"
    repository = Place(folder, "large")
    works.large_repository(repository.workspace, files)
    for name, place, argv in (
        ("make of 25 C files", project, make),
        (f"git status over {files} files, ten times", repository, ("sh", "-c", ten)),
    ):
        got = interleaved(rounds, {"outside": place.outside(*argv), "inside": place.sandboxed(*argv)})
        yield Row(name, "ms", median(got["outside"]), median(got["inside"]), ratio(got["inside"], got["outside"]), None)
        without = [value - set_up_ms(place) for value in got["inside"]]
        yield Row(
            f"{name}, without the set-up",
            "ms",
            median(got["outside"]),
            median(without),
            ratio(without, got["outside"]),
            1.05,
        )


_SET_UP: dict[str, float] = {}


def set_up_ms(place: Place) -> float:
    """What `true` takes there, and what starting it takes outside, apart: measured once."""
    if place.workspace not in _SET_UP:
        got = interleaved(7, {"inside": place.sandboxed("true"), "outside": place.outside("true")})
        _SET_UP[place.workspace] = difference(got["inside"], got["outside"])
    return _SET_UP[place.workspace]


def table(rows: list[Row]) -> str:
    """The rows for people."""
    lines = [["", "bare or outside", "doorward", "compared", "bound", ""]]
    for row in rows:
        figure = f"{row.compared:+.1f} {row.unit}" if row.difference else f"{row.compared:.2f}×"
        limit = "" if row.bound is None else f"≤ {row.bound:g} {row.unit}" if row.difference else f"≤ {row.bound:g}×"
        lines.append(
            [row.name, f"{row.theirs:.1f} {row.unit}", f"{row.ours:.1f} {row.unit}", figure, limit, row.verdict]
        )
    return columns(lines)


@contextmanager
def _scratch() -> Iterator[str]:
    # not below a temporary directory: those are private inside
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="doorward-bench-") as folder:
        yield folder


def main() -> int:
    """Measure, print, write. Exit status 1 if a bound was missed or something could not be measured."""
    options = _parser().parse_args()
    rounds = 3 if options.quick else options.rounds
    files = 5_000 if options.quick else 100_000
    busy = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs before"
    rows: list[Row] = []
    missing: list[str] = []
    with _scratch() as folder:
        for part in (
            lambda: set_up(folder, 4 * rounds),
            # bare bubblewrap takes half a minute for each
            lambda: masks(folder, 2, 500 if options.quick else works.MASKS),
            lambda: calls(folder, rounds),
            lambda: builds(folder, rounds, files // 5),
            lambda: patterns(folder, rounds, files),
        ):
            try:
                rows += part()
            except (DidNotWork, OSError) as error:
                missing.append(str(error))
    print(f"medians of {rounds} interleaved rounds (set-up {4 * rounds}, hidden files 2), {busy}\n")
    print(table(rows))
    for why in missing:
        print(f"not measured: {why}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([{**row._asdict(), "verdict": row.verdict} for row in rows], file, indent=1)
    return 1 if missing or any(row.verdict == "MISSED" for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="rounds after the one to warm up (10)")
    parser.add_argument("--quick", action="store_true", help="3 rounds and smaller trees; under a minute")
    parser.add_argument("--json", metavar="FILE", help="write every row")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Builds, starts and asks the load generator and the origin: network_load.c, network_load.py without a compiler."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

from timing import DEADLINE_S, DidNotWork, last_message

HERE = os.path.dirname(os.path.abspath(__file__))


class Job(NamedTuple):
    """One line for the generator; network_load.py says what the fields mean."""

    host: str
    port: int
    credentials: str | None
    authority: str
    tunnel: bool
    path: str | None
    absolute: bool
    status: int
    after: str
    concurrency: int
    answers: int
    seconds: float

    def line(self) -> str:
        """The job as the generator reads it."""
        words = ("-" if word is None else int(word) if isinstance(word, bool) else word for word in self)
        return " ".join(map(str, words)) + "\n"


class Seen(NamedTuple):
    """What the generator saw: answers, failures, bytes of bodies, seconds to the last answer (or to the limit: `cut`),
    and the first failure in words."""

    done: int
    bad: int
    bytes: int
    seconds: float
    cut: bool
    p50_ms: float
    p99_ms: float
    said: str


def build(folder: str) -> tuple[str, ...]:
    """The command that takes `origin` or `client`: compiled into `folder`, or a copy in Python there."""
    for compiler in ("cc", "gcc", "clang"):
        if shutil.which(compiler) is None:
            continue
        program = os.path.join(folder, "network_load")
        argv = [compiler, "-O2", "-o", program, os.path.join(HERE, "network_load.c")]
        made = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        if made.returncode == 0:
            return (program,)
    script = shutil.copy(os.path.join(HERE, "network_load.py"), folder)
    return (sys.executable, script)


class Program:
    """A child that answers lines with lines. Its errors go to a file, told when it fails."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (close() ends it)
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise DidNotWork(f"{os.path.basename(argv[0])}: {error.strerror}") from None

    @property
    def pid(self) -> int:
        """The first process; what runs in a sandbox is somewhere below it."""
        return self.process.pid

    def say(self, line: str) -> None:
        """Raises DidNotWork when it is gone."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()
        except OSError:
            raise DidNotWork(self._ended()) from None

    def hear(self, seconds: float = DEADLINE_S) -> str:
        """Its next line. Raises DidNotWork."""
        assert self.process.stdout is not None
        line = b""
        end = time.monotonic() + seconds
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not data:
                raise DidNotWork(self._ended() if ready else f"no answer after {seconds:.0f} s")
            line += data
        return line.decode().strip()

    def close(self) -> None:
        """End of input ends it; a program that does not mind is ended by its id."""
        with self.process as process, self._errors:
            assert process.stdin is not None
            try:
                process.stdin.close()
            except OSError:
                pass
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()

    def _ended(self) -> str:
        self._errors.seek(0)
        return last_message(self._errors.read())


class Generator(Program):
    """The load generator, started by itself or behind a sandbox's prefix. `proxy`: the value of http_proxy it sees."""

    def __init__(
        self, load: Sequence[str], env: Mapping[str, str], cwd: str, prefix: Sequence[str] = ()
    ) -> None:
        super().__init__([*prefix, *load, "client"], env, cwd)
        try:
            self.proxy = self.hear()
        except DidNotWork:
            self.close()
            raise

    def run(self, job: Job) -> Seen:
        """Raises DidNotWork where nothing came through, or more than one in a hundred failed."""
        self.say(job.line())
        seen = Seen(**json.loads(self.hear(job.seconds + DEADLINE_S)))
        if seen.bad * 100 > seen.done or not (seen.done or seen.bytes):
            raise DidNotWork(f"{seen.bad} of {seen.bad + seen.done} failed: {seen.said or 'no answer in time'}")
        return seen

    def drop(self) -> None:
        """Close the connections that are held."""
        self.say("drop\n")
        self.hear()


class Origin(Program):
    """The origin server on 127.0.0.1; `port` is its own choice."""

    def __init__(self, load: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        super().__init__([*load, "origin"], env, cwd)
        try:
            self.port = int(self.hear())
        except DidNotWork:
            self.close()
            raise

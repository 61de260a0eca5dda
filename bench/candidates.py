"""What is measured: bare bubblewrap, a command started anew each time, Python alone, the library's open session."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from timing import DEADLINE_S, DidNotWork, Sample, Workload, last_message, run_once

CURL_NO_CONNECTION = 7  # curl(1), EXIT CODES
NOBODY = {"http_proxy": "http://127.0.0.1:9"}  # discard (RFC 863); in a new network namespace nobody listens


class CommandCandidate(NamedTuple):
    """A candidate that is started anew for each command. `no_answer` says why it cannot answer a curl, if so."""

    name: str
    title: str
    prefix: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    no_answer: str | None = None

    def unable(self, workload: Workload) -> str | None:
        return None if workload.answer is None else self.no_answer

    def measure(self, workload: Workload) -> Sample:
        return run_once([*self.prefix, *workload.argv], env=self.env, cwd=self.cwd, answer=workload.answer)


class BareBubblewrap(NamedTuple):
    """The floor: the same namespaces and mounts, nothing else.

    Nobody answers in there, so its curl is sent to a proxy port that nobody listens on: curl's own cost, without a
    look-up of the name.
    """

    env: Mapping[str, str]
    cwd: str
    name: str
    title: str

    def unable(self, workload: Workload) -> str | None:
        return None

    def measure(self, workload: Workload) -> Sample:
        argv = [
            *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
            *("--bind", self.cwd, self.cwd, "--chdir", self.cwd, "--", *workload.argv),
        ]
        if workload.answer is None:
            return run_once(argv, env=self.env, cwd=self.cwd)
        return run_once(argv, env={**self.env, **NOBODY}, cwd=self.cwd, status=CURL_NO_CONNECTION)


class PythonAlone(NamedTuple):
    """What the interpreter of doorward's environment costs before doorward does anything."""

    python: str
    env: Mapping[str, str]
    cwd: str
    name: str
    title: str

    def unable(self, workload: Workload) -> str | None:
        return "it runs no command" if workload.answer is not None else None

    def measure(self, workload: Workload) -> Sample:
        return run_once([self.python, "-c", "pass"], env=self.env, cwd=self.cwd)


class OpenSession:
    """The library: commands in a session that is open already, timed by the worker around `exec` alone."""

    def __init__(self, name: str, title: str, python: str, env: Mapping[str, str], cwd: str) -> None:
        self.name = name
        self.title = title
        worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "session_worker.py")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (close() ends it)
        self._process = subprocess.Popen(
            [python, worker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=env,
            cwd=cwd,
        )
        try:
            self._next_line()
        except DidNotWork:
            self.close()
            raise

    def unable(self, workload: Workload) -> str | None:
        return None

    def measure(self, workload: Workload) -> Sample:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(workload.argv).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise DidNotWork(f"the session's process has ended: {error.strerror}") from None
        seen = json.loads(self._next_line())
        if seen["exit_code"] != 0:
            raise DidNotWork(f"exit status {seen['exit_code']}: {seen['output'][-80:]!r}")
        if workload.answer is not None and workload.answer.decode() not in seen["output"]:
            raise DidNotWork(f"the answer does not say {workload.answer.decode()!r} but {seen['output'][:80]!r}")
        # exec gives the whole observation at once: the answer is there when it returns
        return Sample(seen["ms"], seen["ms"])

    def close(self) -> None:
        """End of input ends the session."""
        with self._process as process, self._errors:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                process.kill()

    def _next_line(self) -> bytes:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], DEADLINE_S)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            self._errors.seek(0)
            raise DidNotWork(last_message(self._errors.read()))
        return line

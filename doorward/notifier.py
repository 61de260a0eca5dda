"""Tells a person that a question waits: a command of theirs, or a desktop notification. Nobody waits for it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

from doorward.question import Question
from doorward.summary import printable

_LAST_SECONDS = 1.0
"""What a notifier that still runs gets when the session ends."""


class Notifier:
    """`command` is called with the question's document on its standard input."""

    def __init__(self, command: Sequence[str], desktop: bool, env: Mapping[str, str]) -> None:
        self._command = tuple(command)
        self._desktop = desktop
        self._env = dict(env)
        self._running: list[subprocess.Popen[bytes]] = []
        self.problems: list[str] = []
        """What went wrong, one sentence each."""

    def tell(self, question: Question) -> None:
        """A question has arrived."""
        self._running = [each for each in self._running if each.poll() is None]
        document = json.dumps(question.document()).encode("ascii") + b"\n"
        if self._command:
            self._start(self._command, document, "approvals.notify")
        if self._desktop:
            program = shutil.which("notify-send", path=self._env.get("PATH"))
            if program is None:
                self._complain("approvals.desktop: notify-send is not installed, so nobody is told on the desktop")
            else:
                text = printable(question.subject)[:200]
                remedy = f"doorward approvals allow {question.id}"
                self._start((program, "--app-name=doorward", f"doorward asks: {text}", remedy), b"", "notify-send")

    def _start(self, argv: Sequence[str], data: bytes, what: str) -> None:
        try:
            with tempfile.TemporaryFile() as body:  # a pipe would hold us up until it is read
                body.write(data)
                body.seek(0)
                self._running.append(
                    subprocess.Popen(
                        argv,
                        stdin=body,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        env=self._env,
                        start_new_session=True,  # a group of its own, and none of the terminal's signals
                    )
                )
        except OSError as error:
            self._complain(f"{what}: {argv[0]} cannot be started: {error.strerror}")

    def _complain(self, sentence: str) -> None:
        if sentence not in self.problems:
            self.problems.append(sentence)

    def close(self) -> None:
        """Nothing of it outlives the session."""
        for process in self._running:
            try:
                process.wait(_LAST_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._running = []

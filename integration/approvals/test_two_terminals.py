"""Two terminals: a full-screen program runs in one, the question it causes is answered from the other."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import termios
from collections.abc import Iterator
from typing import Any

import pytest

DEADLINE = 60


class Screen:
    """The terminal that the program under doorward has."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.seen = b""

    def read_until(self, text: bytes) -> None:
        while text not in self.seen:
            readable, _, _ = select.select([self.ours], [], [], DEADLINE)
            assert readable, f"{text!r} has not come; seen: {self.seen!r}"
            self.seen += os.read(self.ours, 65536)

    def still(self, seconds: float = 0.3) -> bool:
        """True if nothing is drawn for that long."""
        readable, _, _ = select.select([self.ours], [], [], seconds)
        return not readable

    def type(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def drain(self) -> None:
        """Read what comes until nothing more does."""
        while not self.still():
            self.seen += os.read(self.ours, 65536)


@pytest.fixture
def screen() -> Iterator[Screen]:
    made = Screen()
    yield made
    os.close(made.ours)
    os.close(made.theirs)


def test_an_editor_is_not_disturbed_by_the_question(doorward: Any, origin: Any, screen: Screen) -> None:
    editor = shutil.which("vim") or shutil.which("vi")
    if editor is None:
        if os.environ.get("CI"):
            pytest.fail("no full-screen editor is installed; install.sh --dev installs vim")
        pytest.skip("no full-screen editor is installed")
    (doorward.workspace / "note").write_text("a line of the note\n")
    os.mkfifo(doorward.workspace / "go")
    os.mkfifo(doorward.workspace / "done")
    # the fetch starts when the editor has drawn its screen, in the background of the same run
    script = (
        f"( read line <go; curl -sS -o fetched {origin.url()} 2>/dev/null; echo >done ) & "
        f"exec {editor} -Nu NONE -n note"
    )
    done = os.open(doorward.workspace / "done", os.O_RDONLY | os.O_NONBLOCK)
    process = doorward.start(
        "run", *origin.pin(), "--", "sh", "-c", script, stdin=screen.theirs, stdout=screen.theirs, stderr=screen.theirs
    )
    try:
        screen.read_until(b"a line of the note")
        screen.drain()
        (doorward.workspace / "go").write_text("\n")
        asked = doorward.question()
        assert (asked["kind"], asked["host"]) == ("network", "b.test")
        assert screen.still(), "the question draws nothing over the editor"
        doorward.answer("allow", asked["id"])
        readable, _, _ = select.select([done], [], [], DEADLINE)
        assert readable and (doorward.workspace / "fetched").read_bytes() == b"hello\n"
        assert screen.still(), "nor does the answer"
        # and the keys are the editor's
        screen.type(b"Oanother line\x1b:wq\r")
        assert process.wait(DEADLINE) == 0
        assert (doorward.workspace / "note").read_text() == "another line\na line of the note\n"
    finally:
        os.close(done)
        process.kill()
        process.wait()


def test_the_terminal_is_asked_before_the_command_has_it(doorward: Any, screen: Screen) -> None:
    process = doorward.start(
        "run", "--", "rm", "-vf", "a", stdin=screen.theirs, stdout=screen.theirs, stderr=screen.theirs
    )
    (doorward.workspace / "a").write_text("")
    screen.read_until(b"a: always) ")
    assert b"rm deletes for good" in screen.seen and doorward.waiting() == [], "the terminal comes before the queue"
    screen.type(b"y\r")
    screen.read_until(b"removed")
    assert process.wait(DEADLINE) == 0


@pytest.mark.parametrize(
    ("command", "keys", "status", "told"),
    [
        ("rm -f a", [b"a\r", b"y\r"], 0, b'prefix_rule(pattern=["rm", "-f", "a"], decision="allow")'),
        ("rm -f a", [b"a\r", b"no\r", b"n\r"], 126, b"default.rules"),
        ("sudo true", [b"a\r", b"n\r"], 126, b"not always"),
        ("rm -f a", [b"s\r"], 0, b"for this session"),
        ("rm -f a", [b"\r"], 126, b"said no"),
        ("rm -f a", [b"\x04"], 126, b"said no"),
    ],
)
def test_every_answer_at_the_terminal(
    doorward: Any, screen: Screen, command: str, keys: list[bytes], status: int, told: bytes
) -> None:
    """P-AP-20: a rule is shown whole before it is written, and only a second yes writes it."""
    process = doorward.start(
        "run", "--", *command.split(), stdin=screen.theirs, stdout=screen.theirs, stderr=screen.theirs
    )
    for key in keys:
        prompt = b"a: always) " if key not in (b"y\r", b"no\r") else b"Write it and run? [y/N] "
        screen.read_until(prompt)
        screen.type(key)
        screen.seen = screen.seen.replace(prompt, b"")
    assert process.wait(DEADLINE) == status
    screen.drain()
    assert told in screen.seen
    written = (doorward.home / "rules" / "default.rules").exists()
    assert written is (keys == [b"a\r", b"y\r"])


def test_a_question_that_is_interrupted_is_answered_by_nobody(doorward: Any, screen: Screen) -> None:
    process = doorward.start(
        "run", "--name", "s", "--", "rm", "-f", "a",
        stdin=screen.theirs, stdout=screen.theirs, stderr=screen.theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    screen.read_until(b"a: always) ")
    screen.type(b"\x03")
    assert process.wait(DEADLINE) == 130
    payloads = [line["payload"] for line in doorward.lines("s")]
    answers = [payload["answer"] for payload in payloads if payload.get("type") == "approval_answered"]
    assert answers == ["nobody"] and "exec" not in [line["type"] for line in doorward.lines("s")]

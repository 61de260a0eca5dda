"""`doorward run` on a terminal, as a person at a shell sees it: the shell runs in a tmux of the test's own."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from needed import need

DEADLINE = 60


class Screen:
    """An interactive bash in a terminal of 80 by 24, and what one sees of it."""

    def __init__(self, folder: Path, doorward: Any) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._env = {**doorward.env, "TERM": "xterm", "SHELL": "/bin/sh"}
        self.run = shlex.join(map(os.fsdecode, doorward.argv("run", "--")))
        self._do(
            "new-session", "-d", "-x", "80", "-y", "24", "exec env PS1='prompt> ' bash --norc", cwd=doorward.workspace
        )
        self.until(lambda text: "prompt>" in text)

    def _do(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [*self._tmux, *arguments],
            env=self._env,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=True,
        )
        return done.stdout

    @property
    def text(self) -> str:
        """The screen, line by line."""
        return self._do("capture-pane", "-p", "-J")

    def type(self, text: str, *keys: str) -> None:
        """Types text, then keys by their tmux names."""
        if text:
            self._do("send-keys", "-l", text)
        if keys:
            self._do("send-keys", *keys)

    def command(self, text: str) -> None:
        """Types a line at the shell's prompt."""
        self.type(text, "Enter")

    def resize(self, columns: int, rows: int) -> None:
        """Changes the terminal's size."""
        self._do("resize-window", "-x", str(columns), "-y", str(rows))

    def until(self, seen: Callable[[str], bool]) -> str:
        """Waits for a screen; gives it."""
        deadline = time.monotonic() + DEADLINE
        while not seen(text := self.text):
            assert time.monotonic() < deadline, text
            # there is nothing to wait on: tmux tells of no change to a screen
            time.sleep(0.05)
        return text

    def close(self) -> None:
        """Ends the terminal and everything on it."""
        subprocess.run([*self._tmux, "kill-server"], env=self._env, capture_output=True, timeout=DEADLINE, check=False)


@pytest.fixture
def screen(tmp_path: Path, doorward: Any) -> Iterator[Screen]:
    need("tmux", "bash")
    made = Screen(tmp_path, doorward)
    yield made
    made.close()


def test_a_full_screen_program_is_drawn_resized_and_quit(screen: Screen, doorward: Any) -> None:
    need("vim")
    (doorward.workspace / "text").write_text("a line to be seen\n")
    screen.command(f"stty -g > before; {screen.run} vim -u NONE text; echo status $?; stty -g > after")
    drawn = screen.until(lambda text: "a line to be seen" in text and text.count("\n~") > 15)
    assert "prompt>" not in drawn
    screen.resize(100, 40)
    screen.until(lambda text: text.count("\n~") > 30)  # drawn anew, which would wipe what is echoed before
    screen.type(":echo 'size' &columns &lines", "Enter")
    screen.until(lambda text: "size 100 40" in text)
    screen.type(":s/^/another /", "Enter")
    screen.until(lambda text: "another a line" in text)
    screen.type(":wq", "Enter")
    screen.until(lambda text: "status 0" in text)
    screen.command("echo same $(cmp before after && echo yes)")
    screen.until(lambda text: "same yes" in text)
    assert (doorward.workspace / "text").read_text() == "another a line to be seen\n"


def test_the_interrupt_key_ends_the_command_and_the_shell_goes_on(screen: Screen) -> None:
    """P-TT-03."""
    screen.command(f"stty -g > before; {screen.run} sh -c 'echo ready; exec sleep 600'; echo status $?")
    screen.until(lambda text: "\nready" in text)
    screen.type("", "C-c")
    screen.until(lambda text: "status 130" in text)
    # what is typed before the shell has gone on to `read` it may keep for the next prompt
    screen.command("echo waiting; read line; echo got $line; stty -g | cmp - before && echo restored")
    screen.until(lambda text: "\nwaiting" in text)
    screen.command("typed")
    screen.until(lambda text: "got typed" in text and "restored" in text)


def test_the_suspend_key_at_a_shell_inside(screen: Screen) -> None:
    """P-TT-05: the job stops inside, `fg` resumes it, and the shell outside is not touched."""
    screen.command(f"{screen.run} env PS1='inside> ' bash --norc -i; echo status $?")
    screen.until(lambda text: "\ninside>" in text)
    screen.command("sh -c 'echo go; read x; echo read $x'")
    screen.until(lambda text: "\ngo" in text)
    screen.type("", "C-z")
    screen.until(lambda text: "Stopped" in text)
    screen.command("fg")
    screen.until(lambda text: "inside> fg\nsh -c" in text)
    screen.command("on")
    screen.until(lambda text: "\nread on" in text)
    screen.command("exit 5")
    screen.until(lambda text: "status 5" in text)


def test_nothing_typed_by_the_command_reaches_the_shell(screen: Screen) -> None:
    """P-SC-04: what a command leaves in a terminal's input would be run by the shell that started it."""
    code = (
        "import fcntl\n"
        "for letter in b'echo PWNED\\n':\n"
        "    try: fcntl.ioctl(0, 0x5412, bytes([letter]))\n"
        "    except OSError as error: print('refused', error.errno); break\n"
    )
    screen.command(f"{screen.run} python3 -c {shlex.quote(code)}; echo status $?")
    screen.until(lambda text: "refused 1" in text and "status 0" in text)
    screen.command("echo last")
    after = screen.until(lambda text: "\nlast" in text)
    assert "\nPWNED" not in after


def test_the_size_at_the_start_and_every_later_one(screen: Screen) -> None:
    """P-TT-04."""
    screen.command(f"{screen.run} bash -c 'trap \"stty size\" WINCH; stty size; while read -t 20 l; do echo r; done'")
    screen.until(lambda text: "\n24 80" in text)
    for columns, rows in ((90, 30), (70, 20)):
        screen.resize(columns, rows)
        screen.type("", "Enter")
        screen.until(lambda text, size=f"{rows} {columns}": size in text)  # type: ignore[misc]
    screen.type("", "C-d")
    screen.until(lambda text: text.rstrip().endswith("prompt>"))

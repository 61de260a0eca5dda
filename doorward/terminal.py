"""A pseudo-terminal of the command's own, joined to the caller's terminal while the command runs."""

from __future__ import annotations

import fcntl
import os
import termios
import tty
from typing import Final

_STDIN: Final = 0


class Terminal:
    """Opened when stdin is a terminal. `slave` becomes the command's streams, `master` is read and written here.

    The caller's terminal is in raw mode in between: every key, Ctrl-C and Ctrl-Z too, goes to the command's own
    terminal, whose line discipline makes the signals. Nothing inside can type into the caller's terminal.
    """

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        self._saved = termios.tcgetattr(_STDIN)
        termios.tcsetattr(self.slave, termios.TCSANOW, self._saved)
        self._raw = False
        self._typed = b""
        os.set_blocking(self.master, False)
        self.resize()

    def start(self) -> None:
        """The command starts: take over the keys."""
        os.close(self.slave)
        self.slave = -1
        try:
            tty.setraw(_STDIN, termios.TCSADRAIN)
            self._raw = True
        except termios.error:
            pass  # a background job may not change the terminal; it gets no keys either

    def resize(self) -> None:
        """Give the command the caller's window size; the kernel sends it SIGWINCH when that changed."""
        try:
            size = fcntl.ioctl(_STDIN, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        except OSError:
            pass  # the caller's terminal is gone: SIGHUP follows

    def typed(self) -> bool:
        """Move keys to the command. False when the caller's terminal is at its end."""
        try:
            data = os.read(_STDIN, 4096)
        except OSError:
            return False
        self._typed += data
        self.flush()
        return bool(data)

    def flush(self) -> None:
        """Write what the command's terminal had no room for."""
        try:
            self._typed = self._typed[os.write(self.master, self._typed) :] if self._typed else b""
        except BlockingIOError:
            pass
        except OSError:
            self._typed = b""

    def restore(self) -> None:
        """The caller's terminal as it was."""
        if self._raw:
            self._raw = False
            try:
                termios.tcsetattr(_STDIN, termios.TCSADRAIN, self._saved)
            except termios.error:
                pass

    def close(self) -> None:
        """Restore the terminal and close what is still ours of the pair (the master is closed by its reader)."""
        self.restore()
        if self.slave >= 0:
            os.close(self.slave)
            self.slave = -1

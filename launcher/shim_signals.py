"""Signals in the shim: which it ignores for itself, and what the command is to find instead."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # the same functions without the enums, which cost 0.5 ms

_IGNORED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP, signal.SIGTTIN),
    *(signal.SIGTTOU, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM),
)
# Python itself ignores these two; a command must not inherit that.
_PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)


def take() -> tuple[int, ...]:
    """Drops the supervisor's handlers and sets the shim's. Returns what the supervisor was started ignoring
    (by nohup, say), which the command inherits as it would without us."""
    signal.set_wakeup_fd(-1)
    inherited = []
    for number in range(1, 32):  # the real-time ones are nobody's by default
        if number in (signal.SIGKILL, signal.SIGSTOP):
            continue
        before = signal.getsignal(number)
        if before == signal.SIG_IGN and number not in _PYTHON_IGNORES:
            inherited.append(number)
        wanted = signal.SIG_IGN if number in _IGNORED else signal.SIG_DFL
        if before != wanted:
            signal.signal(number, wanted)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return tuple(inherited)


def give(inherited: tuple[int, ...]) -> None:
    """Sets the dispositions a command is to start with."""
    for number in (*_IGNORED, *_PYTHON_IGNORES):
        signal.signal(number, signal.SIG_IGN if number in inherited else signal.SIG_DFL)

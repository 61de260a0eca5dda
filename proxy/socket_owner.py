"""Finds the process that holds a socket of a sandbox, by the inode that socket diagnosis gives: /proc says who has it
open.

A look at one process's descriptors costs 10 µs, and 3 µs more for each; so what decides the cost is who is looked at
first. In this order, to the first that has it:

- where this very socket was found before: a resolver's socket asks many times;
- those that asked before, the latest first, at the descriptors their last few sockets had and at the ones behind;
- processes that were started since the last search, the newest first: a command that is run for one request;
- those known, with another number of descriptors than when they were last looked at in vain; the newest first, and
  those last that had nothing open but their standard streams;
- processes of the run that were not known yet; then the rest of the known.

The order decides the cost only: whoever is named has the socket open and belongs to the run. No more than
`MOST_DESCRIPTORS` are looked at; what is not found then is not guessed.
"""

from __future__ import annotations

import os

from doorward.proxy.process_line import Line, line_of
from doorward.proxy.process_table import descendants, last_started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

MOST_DESCRIPTORS: Final = 4096
"""Links in /proc read for one connection at most."""

_REMEMBERED: Final = 32  # processes that asked
_HELD: Final = 8  # of them, with their parents: some descriptors each
_DESCRIPTORS: Final = 4  # of their sockets, the latest first
_SOCKETS: Final = 64  # with the place where each was found
_LOOKED_AT_FIRST: Final = 16  # of them, before others
_NEW: Final = 32  # the latest numbers of tasks, which are tried one by one
_MANY: Final = 64  # descriptors of one process
_AROUND: Final = 8
_STANDARD: Final = 3  # descriptors of a process that has opened nothing
_MARGIN: Final = 256  # processes that may come before the tree is read again


class Owners:
    """The search for one run, whose processes are below `root`."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._asked: dict[int, list[int]] = {}  # to the descriptors of its latest sockets; the latest process last
        self._lines: dict[int, Line] = {}  # of the latest of them
        self._places: dict[int, tuple[int, int]] = {}  # of a socket's inode to process and descriptor; the latest last
        self._known: dict[int, int] = {}  # to how many descriptors it had when it was looked at in vain, or 0
        self._room = _MARGIN  # for the known
        self._complete = False  # whether every process of the run is known
        self._newest: int | None = None  # the last task that was started before the latest search
        self._network: str | None = None  # the namespace that they have in common
        self._left = 0  # links that may still be read
        self._at = 0  # the descriptor that was found

    def find(self, inode: int) -> Line | None:
        """The process that has the socket open, and its parents; good until the next search. Where several have it, one
        that asked before, else the one that was started last. None where none is found within the bound."""
        wanted = f"socket:[{inode}]"
        place = self._places.get(inode)
        if place is not None:
            held = self._lines.get(place[0])
            if held is not None and held.has(place[1], wanted) and held.lives():
                self._places[inode] = self._places.pop(inode)
                return held
        self._left = MOST_DESCRIPTORS
        latest = [*reversed(self._asked)][:_LOOKED_AT_FIRST]
        found = (
            self._where_it_was(latest[:1], wanted)
            or self._among_newest(wanted)
            or self._where_it_was(latest[1:], wanted)
            or self._among_known(latest, wanted)
        )
        if found is not None:
            process = found.processes[0]
            self._asked[process] = [self._at, *(each for each in self._asked.pop(process, ()) if each != self._at)]
            del self._asked[process][_DESCRIPTORS:]
            if len(self._asked) > _REMEMBERED:
                del self._asked[next(iter(self._asked))]
            self._lines.pop(process, None)
            self._lines[process] = found
            if len(self._lines) > _HELD:
                self._lines.pop(next(iter(self._lines))).close()
            self._places[inode] = process, self._at
            if len(self._places) > _SOCKETS:
                del self._places[next(iter(self._places))]
        return found

    def close(self) -> None:
        """Let go of what is held."""
        for each in self._lines.values():
            each.close()
        self._lines.clear()

    def _where_it_was(self, processes: Iterable[int], wanted: str) -> Line | None:
        for process in processes:
            held = self._lines.get(process)
            tried = dict.fromkeys(number for last in self._asked[process] for number in (last, last + 1))
            for descriptor in tried:
                if held is not None:  # asked by its folder, once
                    self._left -= 1
                    if held.has(descriptor, wanted) and held.lives():
                        self._at = descriptor
                        return held
                    continue
                if self._is(f"/proc/{process}/fd", descriptor, wanted):
                    return self._found(process, descriptor, wanted)
        return None

    def _among_newest(self, wanted: str) -> Line | None:
        """By their numbers, which are given in order; those that are not in the run's network are somebody else's."""
        before, newest = self._newest, last_started()
        self._newest = newest
        if newest is None or self._network is None:
            self._complete = False
            return None
        if before is None or not 0 <= newest - before <= _NEW:
            self._complete = False
            before = newest - _NEW
        for task in range(newest, before, -1):
            try:
                if os.readlink(f"/proc/{task}/ns/net") != self._network:
                    continue
            except OSError:
                continue
            found = self._look(task, wanted)
            if found is not None:
                self._complete = self._complete and task == before + 1
                return found
        return None

    def _among_known(self, latest: list[int], wanted: str) -> Line | None:
        same: list[int] = []
        rest = self._known.keys() - set(latest)
        plain = {process for process in rest if 0 < self._known[process] <= _STANDARD}
        for process in (*latest, *sorted(rest - plain, reverse=True), *sorted(plain, reverse=True)):
            count = _descriptors(process)
            if count is None:
                self._known.pop(process, None)
                self._asked.pop(process, None)
            elif count and count == self._known.get(process):
                same.append(process)
            elif (found := self._look(process, wanted, count)) is not None:
                return found
        if not self._complete:
            found = self._among_unknown(wanted)
            if found is not None:
                return found
        for process in same:
            found = self._look(process, wanted)
            if found is not None:
                return found
        return None

    def _among_unknown(self, wanted: str) -> Line | None:
        """The tree is read, and those first that have opened anything."""
        all_of_them = descendants(self._root)
        self._network = None  # learnt again from the one that is found: a later command may have one of its own
        self._room = 2 * len(all_of_them) + _MARGIN
        plain: list[int] = []
        for process in all_of_them:
            if process in self._known:
                continue
            count = _descriptors(process)
            if count is None:
                continue
            if 0 < count <= _STANDARD:
                plain.append(process)
            elif (found := self._look(process, wanted, count)) is not None:
                for each in plain:
                    self._know(each, _STANDARD)
                return found
        self._complete = True
        for process in plain:
            found = self._look(process, wanted)
            if found is not None:
                return found
        return None

    def _look(self, process: int, wanted: str, count: int | None = None) -> Line | None:
        """At all descriptors of a process. `count` is how many there are, where that is known."""
        folder = f"/proc/{process}/fd"
        if count is None:
            count = _descriptors(process) or 0  # before: one that is opened meanwhile makes a difference
        if count > _MANY:  # the list alone takes long; without gaps the newest one is the last
            for descriptor in range(count + 1, count - _AROUND, -1):
                if self._is(folder, descriptor, wanted):
                    return self._found(process, descriptor, wanted)
        try:
            names = os.listdir(folder)
        except OSError:
            self._known.pop(process, None)
            return None
        for name in reversed(names):  # the newest connection has one of the highest numbers
            if self._left <= 0:
                return None
            if self._is(folder, name, wanted):
                return self._found(process, int(name), wanted)
        self._know(process, count)
        return None

    def _is(self, folder: str, descriptor: object, wanted: str) -> bool:
        self._left -= 1
        try:
            return os.readlink(f"{folder}/{descriptor}") == wanted
        except OSError:
            return False

    def _found(self, task: int, descriptor: int, wanted: str) -> Line | None:
        """The process of the task, if it is one of the run's and has the socket indeed."""
        held = self._lines.get(task)
        if held is not None:
            if held.has(descriptor, wanted) and held.lives():
                self._at = descriptor
                return held
            self._lines.pop(task).close()
        line = line_of(task, self._root)
        if line is None:
            return None
        if not line.has(descriptor, wanted):  # another process has the number by now
            line.close()
            return None
        line.lives()
        if self._network is None:
            try:
                self._network = os.readlink(f"/proc/{task}/ns/net")
            except OSError:
                pass
        self._know(line.processes[0], 0)
        self._at = descriptor
        return line

    def _know(self, process: int, count: int) -> None:
        if len(self._known) >= self._room:  # most of them are gone by now
            self._known.clear()
            self._complete = False
        self._known[process] = count


def _descriptors(process: int) -> int | None:
    """How many descriptors a process has; 0 where the kernel does not tell (before Linux 6.2); None where the process
    is gone."""
    try:
        return os.stat(f"/proc/{process}/fd").st_size
    except OSError:
        return None

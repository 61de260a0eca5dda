"""The inspection workers of a door alone: one for each of its workers, started where rules ask for it.

- New rules that need other workers (other names, credentials, limits) get them before they are in force; the workers
  before go on with the tunnels they have and end with the last of them.
- One that dies is replaced; until then, what must be inspected is refused. None outlives the door's worker it serves,
  nor the supervisor: the end of either's socket ends it.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from doorward.callback_loop import EventLoop
from doorward.errors import EngineError
from doorward.inspection_process import InspectionProcess
from doorward.watched_configuration import Loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.worker_process import WorkerProcess

_STEADY = 10.0
"""Seconds after which one that dies is no longer one that cannot start."""

_LONGEST_PAUSE = 30.0


class _Inspector:
    """A worker; `link` is the door's end of its link until that is handed over."""

    def __init__(self, python: str, work: Mapping[str, Any]) -> None:
        """Raises EngineError."""
        self.link: socket.socket | None
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.process = InspectionProcess(python, work, theirs)
        except EngineError:
            self.link.close()
            raise
        self.started = time.monotonic()
        self.ready = False


class _Wanted:
    """Workers that are coming up, by place; `done` hears "" or what is wrong."""

    def __init__(self, python: str, work: Mapping[str, Any], done: Callable[[str], None]) -> None:
        self.python = python
        self.work = work
        self.key = json.dumps([python, work], sort_keys=True)
        self.done = done
        self.inspectors: dict[int, _Inspector] = {}


class DoorInspection:
    """`worker_at` gives the door's worker of a place, `say` tells a person, `changed` is called when `ready` may have
    changed. `files` names what clients are to trust, once some worker was ready."""

    def __init__(
        self,
        loop: EventLoop,
        places: int,
        worker_at: Callable[[int], WorkerProcess | None],
        say: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        self.files: Mapping[str, str] = {}
        self._loop = loop
        self._places = places
        self._worker_at = worker_at
        self._say = say
        self._changed = changed
        self._wanted: _Wanted | None = None
        self._coming: _Wanted | None = None
        self._all: set[_Inspector] = set()
        self._pauses: dict[int, float] = {}
        self._ended = False

    @property
    def ready(self) -> bool:
        """Whether everything that must be inspected can be."""
        wanted = self._wanted
        return wanted is None or (
            len(wanted.inspectors) == self._places and all(each.ready for each in wanted.inspectors.values())
        )

    def want(self, loaded: Loaded, done: Callable[[str], None]) -> None:
        """Have workers come up for these rules, which inspect something; one call at a time. Unless something is wrong
        `put_in_force` is to follow."""
        assert loaded.inspection is not None and loaded.brokered is not None
        work = {**loaded.inspection.work, "credentials": loaded.brokered.told}
        coming = _Wanted(loaded.inspection.python, work, done)
        if self._wanted is not None and self._wanted.key == coming.key:
            done("")
            return
        self._coming = coming
        try:
            for place in range(self._places):
                coming.inspectors[place] = self._start(coming, place)
        except EngineError as error:
            self._failed(coming, error)

    def put_in_force(self) -> None:
        """Those that came up get the tunnels from now on."""
        if self._coming is not None:
            self._wanted, self._coming = self._coming, None
            for place, inspector in tuple(self._wanted.inspectors.items()):
                if inspector.link is not None:
                    self.serve(place)

    def serve(self, place: int) -> None:
        """The door's worker of a place is there, maybe a new one: give it its inspection worker."""
        wanted, worker = self._wanted or self._coming, self._worker_at(place)
        if wanted is None or worker is None:
            return
        inspector = wanted.inspectors.get(place)
        if inspector is not None and inspector.link is None:
            inspector = None  # it served the one before, and ends with it
        if inspector is None:
            try:
                inspector = wanted.inspectors[place] = self._start(wanted, place)
            except EngineError as error:
                self._lost(wanted, place, time.monotonic(), error.sentence)
                return
        assert inspector.link is not None
        worker.give_link(inspector.link)
        inspector.link = None

    def withdraw(self) -> None:
        """Nothing is inspected any more; the workers end with their last tunnels."""
        self._wanted = None

    def close(self) -> None:
        """End all of them."""
        self._ended = True
        for inspector in tuple(self._all):
            self._forget(inspector)

    def _start(self, wanted: _Wanted, place: int) -> _Inspector:
        inspector = _Inspector(wanted.python, wanted.work)
        self._all.add(inspector)
        self._loop.add_reader(inspector.process.fileno(), lambda: self._heard(wanted, place, inspector))
        self._loop.add_reader(inspector.process.ending, lambda: self._gone(wanted, place, inspector))
        return inspector

    def _heard(self, wanted: _Wanted, place: int, inspector: _Inspector) -> None:
        try:
            files = inspector.process.ready()
        except EngineError as error:
            self._gone(wanted, place, inspector, error)
            return
        if files is None:
            return
        self._loop.remove_reader(inspector.process.fileno())
        inspector.ready = True
        self.files = files
        if wanted is self._coming and all(each.ready for each in wanted.inspectors.values()):
            wanted.done("")
        self._changed()

    def _gone(
        self, wanted: _Wanted, place: int, inspector: _Inspector, error: EngineError | None = None
    ) -> None:
        if inspector not in self._all:
            return
        ready = inspector.ready
        if error is None and not ready:
            try:
                inspector.process.ready()  # what it said, or that it said nothing, whichever end was noticed first
            except EngineError as said:
                error = said
        self._forget(inspector)
        if self._ended or wanted.inspectors.get(place) is not inspector:
            return
        del wanted.inspectors[place]
        if wanted is self._coming:
            self._failed(wanted, error or EngineError("the inspection worker ended", ""))
        elif wanted is self._wanted and self._worker_at(place) is not None:
            why = "" if ready or error is None else error.sentence
            self._lost(wanted, place, inspector.started, why)
        self._changed()

    def _lost(self, wanted: _Wanted, place: int, started: float, why: str) -> None:
        pause = self._pauses.get(place, 0.0) if time.monotonic() - started < _STEADY else 0.0
        self._pauses[place] = min(_LONGEST_PAUSE, pause * 2 or 0.5)
        when = "now" if not pause else f"in {pause:g} s"
        self._say(
            f"an inspection worker died{f' ({why})' if why else ''}; what it must look into is refused until there is "
            f"another, which is started {when}"
        )

        def again() -> None:
            if not self._ended and wanted is self._wanted and place not in wanted.inspectors:
                self.serve(place)

        self._loop.call_later(pause, again)

    def _failed(self, coming: _Wanted, error: EngineError) -> None:
        self._coming = None
        for inspector in coming.inspectors.values():
            self._forget(inspector)
        coming.inspectors.clear()
        coming.done(f"{error.sentence}; {error.remedy}" if error.remedy else error.sentence)

    def _forget(self, inspector: _Inspector) -> None:
        self._all.discard(inspector)
        for descriptor in (inspector.process.fileno(), inspector.process.ending):
            if descriptor >= 0:
                self._loop.remove_reader(descriptor)
        if inspector.link is not None:
            inspector.link.close()
            inspector.link = None
        inspector.process.close()

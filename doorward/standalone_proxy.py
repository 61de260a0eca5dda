"""`doorward proxy` at work: keeps the workers running, gives them the rules, and ends them in order.

- Every listener stays open here too, so that what waits in its queue when a worker dies is served by the next one.
- New rules are read and checked here first; the workers get them only when nothing is wrong with them. Tunnels stay.
- The first SIGTERM or SIGINT drains, a second ends at once. SIGHUP reads the configuration and reopens the log.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from doorward import exit_status, systemd
from doorward.callback_loop import EventLoop
from doorward.connection_log import timestamp
from doorward.door_metrics import DoorMetrics
from doorward.errors import UsageError
from doorward.proxy_worker import WorkerSetup
from doorward.recent_refusals import RecentRefusals
from doorward.summary import printable
from doorward.watched_configuration import Loaded, WatchedConfiguration
from doorward.worker_process import WorkerProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.client_environment import ClientEnvironment
    from doorward.door_asking import DoorAsking
    from doorward.door_inspection import DoorInspection

_LOOK_EVERY = 1.0
"""Seconds between two looks at the configuration files."""

_GRACE = 5.0
"""Seconds a worker gets to close its connections after the time to drain, before it is killed."""

_STEADY = 10.0
"""Seconds after which a worker that dies is no longer one that cannot start."""

_LONGEST_PAUSE = 30.0


class Reloaded(NamedTuple):
    """How a reload ended: `problem` is empty where the new rules are in force."""

    problem: str
    notices: tuple[str, ...]


class _Reload(NamedTuple):
    number: int
    done: Callable[[Reloaded], None]
    outcome: Reloaded


class StandaloneProxy:
    """`listeners` holds those of each worker. `run` it once."""

    def __init__(
        self,
        loop: EventLoop,
        configuration: WatchedConfiguration,
        loaded: Loaded,
        listeners: Sequence[Sequence[socket.socket]],
        setup: WorkerSetup,
        where: str,
        client_environment: ClientEnvironment | None = None,
    ) -> None:
        """`where` names the listeners for a person; `client_environment` is kept up to date."""
        self.metrics = DoorMetrics()
        self.refusals = RecentRefusals()
        self._loop = loop
        self._configuration = configuration
        self._loaded = loaded
        self._listeners = listeners
        self._setup = setup
        self._where = where
        self._workers: dict[int, WorkerProcess] = {}  # by place
        self._pauses: dict[int, float] = {}  # seconds, by place, before the next start
        self._starts = 0
        self._accepting = False
        self._stopping = False
        self._status = 0
        self._number = 0  # of the rules in force here
        self._stale = ""
        self._reloads: list[_Reload] = []
        self._asking: DoorAsking | None = None
        self._inspection: DoorInspection | None = None
        self._client_environment = client_environment
        self._not_trusted: set[str] = set()  # hosts that were told of
        self._told_files: Mapping[str, str] = {}
        self._reading = False  # new rules wait for what they need
        self._later: list[tuple[str, Callable[[Reloaded], None]]] = []

    def run(self) -> int:
        """Serve until a signal ended it. Returns the exit status."""
        loop = self._loop
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._hung_up)
        for notice in self._loaded.notices:
            say(notice)
        if self._loaded.inspection is not None:
            self._reading = True
            self._inspectors().want(self._loaded, self._inspected_first)
        for place in range(len(self._listeners)):
            self._start(place)
        loop.call_later(_LOOK_EVERY, self._look)
        try:
            loop.run_forever()
        finally:
            if self._asking is not None:
                self._asking.close()
            if self._inspection is not None:
                self._inspection.close()
        return self._status

    # --- what the control listener asks ----------------------------------------------------------------------

    def health(self) -> dict[str, object]:
        """`ok` is whether connections are accepted by every worker and recorded."""
        ready = sum(worker.ready for worker in self._workers.values())
        problems = sorted({worker.log_problem for worker in self._workers.values()} - {""})
        inspects = self._inspection is None or self._inspection.ready
        ok = self._accepting and not self._stopping and ready == len(self._listeners) and not problems and inspects
        return {
            "ok": ok,
            "state": "draining" if self._stopping else "accepting" if self._accepting else "starting",
            "workers": len(self._listeners),
            "ready": ready,
            "log": problems[0] if problems else "",
            "inspection": "starting" if not inspects else "off" if self._loaded.inspection is None else "ready",
            "configuration": self._stale or "current",
        }

    def metrics_text(self) -> str:
        """All counts as of now."""
        self.catch_up()
        ready = sum(worker.ready for worker in self._workers.values())
        return self.metrics.render(workers=ready, stale=bool(self._stale))

    def catch_up(self) -> None:
        """Hear everything the workers have said: what a client was told must be known here."""
        for worker in tuple(self._workers.values()):
            worker.catch_up()

    def reload(self, why: str, done: Callable[[Reloaded], None] = lambda outcome: None) -> None:
        """Read the configuration again. `done` is called when every worker has the new rules, or with what is wrong."""
        if self._reading:
            self._later.append((why, done))
            return
        try:
            loaded = self._configuration.load()
        except UsageError as error:
            self._not_loaded(why, done, f"the new configuration is wrong: {str(error).removeprefix('doorward: ')}")
            return
        if loaded.inspection is None:
            self._put_in_force(why, done, loaded)
            return
        self._reading = True

        def inspected(problem: str) -> None:
            self._reading = False
            if self._stopping:
                done(Reloaded("the proxy is ending", ()))
                return
            if problem:
                self._not_loaded(why, done, problem)
            else:
                self._put_in_force(why, done, loaded)
            self._reload_later()

        self._inspectors().want(loaded, inspected)

    def _reload_later(self) -> None:
        later, self._later = self._later, []
        for why, done in later:
            self.reload(why, done)

    def _not_loaded(self, why: str, done: Callable[[Reloaded], None], problem: str) -> None:
        self._stale = problem.removeprefix("the new configuration is wrong: ")
        self.metrics.reloads["failed"] += 1
        say(f"{why}: the rules in force stay, since {problem}")
        done(Reloaded(self._stale, ()))

    def _put_in_force(self, why: str, done: Callable[[Reloaded], None], loaded: Loaded) -> None:
        self._loaded = loaded
        self._stale = ""
        if self._inspection is not None:
            if loaded.inspection is None:
                self._inspection.withdraw()
            else:
                self._inspection.put_in_force()
        self._tell_clients()
        self._number += 1
        self.metrics.reloads["ok"] += 1
        outcome = Reloaded("", self._loaded.notices)
        for worker in self._workers.values():
            told = {"number": self._number, "settings": self._loaded.settings, "links": worker.links}
            worker.send({"type": "policy", **told})
        self._reloads.append(_Reload(self._number, done, outcome))
        rules = self._loaded.policy.rules
        say(f"{why}: configuration reloaded, {len(rules.allow)} allow and {len(rules.deny)} deny")
        for notice in self._loaded.notices:
            say(notice)
        self._settle_reloads()

    def stop(self) -> None:
        """Drain; the second time, end."""
        if self._stopping:
            for worker in self._workers.values():
                worker.send({"type": "stop"})
            self._loop.call_later(_GRACE, self._kill)
            return
        self._stopping = True
        systemd.notify(os.environ, "STOPPING=1")
        for listener in {listener for each in self._listeners for listener in each}:
            listener.close()
        self.refusals.end()
        if self._accepting:
            say(f"no longer accepting; what is open may finish for {self._setup.drain_time:g} s")
        for worker in self._workers.values():
            worker.send({"type": "stop"})
        self._loop.call_later(self._setup.drain_time + _GRACE, self._kill)
        self._end_if_done()

    # --- workers ---------------------------------------------------------------------------------------------

    def _start(self, place: int) -> None:
        if self._stopping:
            return
        self._starts += 1
        worker = WorkerProcess(
            self._loop,
            self._starts,
            self._listeners[place],
            self._loaded.policy,
            self._setup,
            self._heard,
            lambda worker, status: self._worker_ended(place, worker, status),
        )
        worker.applied = self._number
        self._workers[place] = worker
        if self._inspection is not None:
            self._inspection.serve(place)

    # --- inspection ------------------------------------------------------------------------------------------

    def _inspectors(self) -> DoorInspection:
        if self._inspection is None:
            from doorward.door_inspection import DoorInspection  # only where something is inspected

            places = len(self._listeners)
            self._inspection = DoorInspection(self._loop, places, self._workers.get, say, self._accept_if_ready)
        return self._inspection

    def _inspected_first(self, problem: str) -> None:
        self._reading = False
        if self._stopping:
            return  # the workers end, and theirs with them
        if problem:
            say(f"{problem}; nothing is served")
            self._status = exit_status.ENGINE_FAILED
            self._loop.call_later(0, self.stop)
            return
        self._inspectors().put_in_force()
        self._accept_if_ready()
        self._reload_later()

    def _tell_clients(self) -> None:
        """Where they find what they are to trust, and what stands for credentials."""
        files = {} if self._inspection is None or self._loaded.inspection is None else self._inspection.files
        if files and files != self._told_files:
            say(f"some hosts are inspected: clients must trust {files['bundle']}")
        self._told_files = files
        if self._client_environment is not None:
            brokered = self._loaded.brokered
            problem = self._client_environment.write(files, {} if brokered is None else brokered.placeholders)
            if problem:
                say(problem)

    def _heard(self, worker: WorkerProcess, message: Mapping[str, Any]) -> None:
        kind = message["type"]
        if kind == "item":
            item = message["item"]
            self.metrics.take(worker.number, item)
            if item["type"] == "refusal":
                self.refusals.add({"timestamp": timestamp(time.time()), **item["payload"]})
        elif kind == "ready":
            worker.ready = True
            self._accept_if_ready()
        elif kind in ("applied", "not_applied"):
            worker.applied = max(worker.applied, message["number"])
            if kind == "not_applied":
                say(f"worker {worker.pid} keeps its old rules: {message['message']}")
            self._settle_reloads()
        elif kind in ("question", "withdrawn"):
            self._questioned(worker, message)
        elif kind == "not_trusted":
            if message["host"] not in self._not_trusted:
                self._not_trusted.add(message["host"])
                say(message["message"])
        elif kind == "fault":
            self.metrics.fault()
            say(f"a fault of doorward's own closed a connection: {message['message']}; please report it")
        elif kind == "log":
            worker.log_problem = message["problem"]
            lost = f", {message['lost']} records were lost" if message["lost"] else ""
            if worker.log_problem:
                say(f"records cannot be written, so nothing is let through: {worker.log_problem}{lost}")
            else:
                say(f"records are written again{lost}")

    def _questioned(self, worker: WorkerProcess, message: Mapping[str, Any]) -> None:
        if self._asking is None:
            from doorward.door_asking import DoorAsking  # only where the queue is used
            from doorward.own_file import own_home

            self._asking = DoorAsking(self._loop, own_home(), self._loaded.settings, say)
        self._asking.hear(worker, message)

    def _accept_if_ready(self) -> None:
        everyone = len(self._workers) == len(self._listeners) and all(each.ready for each in self._workers.values())
        if everyone and not self._accepting and not self._stopping and not self._reading:
            self._accepting = True
            self._tell_clients()
            say(f"accepting on {self._where}")
            systemd.notify(os.environ, "READY=1")

    def _worker_ended(self, place: int, worker: WorkerProcess, status: int) -> None:
        del self._workers[place]
        self.metrics.worker_gone(worker.number)
        if self._asking is not None:
            self._asking.forget(worker)
        self._settle_reloads()
        if self._stopping:
            self._end_if_done()
            return
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        if not self._accepting and not worker.ready:
            say(f"a worker ended {how} before it accepted anything; nothing is served")
            self._status = exit_status.ENGINE_FAILED
            self.stop()
            return
        self.metrics.restarts += 1
        steady = time.monotonic() - worker.started > _STEADY
        pause = 0.0 if steady else self._pauses.get(place, 0.0)
        self._pauses[place] = min(_LONGEST_PAUSE, pause * 2 or 0.5)
        when = "now" if not pause else f"in {pause:g} s"
        say(f"worker {worker.pid} ended {how}, its connections with it; another is started {when}")
        self._loop.call_later(pause, lambda: self._start(place))

    def _settle_reloads(self) -> None:
        """Answer those who wait for rules that every worker has."""
        everywhere = min((worker.applied for worker in self._workers.values()), default=self._number)
        for reload in tuple(self._reloads):
            if reload.number <= everywhere:
                self._reloads.remove(reload)
                reload.done(reload.outcome)

    def _end_if_done(self) -> None:
        if not self._workers:
            self._loop.stop()

    def _kill(self) -> None:
        for worker in self._workers.values():
            worker.kill()

    # --- what makes it act -----------------------------------------------------------------------------------

    def _hung_up(self) -> None:
        if self._stopping:
            return
        for worker in self._workers.values():
            worker.send({"type": "reopen_log"})
        self.reload("SIGHUP")

    def _look(self) -> None:
        if self._stopping:
            return
        if self._configuration.changed():
            self.reload("a file changed")
        self._loop.call_later(_LOOK_EVERY, self._look)


def say(text: str) -> None:
    """A line of doorward's own, for a person."""
    lines = [f"doorward proxy: {printable(line)}" for line in text.splitlines()]
    if sys.stderr is None:  # closed before the start
        return
    try:
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # nobody reads it; the door goes on

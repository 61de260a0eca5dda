"""The runs of a proxy process: a door for each, under the policy it was handed over with."""

from __future__ import annotations

import _socket
import os

from doorward.proxy import records
from doorward.proxy.admission import Way
from doorward.proxy.control import Control, SupervisorGone
from doorward.proxy.handover import Handover
from doorward.proxy.loop import Group, Loop
from doorward.proxy.own_listeners import OwnListeners
from doorward.proxy.policy import Policy
from doorward.proxy.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.inspection.link import InspectionLink
    from doorward.proxy.questions import Questions


class Runs:
    """`group` runs the doors; `control` takes their records and is told when one has finished."""

    def __init__(self, loop: Loop, group: Group, control: Control, inspection: _socket.socket | None = None) -> None:
        """`inspection` leads to the worker, if a policy asks for one."""
        self._loop = loop
        self._link_sock = inspection
        self._link: InspectionLink | None = None
        self._group = group
        self._control = control
        self._way = Way(loop, OwnListeners())
        self._via = b"doorward-" + os.urandom(4).hex().encode("ascii")
        self._questions: Questions | None = None
        self._doors: dict[str, tuple[str, Server]] = {}  # by run: its policy's id, its door

    @property
    def questions(self) -> Questions:
        """What is put to the supervisor about hosts."""
        if self._questions is None:
            from doorward.proxy.questions import Questions  # most runs ask nobody

            self._questions = Questions(self._loop, self._control)
        return self._questions

    def open(self, brought: Handover, policy: Policy) -> None:
        """One more socket of a run; the first one opens its door."""
        run = brought.run
        known = self._doors.get(run)
        if known is not None:
            self._add(known[1], brought)
            return
        server = Server(
            self._way,
            run,
            policy,
            self._control,
            via=self._via,
            decider=None if policy.answer_time is None else self.questions.decider(run),
            answer_time=policy.answer_time or 0.0,
            on_error=lambda error: self._note(run, error),
            inspection=self._inspection(policy),
        )
        self._doors[run] = (brought.policy, server)
        self._add(server, brought)
        self._group.start(self._serve(run, server))

    def _inspection(self, policy: Policy) -> InspectionLink | None:
        """The link to the worker, served from its first use on."""
        if policy.inspection is None or self._link_sock is None:
            return None
        if self._link is None:
            from doorward.proxy.inspection.link import InspectionLink

            self._link = InspectionLink(self._loop, self._link_sock)
            self._group.start(self._link.run(self._group, lambda error: self._note("", error)))
        return self._link

    def _add(self, server: Server, brought: Handover) -> None:
        if brought.kind == "proxy" and brought.socket is not None:
            server.add_listener(brought.socket)
        else:
            from doorward.proxy.inside import add  # a door alone has none of it

            add(server, brought)

    def reload(self, policy_id: str, policy: Policy) -> None:
        """The policy has new contents."""
        for used, server in self._doors.values():
            if used == policy_id:
                server.reload(policy)

    def finish(self, run: str) -> None:
        """Close the run's door; `finished` follows its last record, at once where it has none."""
        if run in self._doors:
            self._doors[run][1].close()
        else:
            self._control.tell({"type": "finished", "run": run})

    def close(self) -> None:
        """Close every door."""
        for _, server in self._doors.values():
            server.close()
        if self._link is not None:
            self._link.close()

    def free(self) -> None:
        """Give back what the doors shared, once all are closed."""
        self._way.close()

    async def _serve(self, run: str, server: Server) -> None:
        try:
            await server.serve()
        finally:
            del self._doors[run]
        self._control.tell({"type": "finished", "run": run})

    def _note(self, run: str, error: BaseException) -> None:
        """A fault of ours, on one connection."""
        if not isinstance(error, SupervisorGone):
            self._control.post(run, [records.fault(error)])

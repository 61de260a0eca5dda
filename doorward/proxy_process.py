"""The supervisor's side of the proxy process: forked first, configured later, its records answered with receipts."""

from __future__ import annotations

import errno
import os
import sys

# The module below `socket`, which loads selectors and makes enums of every constant: 2.5 ms of each start
from _socket import AF_UNIX, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM, socket, socketpair

from doorward.errors import EngineError, ProxyStopped, UsageError
from doorward.start_json import dumps, loads, value_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from typing import Any, NoReturn, TypeAlias

    from doorward.record_forms import Forms

    Told: TypeAlias = tuple[str, dict[str, Any] | None, str]
    """One item of a record: type, payload, and the payload as JSON. The payload is None where it was put into a form
    (record_forms.py): then it is about a name and says nothing of a turn, and `payload_of` decodes it."""
else:
    import _signal as signal  # the same functions without the enums, which cost 0.5 ms

_CHUNK = 1 << 16
_LINUX = sys.platform == "linux"
# Messages that keep their bounds. macOS has no such stream between processes; its end is then not seen, which the
# control channel's is.
_MESSAGES = SOCK_SEQPACKET if _LINUX else SOCK_DGRAM

POLICY = "session"
"""The name of the one set of network rules a session has."""


class ProxyProcess:
    """A forked child that runs the network door. Ends by itself when this process is gone (end of file)."""

    def __init__(self) -> None:
        self.control, control_end = socketpair(AF_UNIX, SOCK_STREAM)
        self.handover, handover_end = socketpair(AF_UNIX, _MESSAGES)
        self.inspection, inspection_end = socketpair(AF_UNIX, _MESSAGES)
        """Leads to the door, for an inspection worker, if there is to be one; closed here once that has it."""
        self._pending = b""
        self._forms: Forms | None = None
        self._serving = False
        self.questions: list[Mapping[str, Any]] = []
        """Messages about questions that have arrived with the records: `question` and `withdrawn` (proxy/questions.py).
        Whoever reads them takes them out."""
        self.notices: tuple[str, ...] = ()
        self.pid = os.fork()
        if self.pid == 0:
            self.control.close()
            self.handover.close()
            self.inspection.close()
            _become_proxy(control_end, handover_end, inspection_end)
        control_end.close()
        handover_end.close()
        inspection_end.close()
        self._pidfd = os.pidfd_open(self.pid) if _LINUX else -1

    def fileno(self) -> int:
        """The descriptor to poll for records."""
        return self.control.fileno()

    def configure(self, settings: Mapping[str, object]) -> None:
        """Send the rules. `await_ready` tells whether they were understood."""
        self._send({"type": "configure", "policy": POLICY, "settings": settings, "hold": True})

    def await_ready(self) -> None:
        """Wait for the answer to `configure`.

        Raises UsageError for rules that cannot be read, EngineError if the proxy process is not there.
        """
        self.control.settimeout(20)
        try:
            while True:
                for message in map(loads, self._receive()):
                    if message["type"] == "ready":
                        self.notices = tuple(str(notice) for notice in _list(message.get("notices")))
                        return
                    if message["type"] == "error":
                        raise UsageError(f"doorward: {message['message']}")
        except (ProxyStopped, TimeoutError):
            raise EngineError(
                "the proxy process did not become ready, so nothing was started",
                "run `doorward doctor`; with DOORWARD_DEBUG=1 the proxy's own messages are shown",
            ) from None
        finally:
            self.control.settimeout(None)

    def records(self) -> tuple[list[Told], bytes, list[str]]:
        """What has arrived: the items of all records in order, the receipts to send once they are kept, for which the
        proxy waits before it answers its clients, and the runs that are finished. Raises ProxyStopped at end of file.
        """
        items: list[Told] = []
        receipts = b""
        finished = []
        for line in self._receive():
            if line[:1] != b"{":
                receipts += self._take_record(line, items)
                continue
            message = loads(line)
            if message["type"] == "finished":
                finished.append(str(message["run"]))
            elif message["type"] in ("question", "withdrawn"):
                self.questions.append(message)
        return items, receipts, finished

    def _take_record(self, line: bytes, items: list[Told]) -> bytes:
        """Add what a line of `Control` (proxy/control.py) holds to `items`, and give the receipt it is to have, if any.
        Each payload is decoded, whatever becomes of it, or its form was: what is put into the rollout is one JSON
        object. Raises ValueError for what is neither a record nor a form."""
        number, waits, what, *told = line.decode("ascii").split("\t")
        if number == "form":
            if self._forms is None:
                from doorward.record_forms import Forms  # with the first: many runs ask for few names

                self._forms = Forms()
            self._forms.learn(waits, [what, *told])
            return b""
        if not number.isdigit():
            raise ValueError("no record of the proxy")
        if told and told[0] == "form" and self._forms is not None:
            items += self._forms.filled(told[1], told[2:])
        else:
            items += _decoded(told)
        return b"%b\n" % number.encode("ascii") if waits == "wait" else b""

    def serve(self) -> None:
        """A command is about to start: get ready for its connections, which wait in their queues until then. Sooner,
        this would take the processor that the sandbox needs for its own start."""
        if not self._serving:
            self._serving = True
            self._send({"type": "serve"})

    def acknowledge(self, receipts: bytes) -> None:
        """The records are in the rollout: the proxy may answer."""
        self._send_bytes(receipts)

    def answer(self, number: int, answer: str) -> None:
        """The answer to a question: "allow-once", "allow-for-session" or "deny"."""
        self._send({"type": "answer", "id": number, "answer": answer})

    def finish(self, run: str) -> None:
        """Close that run's listeners and connections; `records` reports it in its second list."""
        self._send({"type": "finish", "run": run})

    def end(self) -> None:
        """End the process without waiting. What it owed came before its last `finished`, and it keeps nothing but
        descriptors: killing it saves the 3 ms in which it would take itself down."""
        if self.pid:
            try:
                if self._pidfd >= 0:
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
                else:
                    os.kill(self.pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
            except ProcessLookupError:
                pass  # it has ended

    def close(self) -> None:
        """End the process and reap it. Twice is fine."""
        if not self.pid:
            return
        self.end()
        self.control.close()
        self.handover.close()
        self.inspection.close()
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass  # SIGCHLD is ignored, so the kernel has reaped it
        if self._pidfd >= 0:
            os.close(self._pidfd)
        self.pid = 0

    def _send(self, message: Mapping[str, object]) -> None:
        self._send_bytes(dumps(message).encode() + b"\n")

    def _send_bytes(self, data: bytes) -> None:
        try:
            self.control.sendall(data)
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.EBADF):
                raise
            # the end of file on the reading side says the same, and is handled in one place

    def _receive(self) -> list[bytes]:
        try:
            data = self.control.recv(_CHUNK)
        except ConnectionResetError:
            data = b""  # it died with something of ours unread
        if not data:
            raise ProxyStopped
        *lines, self._pending = (self._pending + data).split(b"\n")
        return lines


def _decoded(told: list[str]) -> list[Told]:
    """The items of a record, from types and payloads in turn. Raises ValueError for what is none."""
    items: list[Told] = []
    for kind, text in zip(told[::2], told[1::2], strict=True):
        payload, end = value_at(text, 0)
        if payload.__class__ is not dict or end != len(text):
            raise ValueError("no object in a record of the proxy")
        items.append((kind, payload, text))
    return items


def payload_of(item: Told) -> dict[str, Any]:
    """An item's payload, decoded if it is not yet."""
    payload: dict[str, Any] = value_at(item[2], 0)[0] if item[1] is None else item[1]
    return payload


def _list(value: object) -> list[Any]:
    assert isinstance(value, list)
    return value


def _become_proxy(control: socket, handover: socket, inspection: socket) -> NoReturn:
    """The child after fork: a session of its own (no Ctrl-C of the caller's terminal), no stream of the caller's."""
    status = 1
    try:
        os.setsid()
        debug = "DOORWARD_DEBUG" in os.environ
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1) if debug else (0, 1, 2):
            os.dup2(null, stream)
        from doorward.proxy.process import run_proxy

        run_proxy(control, handover, inspection)
        status = 0
    except BaseException:
        if "DOORWARD_DEBUG" in os.environ:
            import traceback

            traceback.print_exc()
    finally:
        os._exit(status)

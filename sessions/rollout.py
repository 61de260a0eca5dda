"""The append-only writer of one rollout.

- One writer at a time: flock on the file itself, held from `create` or `open` to `close`.
- One write(2) a record, or for a few that come at once. A write that fails or comes back short raises RolloutError:
  what it did not bring whole does not count (unless all but its LF was taken), the next record takes its ordinal, and
  nothing that `append` returned for is missing.
- A torn tail is never cut and never glued: the next record starts on a line of its own, and its metadata says how
  many bytes stand before it that are no record (`chain.py`). The same holds for what another program appends.
- `open` reads the end of the file only (`tail.py`). A turn whose writer is gone is marked interrupted, once.

Only `sync()` waits for the disk: for turn ends, and wherever the record must survive a power cut.
"""

from __future__ import annotations

import os
import time

from doorward.sessions import chain, items, lock
from doorward.sessions.home import FILE_MODE, Home, StoreError, private_folder
from doorward.sessions.ids import day_folder, rollout_name, session_in, uuid7
from doorward.sessions.line import Line, Totals
from doorward.sessions.regular_file import open_regular
from doorward.sessions.sha256 import sha256
from doorward.sessions.timestamps import rfc3339
from doorward.start_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:  # a new session has nothing before it to read
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Any, Self

    from doorward.sessions.tail import Tail

RECORD_LIMIT = 256 << 20
"""Bytes. Outputs go to blobs long before; a record past this is a mistake of the caller."""

# macOS has no fdatasync(2)
_to_disk = getattr(os, "fdatasync", os.fsync)
_encode = dumps


class RolloutError(StoreError):
    """The rollout cannot be written (or opened for writing). The text is one plain sentence."""


class RolloutBusy(RolloutError):
    """Another process writes this rollout. `pid` is None where it cannot be told."""

    def __init__(self, path: str, pid: int | None) -> None:
        super().__init__(f"{path} is being written by {f'process {pid}' if pid else 'another process'}")
        self.pid = pid


class Rollout:
    """One session's file, open for appending. Made by `create` and `open`; a context manager that closes it.

    For one thread. A forked child shares the lock but must not append.
    """

    def __init__(self, descriptor: int, path: str, session: str) -> None:
        self._descriptor = descriptor
        self.path = path
        self.id = session
        self.notices: tuple[str, ...] = ()
        """What `open` found at the end of the file, one sentence each."""
        self.interrupted: int | None = None
        """The turn that `open` had to mark as interrupted."""
        self._totals = Totals()
        self._ordinal = 0
        self._chain = chain.NOTHING_BEFORE
        self._linked_end = 0
        self._folder_synced = False
        self._shared: Totals | None = None

    @classmethod
    def create(
        cls,
        home: Home,
        *,
        cwd: str,
        name: str | None = None,
        meta: Mapping[str, Any] | None = None,
        after: Tail | None = None,
    ) -> Self:
        """A new session with its `session_meta` written. Nothing but the file (and its folders) is made.

        `meta` adds keys to the `session_meta` payload, e.g. `cli_version` and `git`. `after` is the end of the lines
        that a fork shares: its own go on from there (`history.py`). Raises RolloutError.
        """
        now = time.time_ns()
        session, moment = uuid7(now), time.gmtime(now // 1_000_000_000)
        path = f"{home.sessions}/{day_folder(moment)}/{rollout_name(session, moment)}"
        try:
            home.ensure()
            descriptor = _new_file(path)
        except StoreError as error:
            raise RolloutError(str(error)) from error
        rollout = cls(descriptor, path, session)
        if after is not None:
            rollout._go_on_after(after)
        try:
            rollout._own()
            rollout.append(*items.session_meta(session, timestamp=rfc3339(now), cwd=cwd, name=name, meta=meta))
        except BaseException:
            # a file without its first record is no session
            rollout.close()
            _remove(path)
            raise
        return rollout

    @classmethod
    def open(cls, home: Home, path: str, *, shared: Totals | None = None) -> Self:
        """An existing rollout, to go on where it ends. Raises RolloutBusy, RolloutError.

        `shared` is what the lines that it shares amount to, where another writer's lines do not count them.
        """
        session = session_in(os.path.basename(path))
        if session is None:
            raise RolloutError(f"{path} is not named as a rollout (rollout-TIME-UUID.jsonl)")
        if path.startswith(home.archived + "/"):
            raise RolloutError(f"the session is archived: doorward unarchive {session}")
        try:
            descriptor = open_regular(path, os.O_RDWR | os.O_APPEND)
        except StoreError as error:
            raise RolloutError(str(error)) from error
        rollout = cls(descriptor, path, session)
        rollout._shared = shared
        try:
            rollout._go_on()
        except BaseException:
            rollout.close()
            raise
        return rollout

    def _own(self) -> None:
        """Locks the file, and makes sure that it is private."""
        try:
            if not lock.take(self._descriptor):
                raise RolloutBusy(self.path, lock.holder(os.fstat(self._descriptor)))
            os.fchmod(self._descriptor, FILE_MODE)
        except OSError as error:
            raise RolloutError(f"cannot lock {self.path}: {error.strerror}") from error

    def _go_on(self) -> None:
        self._own()
        try:
            found = os.fstat(self._descriptor)
            # between opening and locking it may have been archived or deleted
            if not os.path.samestat(found, os.stat(self.path, follow_symlinks=False)):
                raise RolloutError(f"{self.path} was replaced by another file")
            if found.st_size == 0:
                raise RolloutError(f"{self.path} is empty: its session never started")
            tail = self._find_end(found.st_size)
        except OSError as error:
            raise RolloutError(f"cannot read {self.path}: {error.strerror}") from error
        notices = []
        if tail.damaged:
            lines = "line" if tail.damaged == 1 else "lines"
            notices.append(f"{tail.damaged} {lines} at the end cannot be read and are passed over: {self.path}")
        if tail.unnumbered:
            records = "record carries" if tail.unnumbered == 1 else "records carry"
            notices.append(f"the last {tail.unnumbered} {records} no ordinal: {self.path}")
        self.notices = tuple(notices)
        if self._totals.open:
            self.interrupted = self._totals.turn
            self.append(*items.turn_interrupted(self.id, self.interrupted))

    def _find_end(self, size: int) -> Tail:
        """Takes number, link and totals from what stands in the file."""
        from doorward.sessions.tail import read_tail

        tail = read_tail(self._descriptor, size)
        if tail.linked_end < self._linked_end:
            raise RolloutError(f"{self.path} has become shorter: another program cut it")
        self._chain, self._linked_end, self._totals = tail.chain, tail.linked_end, tail.totals
        if self._shared is not None and not tail.linked_end:
            own, before = tail.totals, self._shared
            self._totals = own._replace(turn=own.turn + before.turn, refused=own.refused + before.refused)
        self._ordinal = tail.next_ordinal
        return tail

    def _go_on_after(self, shared: Tail) -> None:
        """Takes number, link and totals from the end of what another file holds. A fork has a name of its own."""
        self._chain, self._ordinal = shared.chain, shared.next_ordinal
        self._totals = shared.totals._replace(open=False, name=None)

    @property
    def turns(self) -> int:
        """The highest turn number used so far; the next turn is one more."""
        return self._totals.turn

    @property
    def totals(self) -> Totals:
        """What the session amounts to so far."""
        return self._totals

    @property
    def chain(self) -> str:
        """The head digest: the link of the last record written."""
        return self._chain

    def append(self, type: str, payload: Mapping[str, Any]) -> Line:
        """Writes one record. On return it is in the file (though perhaps not on the disk: see `sync`).

        Raises RolloutError when it is not; the rollout may be tried again, e.g. when the disk has room.
        ValueError for a record that `items` says is dropped.
        """
        return self.append_together(((type, payload),))[0]

    def append_together(self, records: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Line]:
        """The same for several that come at once, in one write. Raises RolloutError unless all of them are in the file;
        the first of them may then be, as if the rest had never come."""
        lines: list[Line] = []
        self._write([(type, payload, None) for type, payload in records], lines)
        return lines

    def append_encoded(self, records: Sequence[tuple[str, Mapping[str, Any], str]]) -> int:
        """The same for payloads that are JSON already (ASCII, one line each), beside what was decoded from it. Returns
        the first one's ordinal."""
        self._write(records, None)
        return self._ordinal - len(records)

    def _write(self, records: Sequence[tuple[str, Mapping[str, Any], str | None]], lines: list[Line] | None) -> None:
        """Appends them, each with what it reads like where that is encoded. `lines` takes what a reader would see."""
        if self._descriptor < 0:
            raise RolloutError(f"{self.path} is closed")
        for type, payload, _ in records:
            row = items.keeping(type, payload)
            if not row.kept:
                raise ValueError(f"{type} {payload.get('type', '')} is not kept in rollouts: {row.why}")
        try:
            found = os.fstat(self._descriptor)
            if found.st_nlink == 0:
                raise RolloutError(f"{self.path} was deleted while its session was open")
            size = found.st_size
            if size != self._linked_end:
                # a write that came back short, one whose end we did not see (an exception out of a signal handler),
                # or another program's
                self._find_end(size)
            timestamp = rfc3339(time.time_ns())
            totals, digits, ordinal = self._totals, self._chain, self._ordinal
            data = b""
            unchained = None
            if size != self._linked_end:
                data, unchained = self._account_for(size)
            for type, payload, encoded in records:
                totals = items.advanced(totals, type, payload)
                if encoded is None:
                    encoded = _encode(payload)
                quoted = f'"{type}"' if type in items.RECORDS else _encode(type)
                body = (
                    f'{{"timestamp":"{timestamp}","ordinal":{ordinal},"type":{quoted},"payload":{encoded},'
                    f'"metadata":{{{_totals(totals, unchained)},"chain":"'
                ).encode("ascii")
                digits = chain.link(digits, body)
                text = chain.sealed(body, digits)
                if len(text) > RECORD_LIMIT:
                    raise RolloutError(f"a record of {len(text)} bytes is more than a rollout takes")
                if lines is not None:
                    start, length = size + len(data), len(text) - 1
                    metadata = _metadata(totals, unchained, digits)
                    lines.append(Line(type, payload, timestamp, ordinal, metadata, None, start, length, True))
                data += text
                ordinal += 1
                unchained = None
            written = os.write(self._descriptor, data)
        except OSError as error:
            raise RolloutError(f"cannot write to {self.path}: {error.strerror}") from error
        except (TypeError, ValueError, RecursionError) as error:
            raise RolloutError(f"a {type} record cannot be written as JSON: {error}") from error
        if written != len(data):
            raise RolloutError(
                f"cannot write to {self.path}: only {written} of {len(data)} bytes were taken "
                "(the disk is full or the file too large)"
            )
        self._totals, self._chain, self._ordinal = totals, digits, ordinal
        self._linked_end = size + len(data)

    def _account_for(self, size: int) -> tuple[bytes, dict[str, Any] | None]:
        """What to write first so that the record starts on its own line, and the account of what stands before it."""
        closing = b""
        unchained = None
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            closing = b"\n"
        count = size + len(closing) - self._linked_end
        if count > 0:
            from doorward.sessions.tail import CHUNK

            digest = sha256()
            for start in range(self._linked_end, size, CHUNK):
                digest.update(os.pread(self._descriptor, min(CHUNK, size - start), start))
            digest.update(closing)
            unchained = {"bytes": count, "sha256": digest.hexdigest()}
        return closing, unchained

    def sync(self) -> None:
        """Returns when everything appended is on the disk. Raises RolloutError."""
        try:
            _to_disk(self._descriptor)
            if not self._folder_synced:
                # a new file is only found after a power cut when its folder is on the disk as well
                folder = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
                self._folder_synced = True
        except OSError as error:
            raise RolloutError(f"cannot bring {self.path} to the disk: {error.strerror}") from error

    def close(self) -> None:
        """Unlocks and closes; nothing is written. Twice is fine."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            lock.release(descriptor)
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _metadata(totals: Totals, unchained: dict[str, Any] | None, digits: str) -> dict[str, Any]:
    """Of one record, as `line.py` has it."""
    metadata: dict[str, Any] = {"turn": totals.turn, "open": totals.open, "refused": totals.refused}
    if totals.name is not None:
        metadata["name"] = totals.name
    if unchained is not None:
        metadata["unchained"] = unchained
    metadata["chain"] = digits
    return metadata


def _totals(totals: Totals, unchained: dict[str, Any] | None) -> str:
    """The same as JSON, up to the link and without the brace."""
    text = f'"turn":{totals.turn},"open":{"true" if totals.open else "false"},"refused":{totals.refused}'
    if totals.name is not None:
        text += f',"name":{_encode(totals.name)}'
    return text if unchained is None else f'{text},"unchained":{_encode(unchained)}'


def _new_file(path: str) -> int:
    """A new file, readable so that a torn write can be accounted for; its day's folders are made when they miss."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            return os.open(path, flags, FILE_MODE)
        except FileNotFoundError:
            day = os.path.dirname(path)
            month = os.path.dirname(day)
            for folder in (os.path.dirname(month), month, day):
                private_folder(folder)
            return os.open(path, flags, FILE_MODE)
    except OSError as error:
        raise StoreError(f"cannot make {path}: {error.strerror}") from error


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        # what went wrong before is what the caller has to know
        pass

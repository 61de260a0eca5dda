"""Records what a command wrote: all of it while it is small, else its head and tail, and the whole as a blob.

Both streams go into one record in the order they arrived. A blob holds the same bytes and is named by its SHA-256,
so equal outputs are stored once: `blobs/ab/abcdef….zst`. It is compressed on its way to the disk; the record says how
(`zstd`; `identity` in old ones), and the digest means the plain bytes.
Memory is bounded by WHOLE_LIMIT plus what one `feed` is given.
"""

from __future__ import annotations

import os

from doorward.named_tuple import NamedTuple
from doorward.sessions.home import Home, private_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import _Hash
    from typing import Any, Literal

    from doorward.sessions.unnamed_file import UnnamedFile
    from doorward.sessions.zstd import Compressor

    Stream = Literal["stdout", "stderr"]
else:
    Stream = str

WHOLE_LIMIT = 65536
"""Bytes of both streams together that a record holds whole."""
KEPT_EACH = WHOLE_LIMIT // 2
"""Bytes of head, and of tail, of what is longer."""


class Blob(NamedTuple):
    """Where the whole of a long output is."""

    sha256: str
    """Of the plain bytes."""
    bytes: int
    encoding: str = "zstd"


class OutputRecord(NamedTuple):
    """An output as text: UTF-8, a byte that is none as a lone surrogate `\\udcXX` (surrogateescape)."""

    head: str
    tail: str
    """Empty when `head` is the whole output."""
    omitted: int
    """Bytes between head and tail."""
    stdout: int
    """Bytes that came on it."""
    stderr: int
    blob: Blob | None

    @property
    def text(self) -> str:
        """The whole output, or head and tail with a line between them that says what is left out."""
        if not self.omitted:
            return self.head + self.tail
        return f"{self.head}\n[… {self.omitted} bytes left out …]\n{self.tail}"

    def to_json(self) -> dict[str, Any]:
        """As an `observation` record holds it."""
        return {**self._asdict(), "blob": None if self.blob is None else self.blob._asdict()}


def blob_path(home: Home, digest: str, encoding: str = "zstd") -> str:
    """Where the blob with these plain bytes is."""
    return f"{home.blobs}/{digest[:2]}/{digest}" + (".zst" if encoding == "zstd" else "")


class OutputRecorder:
    """Fed while the command runs, finished once. `feed` and `finish` raise StoreError when the disk is full.

    With `redact` nothing that has the shape of a credential reaches the disk; sizes and digest are then those of what
    is kept.
    """

    def __init__(self, home: Home, *, redact: bool = False) -> None:
        self._home = home
        self._redacting: Redacting | None = None
        if redact:
            from doorward.sessions.redacting import Redacting  # where it was asked for only

            self._redacting = Redacting()
        self._kept = bytearray()
        """All bytes so far; once there is a file, the head and then the latest bytes."""
        self._file: UnnamedFile | None = None
        self._digest: _Hash | None = None
        self._frame: Compressor | None = None
        self._counts = {"stdout": 0, "stderr": 0}

    def feed(self, stream: Stream, data: bytes) -> None:
        """The next bytes of one stream."""
        if self._redacting is not None:
            data = self._redacting.feed(stream, data)
        self._keep(stream, data)

    def _keep(self, stream: Stream, data: bytes) -> None:
        self._counts[stream] += len(data)
        if self._file is None:
            if len(self._kept) + len(data) <= WHOLE_LIMIT:
                self._kept += data
                return
            # only an output that becomes a blob pays for these: hashlib loads OpenSSL, fast on bulk, slow to load
            from hashlib import sha256

            from doorward.sessions.unnamed_file import UnnamedFile
            from doorward.sessions.zstd import compressor

            self._home.ensure()
            self._file = UnnamedFile(self._home.blobs)
            self._digest = sha256()
            self._frame = compressor()
            self._store(bytes(self._kept))
        self._store(data)
        self._kept += data
        if len(self._kept) > 2 * WHOLE_LIMIT:
            # one character more on both sides: the cuts may move to where a character starts
            del self._kept[KEPT_EACH + 4 : -(KEPT_EACH + 4)]

    def _store(self, data: bytes) -> None:
        assert self._file is not None and self._digest is not None and self._frame is not None
        self._digest.update(data)
        if ready := self._frame.compress(data):
            self._file.write(ready)

    def finish(self) -> OutputRecord:
        """The record; a blob is in its place when this returns."""
        if self._redacting is not None:
            for stream, rest in self._redacting.rest():
                self._keep(stream, rest)
        stdout, stderr = self._counts["stdout"], self._counts["stderr"]
        if self._file is None or self._digest is None or self._frame is None:
            return OutputRecord(_text(self._kept), "", 0, stdout, stderr, None)
        total = stdout + stderr
        blob = Blob(self._digest.hexdigest(), total)
        path = blob_path(self._home, blob.sha256)
        private_folder(path.rpartition("/")[0])
        self._file.write(self._frame.flush())
        if not self._file.publish(path):
            # as new: `prune` leaves what may be named by a record that is still to be written
            os.utime(path)
        self._file = None
        head = self._kept[: _boundary(self._kept, KEPT_EACH)]
        tail = self._kept[_boundary(self._kept, len(self._kept) - KEPT_EACH) :]
        return OutputRecord(_text(head), _text(tail), total - len(head) - len(tail), stdout, stderr, blob)

    def discard(self) -> None:
        """Lets go of everything, for a run that is not recorded to its end."""
        if self._file is not None:
            self._file.discard()
            self._file = None


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "surrogateescape")


def _boundary(data: bytearray, cut: int) -> int:
    """`cut`, or up to three bytes before it, so that no UTF-8 sequence is torn there (RFC 3629 §3)."""
    for back in range(4):
        if cut - back <= 0 or data[cut - back] & 0xC0 != 0x80:
            return max(cut - back, 0)
    return cut

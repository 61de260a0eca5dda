"""Reads the blobs that large outputs were stored as."""

import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from doorward.sessions.home import Home, StoreError
from doorward.sessions.output import blob_path
from doorward.sessions.regular_file import open_regular

_CHUNK = 1 << 20
_DIGITS = frozenset("0123456789abcdef")
_ENCODINGS = ("zstd", "identity")


def blob_bytes(home: Home, blob: Mapping[str, Any]) -> Iterator[bytes]:
    """The plain bytes of a record's `output.blob`, in pieces.

    Raises StoreError when it is missing, encoded in a way not known here, or (at the end) not what its name says.
    """
    digest, encoding = blob.get("sha256"), blob.get("encoding")
    if not isinstance(digest, str) or len(digest) != 64 or not _DIGITS.issuperset(digest):
        raise StoreError("the record names no blob")
    if encoding not in _ENCODINGS:
        raise StoreError(f"blob {digest} is encoded as {encoding}, which this version does not read")
    descriptor = open_regular(blob_path(home, digest, encoding))
    found = sha256()
    try:
        for data in _plain(descriptor, digest) if encoding == "zstd" else _read(descriptor):
            found.update(data)
            yield data
    except OSError as error:
        raise StoreError(f"cannot read blob {digest}: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if found.hexdigest() != digest:
        raise StoreError(f"blob {digest} was changed: its bytes do not have this hash")


def _read(descriptor: int) -> Iterator[bytes]:
    while data := os.read(descriptor, _CHUNK):
        yield data


def _plain(descriptor: int, digest: str) -> Iterator[bytes]:
    from doorward.sessions.zstd import BadFrame, decompressed

    try:
        yield from decompressed(descriptor)
    except BadFrame as error:
        raise StoreError(f"blob {digest} {error}") from error

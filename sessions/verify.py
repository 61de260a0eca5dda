"""Checks a rollout against its own hash chain (`chain.py`) and names the first line that is not as it was written.

What the chain can and cannot tell:
- a line that was changed, removed, moved or slipped in breaks the link of that line or of the next; the first break
  is reported. Who changes a line and computes its link anew moves the break to the line after it;
- a cut tail, or a chain computed anew from some line to the end, leaves no break. It shows only against a head digest
  kept elsewhere; without one the tail is `not provable`, and so is a file without any link (written by others).
"""

import itertools
import json
import os
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Literal

from doorward.named_tuple import NamedTuple
from doorward.sessions import chain
from doorward.sessions.head import Head
from doorward.sessions.home import StoreError
from doorward.sessions.long_line import ends
from doorward.sessions.reading import LINE_LIMIT, raw_lines
from doorward.sessions.stored_file import open_stored

_CHUNK = 1 << 20
_ORDINAL = re.compile(rb'\{"timestamp":"[^"]{0,40}","ordinal":([0-9]{1,18}),')


class Finding(NamedTuple):
    """The first line that is not as written; `line` counts from 1."""

    line: int
    what: Literal["changed", "removed", "reordered"]
    detail: str

    @property
    def sentence(self) -> str:
        """`line N: changed`, and why."""
        return f"line {self.line}: {self.what} ({self.detail})"


class Verification(NamedTuple):
    """The result. `linked` lines were found in order before the finding, or in the whole file without one."""

    finding: Finding | None
    linked: int
    head: Head | None
    """The last linked line: keep it to prove the tail later."""
    tail: Literal["proven", "not provable"]
    notes: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """Whether everything that can be checked holds, and there was something to check."""
        return self.finding is None and self.linked > 0

    @property
    def sentence(self) -> str:
        """One line for a person."""
        if self.finding is not None:
            return self.finding.sentence
        if not self.linked:
            return "not provable: no line of this file is linked"
        return f"intact: {self.linked} lines; tail {self.tail}"


class _Break(Exception):
    def __init__(self, finding: Finding) -> None:
        self.finding = finding


def verify(
    path: str, known: Head | None = None, *, size: int | None = None, before: Head | None = None
) -> Verification:
    """Checks every line. `known` is a head digest kept elsewhere. Raises StoreError when the file cannot be read.

    `size` limits it to the first bytes of the file; `before` is the last of the lines that the file goes on from.
    """
    descriptor = open_stored(path)
    try:
        there = os.fstat(descriptor).st_size
        return _Check(descriptor, there if size is None else min(size, there), known, before).run()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)


class _Check:
    def __init__(self, descriptor: int, size: int, known: Head | None, before: Head | None) -> None:
        self._descriptor = descriptor
        self._size = size
        self._known = known
        self._proven = False
        self._notes: list[str] = []
        self._linked = 0
        self._digits = chain.NOTHING_BEFORE if before is None else before.chain
        self._ordinal: int | None = -1 if before is None else before.ordinal
        """Of the last linked line."""
        self._linked_end = 0
        self._number = 0
        """Of the last linked line, counted in physical lines."""

    def run(self) -> Verification:
        finding = None
        number = 0
        try:
            for offset, data, length, _ in raw_lines(self._descriptor, self._size, limit=LINE_LIMIT):
                number += 1
                link = self._link(offset, data, length)
                if link is not None:
                    self._check(number, offset, data, length, link)
            self._check_end(number)
        except _Break as found:
            finding = found.finding
        head = Head(self._ordinal, self._digits) if self._linked and self._ordinal is not None else None
        tail: Literal["proven", "not provable"] = "proven" if self._proven else "not provable"
        return Verification(finding, self._linked, head, tail, tuple(self._notes))

    def _link(self, offset: int, data: bytes | None, length: int) -> str | None:
        """The digits at the end of a line, when it ends in a link."""
        parts = chain.split(data if data is not None else ends(self._descriptor, offset, length)[1])
        return parts[1] if parts else None

    def _check(self, number: int, offset: int, data: bytes | None, length: int, digits: str) -> None:
        head, ending = (data, data) if data is not None else ends(self._descriptor, offset, length)
        found = _ORDINAL.match(head)
        ordinal = int(found[1]) if found else None
        self._check_gap(number, offset, _account(ending), ordinal)
        if self._recomputed(offset, data, length) != digits:
            raise _Break(self._explained(number, ordinal))
        if self._known is not None and ordinal == self._known.ordinal:
            if digits != self._known.chain:
                raise _Break(Finding(number, "changed", "its link is not the one that was kept: the chain is new"))
            self._proven = True
        self._linked += 1
        self._digits, self._ordinal, self._number = digits, ordinal, number
        self._linked_end = offset + length + 1

    def _recomputed(self, offset: int, data: bytes | None, length: int) -> str:
        end = length - 67  # 64 digits and what closes the line
        if data is not None:
            return chain.link(self._digits, data[:end])
        return self._hashed(offset, offset + end, self._digits.encode("ascii"))

    def _hashed(self, start: int, end: int, before: bytes = b"") -> str:
        digest = sha256(before)
        while start < end and (block := os.pread(self._descriptor, min(_CHUNK, end - start), start)):
            digest.update(block)
            start += len(block)
        return digest.hexdigest()

    def _check_gap(self, number: int, offset: int, account: dict[str, Any] | None, ordinal: int | None) -> None:
        """The bytes since the last linked line must be what this line says of them."""
        gap = offset - self._linked_end
        if not gap and account is None:
            return
        first = self._number + 1
        if account is None:
            between = number - first
            expected = None if self._ordinal is None else self._ordinal + 1
            if ordinal is not None and expected is not None and ordinal == expected + between:
                raise _Break(Finding(first, "changed", "it is no longer the record that stood there"))
            raise _Break(Finding(first, "changed", "no record of this session stood there"))
        if account != {"bytes": gap, "sha256": self._hashed(self._linked_end, offset)}:
            if not gap:
                raise _Break(Finding(number, "removed", f"{account.get('bytes')} bytes that stood before it are gone"))
            raise _Break(Finding(first, "changed", "the torn or foreign bytes there are not the ones accounted for"))
        lines = f"line {first}" if number - 1 == first else f"lines {first} to {number - 1}"
        self._notes.append(f"{lines}: not linked, but accounted for by line {number} (torn by a crash, or foreign)")

    def _explained(self, number: int, ordinal: int | None) -> Finding:
        """What a broken link at this line most likely means, told by the numbers of the lines."""
        expected = None if self._ordinal is None else self._ordinal + 1
        if ordinal is None or expected is None or ordinal == expected:
            return Finding(number, "changed", "its bytes do not have the hash it carries")
        if ordinal < expected:
            return Finding(number, "reordered", f"record {ordinal} stands after record {expected - 1}")
        later = self._ordinals_after(number)
        following = next(later, None)
        if following == expected + 1:
            return Finding(number, "changed", f"its number is {ordinal}, and {expected} is due")
        if following == expected or expected in later:
            return Finding(number, "reordered", f"record {ordinal} stands before record {expected}")
        count = ordinal - expected
        gone = f"record {expected} is" if count == 1 else f"records {expected} to {ordinal - 1} are"
        return Finding(number, "removed", f"{gone} missing here")

    def _ordinals_after(self, number: int) -> Iterator[int]:
        lines = raw_lines(self._descriptor, self._size, limit=LINE_LIMIT)
        for offset, data, length, _ in itertools.islice(lines, number, None):
            found = _ORDINAL.match(data if data is not None else ends(self._descriptor, offset, length)[0])
            if found:
                yield int(found[1])

    def _check_end(self, lines: int) -> None:
        """What stands after the last linked line, and whether the kept head was reached."""
        if self._known is not None and not self._proven:
            kept = self._known.ordinal
            raise _Break(Finding(self._number + 1, "removed", f"the file ends before record {kept}, which was there"))
        if self._linked and self._linked_end < self._size:
            first = self._number + 1
            which = f"line {first}" if lines == first else f"lines {first} to {lines}"
            self._notes.append(f"{which}: not provable, no linked line follows (torn by a crash, or foreign)")


def _account(ending: bytes) -> dict[str, Any] | None:
    """What a line says stands before it, given its last bytes."""
    ending = ending[-chain.METADATA_LIMIT :]
    if b'"unchained":{' not in ending:
        return None
    try:
        account = json.loads(chain.metadata_at_end(ending) or b"{}").get("unchained")
    except (ValueError, RecursionError):
        return None
    return account if isinstance(account, dict) else None

"""First lines, targets and chunk lines are taken apart by hand, since `re` costs every start: they read what a pattern,
which says the grammar in one line, reads."""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from doorward.proxy.first_bytes import _names_a_version
from doorward.proxy.http1_body import _read_chunk_line
from doorward.proxy.http1_head import read_request_line, read_status_line
from doorward.proxy.target import split_absolute

REQUEST = re.compile(rb"(?!PRI )([A-Z][A-Z-]*) ([!-~]+) HTTP/1\.([01])")
STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: ([\t -~\x80-\xff]*))?")
ABSOLUTE = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(/?[^#]*)")
VERSION = re.compile(rb"[ \t\v\f\r]HTTP/", re.IGNORECASE)
SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[a-z]+(?:=[a-z]+)?)*\r\n")


def text(*pieces: bytes) -> st.SearchStrategy[bytes]:
    """What is nearly right: the pieces in any order, with single bytes between."""
    return st.lists(st.sampled_from(pieces) | st.binary(max_size=1), max_size=10).map(b"".join)


def every(*choices: tuple[bytes, ...]) -> list[bytes]:
    """One of each, in order: the first of a choice is right, most others nearly."""
    return [b"".join(each) for each in itertools.product(*choices)]


BLANKS = (b" ", b"  ", b"\t", b"")
LINES = text(b"GET", b"M-SEARCH", b"PRI", b"-", b" ", b"http://a.test/", b"HTTP/1.1", b"HTTP/1.0", b"\t")
NEAR_LINES = every(
    (b"GET", b"M-SEARCH", b"-GET", b"PRI", b"PRIX", b"get", b"", b"G\0T"), BLANKS,
    (b"/", b"http://a.test/", b"*", b"", b"/\x7f", b"/\xff", b"/ "), BLANKS,
    (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"http/1.1", b"HTTP/1.10", b""),
)  # fmt: skip
STATUSES = text(b"HTTP/1.1", b"HTTP/1.1 200", b" ", b"200", b" OK", b"\x7f", b"\xff", b"\t", b"\r")
NEAR_STATUSES = every(
    (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0"), BLANKS, (b"200", b"099", b"20", b"2000", b"2x0", b""),
    (b" OK", b"", b" ", b"OK", b"\tOK", b" \xff\t", b" \x7f", b" a\r"),
)  # fmt: skip
TARGETS = text(b"http", b"HTTPS", b"://", b":", b"//", b"/", b"?", b"#", b"a.test", b"[::1]", b"+.-", b"1")
NEAR_TARGETS = every(
    (b"http", b"git+ssh", b"1http", b"", b"h_", b"-"), (b"://", b":/", b":"), (b"a.test", b"[::1]:80", b"a@b", b""),
    (b"", b"/", b"?q", b"/?q", b"?/", b"#f", b"/#f", b"/a://b"),
)  # fmt: skip


def test_what_is_nearly_right() -> None:
    for line in NEAR_LINES:
        check_request_line(line)
    for line in NEAR_STATUSES:
        check_status_line(line)
    for target in NEAR_TARGETS:
        check_target(target)


@given(LINES)
def test_request_lines(line: bytes) -> None:
    check_request_line(line)


def check_request_line(line: bytes) -> None:
    found = REQUEST.fullmatch(line)
    assert read_request_line(line) == (found and found.groups()), line


@given(STATUSES)
def test_status_lines(line: bytes) -> None:
    check_status_line(line)


def check_status_line(line: bytes) -> None:
    found = STATUS.fullmatch(line)
    assert read_status_line(line) == (found and (found[1], found[2], found[3] or b"")), line


@given(TARGETS)
def test_absolute_targets(target: bytes) -> None:
    check_target(target)


def check_target(target: bytes) -> None:
    found = ABSOLUTE.fullmatch(target)
    assert split_absolute(target) == (found and found.groups()), target


@given(text(b"HTTP/", b"http/", b"HtTp/", b" ", b"\t", b"\v", b"GET"))
def test_a_version_behind_a_blank(line: bytes) -> None:
    assert _names_a_version(line) == (VERSION.search(line) is not None)


@given(text(b"0", b"fF", b"1234567", b"\r\n", b";", b"a=b", b"x", b"\r", b"\n", b" "), st.integers(0, 3))
def test_chunk_lines(buffer: bytes, position: int) -> None:
    found = SIZE.match(buffer, position)
    size, end = _read_chunk_line(buffer, position)
    if found is not None:
        assert (size, end) == (int(found[1], 16), found.end())
    elif b"=" not in buffer and b";" not in buffer:  # the pattern above knows few extensions
        assert end == -1

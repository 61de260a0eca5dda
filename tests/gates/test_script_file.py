"""The first line of scripts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doorward.gates.script_file import interpreter_line


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (b"#!/bin/sh\nls", ("/bin/sh",)),
        (b"#! /usr/bin/env python3 -u \n", ("/usr/bin/env", "python3 -u")),
        (b"#!/bin/sh", ("/bin/sh",)),
        (b"#!\n", ()),
        (b"\x7fELF", ()),
        (b"", ()),
    ],
)
def test_the_interpreter_and_at_most_one_argument(tmp_path: Path, start: bytes, expected: tuple[str, ...]) -> None:
    file = tmp_path / "f"
    file.write_bytes(start)
    assert interpreter_line(str(file)) == expected


def test_what_is_no_file_has_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("fifo", "missing", "."):
        assert interpreter_line(str(tmp_path / name)) == ()

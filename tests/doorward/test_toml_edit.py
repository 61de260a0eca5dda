"""Edits of a TOML file: what is not the edit stays, byte for byte where it can, in meaning always."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import threading
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorward import toml_edit
from doorward.configuration_file import UnusableFile
from doorward.errors import EngineError
from doorward.toml_edit import Uneditable, change_file, entries_of, with_added, without

FILE = """\
# our rules
sandbox_mode = "workspace-write"   # the default

[network]
# who may be reached
allow = [
    "a.test",  # main
    # staging too
    "b.test"   # other
]
deny = ["x.test"]  # never

# features come last
[features]
guardian_approval = true
"""


def add(text: str, *entries: toml_edit.Entry, name: str = "allow") -> str:
    return with_added(text, "network", name, entries)


def drop(text: str, *places: int, name: str = "allow") -> str:
    return without(text, "network", name, places)


def test_an_entry_comes_to_stand_last_and_nothing_else_moves() -> None:
    assert add(FILE, "c.test") == FILE.replace('"b.test"   # other\n', '"b.test",   # other\n    "c.test"\n')


def test_an_entry_goes_with_the_comment_on_its_line() -> None:
    assert drop(FILE, 0) == FILE.replace('    "a.test",  # main\n', "")
    assert entries_of(drop(FILE, 0, 1), "network", "allow") == []
    assert "# who may be reached" in drop(FILE, 0, 1) and "# staging too" in drop(FILE, 0, 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[network]\nallow = [\n    "n.test",\n]\n'),
        ("x = 1", 'x = 1\n\n[network]\nallow = [\n    "n.test",\n]\n'),
        ("# only this\n", '# only this\n\n[network]\nallow = [\n    "n.test",\n]\n'),
        (
            '[network]\nmode = "proxied"\n\n# about features\n[features]\nx = 1\n',
            '[network]\nallow = [\n    "n.test",\n]\nmode = "proxied"\n\n# about features\n[features]\nx = 1\n',
        ),
        ("  [ network ]   # ours", '  [ network ]   # ours\nallow = [\n    "n.test",\n]\n'),
        ('["network"]\n', '["network"]\nallow = [\n    "n.test",\n]\n'),
        (
            '# pins\n[network.hosts]\n"db.test" = "::1"\n',
            '# pins\n[network.hosts]\n"db.test" = "::1"\n\n[network]\nallow = [\n    "n.test",\n]\n',
        ),
        ('network.mode = "off"  # x\n', 'network.mode = "off"  # x\nnetwork.allow = ["n.test"]\n'),
        ('network = {mode = "off"}\n', 'network = {mode = "off",allow = ["n.test"]}\n'),
        ('text = """\n[network]\n"""\n', 'text = """\n[network]\n"""\n\n[network]\nallow = [\n    "n.test",\n]\n'),
        ('[network]\nallow = []\n', '[network]\nallow = ["n.test"]\n'),
        ('[network]\nallow = ["a.test"] # hi', '[network]\nallow = ["a.test", "n.test"] # hi'),
        ('[network]\r\nallow = [\r\n  "a",\r\n]\r\n', '[network]\r\nallow = [\r\n  "a",\r\n  "n.test",\r\n]\r\n'),
        ("x = 1\r\n", 'x = 1\r\n\r\n[network]\r\nallow = [\r\n    "n.test",\r\n]\r\n'),
        ('[[network.allow]]\nhost = "a"\n', '[[network.allow]]\nhost = "a"\n[[network.allow]]\nhost = "n.test"\n'),
        (
            '[network]\nallow = ["a.test"]\n[features]\nx = 1\n[network.limits]\nhead = 5\n',
            '[network]\nallow = ["a.test", "n.test"]\n[features]\nx = 1\n[network.limits]\nhead = 5\n',
        ),
    ],
)  # fmt: skip
def test_every_form_a_file_may_have(before: str, after: str) -> None:
    assert add(before, "n.test") == after


def test_a_table_is_written_inline() -> None:
    entry = {"host": "a.test", "methods": ["GET", "HEAD"]}
    assert add("", entry) == '[network]\nallow = [\n    {host = "a.test", methods = ["GET", "HEAD"]},\n]\n'
    assert entries_of(add(FILE, entry, "c.test"), "network", "allow")[2:] == [entry, "c.test"]


def test_the_other_array_is_left_alone() -> None:
    text = add(FILE, "y.test", name="deny")
    assert text == FILE.replace('["x.test"]', '["x.test", "y.test"]')
    assert drop(text, 1, name="deny") == FILE


def test_the_last_table_of_an_array_goes_with_its_header() -> None:
    text = drop('x = 1\n[[network.allow]]\nhost = "a.test"\n', 0)
    assert entries_of(text, "network", "allow") == [] and tomllib.loads(text)["x"] == 1


@pytest.mark.parametrize(
    "text",
    ["[network", "[network]\nallow = 5\n", "network = 5\n", '[network.allow]\nhost = "a.test"\n', "a = 1\na = 2\n"],
)
def test_what_is_no_array_is_not_touched(text: str) -> None:
    for edit in (lambda: add(text, "n.test"), lambda: drop(text, 0), lambda: entries_of(text, "network", "allow")):
        with pytest.raises(Uneditable):
            edit()


def test_an_edit_that_would_change_the_meaning_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the editing library gets wrong."""
    monkeypatch.setattr(toml_edit, "with_entries", lambda array, entries: '["c.test"]')
    with pytest.raises(Uneditable, match="by hand"):
        add(FILE, "c.test")


_BLANKS = st.sampled_from(["", " ", "  ", "\n", "\n  ", " # c\n", '\n\n    # c, d ] "\n    '])
_ENTRIES = st.lists(
    st.sampled_from(['"a.test"', "'b.test'", '{host = "c.test", methods = ["GET"]}', '"d # ] , e"']), max_size=4
)


@settings(deadline=None)
@given(_ENTRIES, st.lists(_BLANKS, min_size=14, max_size=14), st.booleans(), st.data())
def test_any_array_is_edited_right_or_not_at_all(
    entries: list[str], blanks: list[str], comma: bool, data: st.DataObject
) -> None:
    gap = iter(blanks)
    inside = "".join(
        f"{next(gap)}{entry}{next(gap)}{',' if comma or place < len(entries) - 1 else ''}"
        for place, entry in enumerate(entries)
    )
    text = f"# top\n[network] # n\nallow = [{inside}{next(gap)}] # end\n# after\ndeny = []\n"
    before = tomllib.loads(text)
    added = add(text, "new.test", {"host": "t.test"})
    assert tomllib.loads(added)["network"] == {
        "allow": [*before["network"]["allow"], "new.test", {"host": "t.test"}],
        "deny": [],
    }
    assert added.count("#") == text.count("#")
    if entries:
        place = data.draw(st.integers(0, len(entries) - 1))
        kept = [entry for at, entry in enumerate(before["network"]["allow"]) if at != place]
        removed = drop(text, place)
        assert tomllib.loads(removed)["network"].get("allow", []) == kept
        assert removed.startswith("# top\n[network] # n\nallow") and removed.endswith("# end\n# after\ndeny = []\n")


def test_the_file_is_replaced_and_private(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("x = 1\n")
    path.chmod(0o644)
    before = path.stat().st_ino
    umask = os.umask(0o077)
    try:
        assert change_file(str(path), lambda text: text + "y = 2\n")
    finally:
        os.umask(umask)
    assert path.read_text() == "x = 1\ny = 2\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.stat().st_ino != before
    assert os.listdir(tmp_path) == ["config.toml"]


def test_no_change_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    assert not change_file(str(path), lambda text: text)
    assert os.listdir(tmp_path) == []
    path.write_text("x = 1\n")
    inode = path.stat().st_ino
    assert not change_file(str(path), lambda text: text)
    assert path.stat().st_ino == inode


def test_a_change_that_fails_leaves_the_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("x = 1\n")

    def fail(text: str) -> str:
        raise Uneditable("no")

    with pytest.raises(Uneditable):
        change_file(str(path), fail)
    with pytest.raises(UnicodeEncodeError):
        change_file(str(path), lambda text: "\udcff")
    assert path.read_text() == "x = 1\n" and os.listdir(tmp_path) == ["config.toml"]


def test_a_rename_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(EngineError, match="No space left"):
        change_file(str(tmp_path / "config.toml"), lambda text: "x = 1\n")
    assert os.listdir(tmp_path) == []


def test_what_a_killed_edit_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".config.toml.doorward-new").write_text("half")
    assert change_file(str(tmp_path / "config.toml"), lambda text: "x = 1\n")
    assert os.listdir(tmp_path) == ["config.toml"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine.toml").write_text("x = 1\n")
    (tmp_path / "config.toml").symlink_to("kept/mine.toml")
    assert change_file(str(tmp_path / "config.toml"), lambda text: text + "y = 2\n")
    assert (tmp_path / "config.toml").is_symlink()
    assert (tmp_path / "kept" / "mine.toml").read_text() == "x = 1\ny = 2\n"


def test_a_file_doorward_would_not_read_is_not_edited(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("x = 1\n")
    path.chmod(0o666)
    with pytest.raises(UnusableFile):
        change_file(str(path), lambda text: "y = 2\n")
    assert path.read_text() == "x = 1\n"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="No such file"):
        change_file(str(tmp_path / "gone" / "config.toml"), lambda text: "x = 1\n")


def test_two_edits_at_once_both_count(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    started = threading.Barrier(8, timeout=10)

    def one(number: int) -> None:
        started.wait()
        change_file(str(path), lambda text: f"{text}k{number} = {number}\n")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert tomllib.loads(path.read_text()) == {f"k{number}": number for number in range(8)}


def test_a_lock_that_is_never_let_go_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toml_edit, "_LOCK_TIMEOUT_S", 0.0)
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(EngineError, match="locked"):
            change_file(str(tmp_path / "config.toml"), lambda text: "x = 1\n")
    finally:
        os.close(held)
    assert not re.search("x", "".join(os.listdir(tmp_path)))

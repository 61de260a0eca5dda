"""A configuration file is read only if nobody else could have written it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from doorward.configuration_file import UnusableFile, read_text


def why(path: Path) -> str:
    with pytest.raises(UnusableFile) as caught:
        read_text(str(path))
    assert caught.value.problem.file == str(path)
    return str(caught.value.problem)


def test_an_ordinary_file_and_a_link_to_one(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("a = 'ä'\n")
    file.chmod(0o664)
    (tmp_path / "link").symlink_to(file)
    assert read_text(str(file)) == read_text(str(tmp_path / "link")) == "a = 'ä'\n"


def test_no_file_is_no_error_but_a_link_to_nothing_is(tmp_path: Path) -> None:
    assert read_text(str(tmp_path / "none")) is None
    (tmp_path / "file").write_text("")
    assert read_text(str(tmp_path / "file" / "config.toml")) is None
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert "link to a file that is not there" in why(tmp_path / "link")


def test_a_file_that_everybody_can_write_names_the_remedy(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("")
    file.chmod(0o666)
    assert why(file).endswith(f"can be written by everybody; chmod o-w {file}")


def test_a_file_of_another_user_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text("")
    status = os.stat(file)
    fake = os.stat_result((*status[:4], 4242, *status[5:]))
    monkeypatch.setattr(os, "fstat", lambda fd: fake)
    assert "belongs to another user (uid 4242)" in why(file) and "chown" in why(file)
    root = os.stat_result((*status[:4], 0, *status[5:]))
    monkeypatch.setattr(os, "fstat", lambda fd: root)
    assert read_text(str(file)) == ""


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "config.toml")
    assert "is no regular file" in why(tmp_path / "config.toml")


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text("")

    def refuse(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert "cannot be read: Permission denied" in why(file)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"#" * (1 << 20))
    assert read_text(str(file)) is not None
    file.write_bytes(b"#" * ((1 << 20) + 1))
    assert "over 1 MiB" in why(file)


def test_a_byte_that_is_not_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"a = 1\n# \xff\n")
    assert f"{file}:2: is not UTF-8" in why(file)

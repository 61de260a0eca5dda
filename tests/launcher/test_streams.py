"""Which descriptors a command may be given."""

import os

import pytest

from doorward.launcher.interface import Stdio
from doorward.launcher.mounts import Entry, Kind, Origin, plan_mounts
from doorward.launcher.streams import check_streams, files_to_hold


@pytest.fixture
def opened(tmp_path):
    """Opens files below tmp_path and closes them afterwards."""
    handles = []

    def call(name, flags):
        handles.append(os.open(tmp_path / name, flags, 0o600))
        return handles[-1]

    yield call
    for handle in handles:
        os.close(handle)


def test_a_directory_would_lead_out(opened, tmp_path):
    handle = opened(".", os.O_RDONLY)
    for place in range(3):
        streams = [-1, -1, -1]
        streams[place] = handle
        failure = check_streams(Stdio(*streams))
        assert failure.kind == "malformed"
        assert "directory" in failure.sentence


def test_a_descriptor_that_only_names_a_file_is_refused(opened, tmp_path):
    (tmp_path / "f").write_text("")
    assert check_streams(Stdio(opened("f", os.O_PATH), -1, -1)).kind == "malformed"


def test_a_closed_descriptor_is_said():
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    assert "standard error" in check_streams(Stdio(-1, -1, writer)).sentence


def test_files_pipes_and_nothing_are_fine(opened, tmp_path):
    reader, writer = os.pipe()
    try:
        assert check_streams(Stdio(reader, writer, opened("f", os.O_RDWR | os.O_CREAT))) is None
        assert check_streams(Stdio(-1, -1, -1)) is None
    finally:
        os.close(reader)
        os.close(writer)


def held(tmp_path, *streams):
    plan = plan_mounts([Entry("/", Kind.READ), Entry(str(tmp_path / "w"), Kind.WRITE, Origin.EXACT)])
    return list(files_to_hold(Stdio(*streams), plan))


def test_what_was_opened_for_reading_is_held(opened, tmp_path):
    (tmp_path / "f").write_text("")
    handle = opened("f", os.O_RDONLY)
    assert held(tmp_path, handle, -1, handle) == [(0, str(tmp_path / "f")), (2, str(tmp_path / "f"))]


def test_what_may_be_written_anyway_is_not(opened, tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w/f").write_text("")
    (tmp_path / "f").write_text("")
    streams = (opened("w/f", os.O_RDONLY), opened("f", os.O_WRONLY), opened("f", os.O_RDWR))
    assert held(tmp_path, *streams) == []


def test_a_file_without_a_name_is_not(opened, tmp_path):
    (tmp_path / "f").write_text("")
    handle = opened("f", os.O_RDONLY)
    (tmp_path / "f").unlink()
    assert held(tmp_path, handle, -1, -1) == []


def test_pipes_are_not():
    reader, writer = os.pipe()
    try:
        plan = plan_mounts([Entry("/", Kind.READ)])
        assert list(files_to_hold(Stdio(reader, writer, -1), plan)) == []
    finally:
        os.close(reader)
        os.close(writer)

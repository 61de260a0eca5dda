"""Absent names that other runs look after."""

import os

from doorward.launcher.guards import guarded, register


def test_names_are_seen_while_the_entry_stands(tmp_path):
    cache = str(tmp_path)
    assert guarded(cache) == frozenset()
    one = register(cache, ["/w/.codex", "/w/a\udcff"])
    two = register(cache, ["/v/.git"])
    try:
        assert guarded(cache) == {"/w/.codex", "/w/a\udcff", "/v/.git"}
    finally:
        one.close()
    assert guarded(cache) == {"/v/.git"}
    two.close()
    assert os.listdir(tmp_path / "guards") == []


def test_what_a_killed_shim_left_is_removed(tmp_path):
    cache = str(tmp_path)
    register(cache, ["/w/x"]).close()
    (tmp_path / "guards/123-abc").write_bytes(b"/w/.codex")
    assert guarded(cache) == frozenset()
    assert os.listdir(tmp_path / "guards") == []


def test_the_lock_is_the_process_not_the_file(tmp_path):
    """An entry of another process that still lives counts; after its end it does not."""
    cache = str(tmp_path)
    reader, writer = os.pipe()
    again, done = os.pipe()
    child = os.fork()
    if child == 0:
        register(cache, ["/w/.codex"])
        os.write(writer, b"x")
        os.read(again, 1)
        os._exit(0)
    os.read(reader, 1)
    assert guarded(cache) == {"/w/.codex"}
    os.write(done, b"x")
    os.waitpid(child, 0)
    assert guarded(cache) == frozenset()
    for descriptor in (reader, writer, again, done):
        os.close(descriptor)

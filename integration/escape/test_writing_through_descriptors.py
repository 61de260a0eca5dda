"""/proc/self/fd/N opens a file anew, through the mount it was first opened by and with other rights than then."""

import json

CODE = """
shown = sys.argv[1] if sys.argv[1:] else None
def anew(number, how): return os.open(f'/proc/self/fd/{number}', how | os.O_NONBLOCK)
attempt('read 0', lambda: os.read(anew(0, os.O_RDONLY), 64).decode())
attempt('write 0', lambda: os.write(anew(0, os.O_WRONLY), b'theirs'))
if shown:
    for flags in (os.O_RDONLY, os.O_PATH):
        handle = os.open(shown, flags)
        attempt(f'own {flags}', append, f'/proc/self/fd/{handle}')
        attempt(f'parent {flags}', append, f'/proc/self/fd/{os.open(os.path.dirname(shown), flags)}/new')
"""


def test_a_file_given_for_reading_cannot_be_written(way):
    """A here-document or `< file` of the caller's, outside of what the command may write."""
    probe = way(CODE)
    given = probe.sandbox.base / "given"
    given.write_text("mine")
    probe.sandbox.own(given)
    inside = probe.sandbox.run(probe.argv(given), stdin_file=str(given))
    said = json.loads(inside["stdout"])
    assert said["write 0"] == "EROFS", said
    assert said["read 0"] == "mine"
    assert {said[name] for name in said if name.startswith(("own", "parent"))} <= {"EROFS", "EACCES"}, said
    assert given.read_text() == "mine"
    with given.open() as stream:
        outside = json.loads(probe.sandbox.outside(probe.argv(given), stdin=stream).stdout)
    assert outside["write 0"] == 6
    assert outside["own 0"] == "written"
    assert given.read_text() != "mine"

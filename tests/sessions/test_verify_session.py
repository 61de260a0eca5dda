"""Many sessions at once: each result is its own, whatever is wrong with another."""

from collections.abc import Callable
from pathlib import Path

from doorward.sessions.folders import Found, rollouts
from doorward.sessions.head import Head
from doorward.sessions.home import Home
from doorward.sessions.verify_session import verify_many

New = Callable[..., str]


def test_all_of_them(home: Home, new: New) -> None:
    paths = [new(20) for _ in range(6)]
    data = Path(paths[2]).read_bytes()
    Path(paths[2]).write_bytes(data.replace(b'"index":7', b'"index":9'))
    Path(paths[3]).write_bytes(Path(paths[3]).read_bytes().rpartition(b'{"timestamp"')[0])
    Path(paths[4]).unlink()
    Path(paths[4]).mkdir()
    found = [each for each in rollouts(home, archived=False) if isinstance(each, Found)]
    found.append(Found("gone", paths[4], False))
    head = Head(20, "0" * 64)
    cut = next(each.id for each in found if each.path == paths[3])
    results = {checked.path: checked for checked in verify_many(home, found, {cut: head})}
    assert set(results) == set(paths)
    for path in (paths[0], paths[1], paths[5]):
        verification = results[path].verification
        assert verification is not None and verification.intact
    changed, removed = (results[path].verification for path in paths[2:4])
    assert changed is not None and changed.finding is not None
    assert (changed.finding.line, changed.finding.what) == (9, "changed")
    assert removed is not None and removed.finding is not None
    assert removed.finding.what == "removed"
    assert results[paths[4]].verification is None
    assert "not a regular file" in results[paths[4]].problem

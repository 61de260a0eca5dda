"""Looking patterns up in a tree, and remembering it: what is found must not depend on what was remembered."""

import os
import re
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doorward.launcher import matches
from doorward.launcher.globs import translate
from doorward.launcher.matches import Match, Pattern, find_matches
from doorward.launcher.mounts import Kind

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the change time of a directory is POSIX's")
KEYS = [Pattern(Kind.HIDDEN, re.compile(translate("**/*.key")))]


@pytest.fixture
def tree(tmp_path):
    path = tmp_path / "tree"
    for name in ("a/b/c", "a/d", "e"):
        (path / name).mkdir(parents=True)
    for name in ("a/1.key", "a/b/c/2.key", "e/plain"):
        (path / name).write_text("")
    return path


@pytest.fixture
def settled(monkeypatch):
    """Every directory counts as one that changed long ago; `change` sees to it that its time does move."""
    monkeypatch.setattr(matches, "_SETTLED_NS", -(10**15))
    monkeypatch.setattr(matches, "_is_local", lambda path: True)


@pytest.fixture
def listed(monkeypatch):
    """The directories that were read."""
    read = []
    scandir = os.scandir

    def note(path):
        read.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", note)
    return read


def change(directory, action):
    """Does something in a directory; its change time is another one then, however coarse the clock."""
    before = os.lstat(directory).st_ctime_ns
    action()
    deadline = time.monotonic() + 30
    while os.path.isdir(directory) and os.lstat(directory).st_ctime_ns == before:
        assert time.monotonic() < deadline
        (directory / "passing").write_text("")
        (directory / "passing").unlink()


def look(tree, patterns=KEYS):
    return sorted(match.path for match in find_matches(str(tree), patterns, str(tree.parent / "cache")))


def test_a_second_look_reads_no_directory(tree, settled, listed):
    """P-PF-05."""
    assert look(tree) == ["a/1.key", "a/b/c/2.key"]
    assert len(listed) == 6
    assert look(tree) == ["a/1.key", "a/b/c/2.key"]
    assert len(listed) == 6


def test_a_new_file_is_found_and_only_its_directory_read(tree, settled, listed):
    """P-PF-05: a new matching file is still covered."""
    look(tree)
    listed.clear()
    change(tree / "a/d", lambda: (tree / "a/d/3.key").write_text(""))
    assert look(tree) == ["a/1.key", "a/b/c/2.key", "a/d/3.key"]
    assert listed == [f"{tree}/a/d"]
    listed.clear()
    assert look(tree) == ["a/1.key", "a/b/c/2.key", "a/d/3.key"]
    assert listed == []


def test_a_directory_that_changed_just_now_is_read_each_time(tree, monkeypatch, listed):
    monkeypatch.setattr(matches, "_is_local", lambda path: True)
    monkeypatch.setattr(matches, "_SETTLED_NS", 10**15)
    for number in range(3):
        look(tree)
        assert len(listed) == 6 * (number + 1)


def test_a_directory_below_one_that_is_remembered_is_not_forgotten(tree, monkeypatch):
    """It changed just now and was not remembered itself."""
    monkeypatch.setattr(matches, "_is_local", lambda path: True)
    real = os.lstat

    class Later:
        """`a/b` always changed just now."""

        def __init__(self, found):
            self.st_ino, self.st_dev, self.st_ctime_ns = found.st_ino, found.st_dev, 1 << 62

    monkeypatch.setattr(matches, "_SETTLED_NS", -(10**15))
    monkeypatch.setattr(os, "lstat", lambda path: Later(real(path)) if str(path).endswith("a/b") else real(path))
    look(tree)
    (tree / "a/b/new.key").write_text("")
    assert look(tree) == ["a/1.key", "a/b/c/2.key", "a/b/new.key"]


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["file", "key", "directory", "rename", "remove", "swap", "link"]), st.randoms()),
    max_size=12,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=OPERATIONS)
def test_whatever_happens_a_remembered_look_finds_what_a_fresh_one_finds(tmp_path_factory, settled, operations):
    """P-PF-05."""
    tree = tmp_path_factory.mktemp("any") / "tree"
    tree.mkdir()
    for number, (operation, random) in enumerate(operations):
        directories = [path for path in [tree, *tree.rglob("*")] if path.is_dir() and not path.is_symlink()]
        where, other = random.choice(directories), random.choice(directories)
        change(where, lambda: _do(operation, tree, where, other, f"n{number}"))  # noqa: B023
        if random.random() < 0.7:
            _same(tree)
    _same(tree)


def _do(operation, tree, where, other, name):
    match operation:
        case "file" | "key":
            (where / (name + (".key" if operation == "key" else ""))).write_text("")
        case "directory":
            (where / name).mkdir()
        case "link":
            (where / f"{name}.key").symlink_to(other)
        case "rename" if where != tree and where not in [other, *other.parents]:
            os.rename(where, other / name)
        case "swap" if {where, other}.isdisjoint({tree}) and where != other:
            if where not in other.parents and other not in where.parents:
                spare = tree.parent / "spare"
                os.rename(where, spare)
                os.rename(other, where)
                os.rename(spare, other)
        case "remove":
            for path in where.iterdir():
                if path.is_symlink() or not path.is_dir():
                    path.unlink()
        case _:
            pass


def _same(tree):
    fresh = sorted(m.path for m in find_matches(str(tree), KEYS, "/dev/null/nowhere"))
    assert look(tree) == fresh
    assert fresh == sorted(str(path.relative_to(tree)) for path in tree.rglob("*.key"))


def test_patterns_have_each_a_memory_of_their_own(tree, settled):
    look(tree)
    plain = [Pattern(Kind.READ, re.compile(translate("**/plain")))]
    assert find_matches(str(tree), plain, str(tree.parent / "cache")) == [Match("e/plain", (Kind.READ,))]
    assert look(tree) == ["a/1.key", "a/b/c/2.key"]


@pytest.mark.parametrize("damage", [b"", b"junk", b"1 1 8 3\n" + b"\0" * 8 + b"abc", b"9 9 9 9\n", "cut", "link"])
def test_a_damaged_memory_is_none(tree, settled, damage):
    look(tree)
    (memory,) = (tree.parent / "cache").glob("matches-*")
    if damage == "cut":
        memory.write_bytes(memory.read_bytes()[:-1])
    elif damage == "link":
        memory.rename(tree.parent / "elsewhere")
        memory.symlink_to(tree.parent / "elsewhere")
    else:
        memory.write_bytes(damage)
    assert look(tree) == ["a/1.key", "a/b/c/2.key"]


def test_only_so_many_trees_are_remembered(tree, settled, monkeypatch):
    monkeypatch.setattr(matches, "_KEPT", 2)
    for number in range(4):
        look(tree, [Pattern(Kind.HIDDEN, re.compile(translate(f"**/{number}.key")))])
    assert len(list((tree.parent / "cache").iterdir())) == 2


def test_a_cache_that_cannot_be_written_changes_nothing(tree, settled):
    (tree.parent / "cache").write_text("")
    assert look(tree) == look(tree) == ["a/1.key", "a/b/c/2.key"]


def test_a_tree_on_a_file_system_whose_times_come_from_elsewhere_is_not_remembered(tree, monkeypatch):
    monkeypatch.setattr(matches, "_SETTLED_NS", -(10**15))
    monkeypatch.setattr(matches, "_LOCAL", frozenset())
    assert look(tree) == ["a/1.key", "a/b/c/2.key"]
    assert not (tree.parent / "cache").exists()


@pytest.mark.parametrize(("kind", "entered"), [(Kind.HIDDEN, False), (Kind.READ, True), (Kind.WRITE, True)])
def test_only_a_hidden_directory_is_not_entered(tree, settled, kind, entered):
    """What another pattern hides is hidden below a directory that a pattern makes read-only or writable, too."""
    patterns = [*KEYS, Pattern(kind, re.compile(translate("a")))]
    for _ in range(2):
        found = find_matches(str(tree), patterns, str(tree.parent / "cache"))
        assert Match("a", (kind,)) in found
        assert (Match("a/1.key", (Kind.HIDDEN,)) in found) is entered


def test_links_are_matched_by_their_own_name_and_not_followed(tree, settled):
    (tree / "link").symlink_to("a")
    (tree / "link.key").symlink_to("a")
    for _ in range(2):
        assert look(tree) == ["a/1.key", "a/b/c/2.key", "link.key"]


def test_several_patterns_may_match_the_same(tree, settled):
    patterns = [*KEYS, Pattern(Kind.READ, re.compile(translate("a/*")))]
    for _ in range(2):
        found = find_matches(str(tree), patterns, str(tree.parent / "cache"))
        assert Match("a/1.key", (Kind.READ, Kind.HIDDEN)) in found
        assert Match("a/b", (Kind.READ,)) in found


def test_a_base_that_is_not_there_matches_nothing(tmp_path):
    assert look(tmp_path / "gone") == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads every directory")
def test_a_directory_that_cannot_be_read_is_looked_at_again(tree, settled):
    (tree / "a").chmod(0)
    try:
        assert look(tree) == []
        assert look(tree) == []
    finally:
        (tree / "a").chmod(0o755)
    assert look(tree) == ["a/1.key", "a/b/c/2.key"]


def test_names_that_are_no_text_come_back_as_they_are(tree, settled):
    if sys.platform == "darwin":
        pytest.skip("file names are text there")
    name = os.fsdecode(b"\xff\n.key")
    (tree / "a" / name).write_text("")
    for _ in range(2):
        assert f"a/{name}" in look(tree)


def test_what_lies_in_a_directory_that_is_the_same_already_is_not_told(tree, settled):
    (tree / "a/b/link").symlink_to("../../e")
    patterns = [Pattern(Kind.READ, re.compile(translate("a/**")))]
    for _ in range(2):
        found = sorted(match.path for match in find_matches(str(tree), patterns, str(tree.parent / "cache")))
        assert found == ["a/1.key", "a/b", "a/b/link", "a/d"]

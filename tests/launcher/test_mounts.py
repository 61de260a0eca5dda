"""The planner as a table: entries in, ordered mounts out."""

import itertools

import pytest

from doorward.launcher.mounts import Entry, Kind, Mount, Origin, components, parents, plan_mounts

ROOT = Entry("/", Kind.READ)
TMP = Entry("/tmp", Kind.PRIVATE, mode=0o1777)
RUN = Entry("/run", Kind.PRIVATE, sealed=True)


def exact(path, kind, directory=True):
    return Entry(path, kind, Origin.EXACT, directory)


def general(path, kind, directory=True):
    return Entry(path, kind, Origin.GENERAL, directory)


TABLE = {
    "the root alone": ([ROOT], ["ro-bind /"]),
    "a writable workspace": ([ROOT, exact("/w", Kind.WRITE)], ["ro-bind /", "bind /w"]),
    "a workspace below the private /tmp": (
        [ROOT, TMP, exact("/tmp/a/w", Kind.WRITE)],
        ["ro-bind /", "tmpfs /tmp", "bind /tmp/a/w"],
    ),
    "the host's /tmp where it was asked for": ([ROOT, TMP, exact("/tmp", Kind.WRITE)], ["ro-bind /", "bind /tmp"]),
    "read-only below read-only changes nothing": ([ROOT, exact("/a", Kind.READ)], ["ro-bind /"]),
    "writable below writable changes nothing": (
        [ROOT, exact("/w", Kind.WRITE), exact("/w/a", Kind.WRITE)],
        ["ro-bind /", "bind /w"],
    ),
    "read-only below writable": (
        [ROOT, exact("/w", Kind.WRITE), general("/w/.git/config", Kind.READ, False)],
        ["ro-bind /", "bind /w", "ro-bind /w/.git/config"],
    ),
    "a hidden file and a hidden directory": (
        [ROOT, exact("/w", Kind.WRITE), exact("/w/.env", Kind.HIDDEN, False), exact("/w/secret", Kind.HIDDEN)],
        ["ro-bind /", "bind /w", "hide-file /w/.env", "hide-directory /w/secret"],
    ),
    "hidden below hidden changes nothing": (
        [ROOT, exact("/s", Kind.HIDDEN), exact("/s/a", Kind.HIDDEN, False)],
        ["ro-bind /", "hide-directory /s"],
    ),
    "nothing of the host is below a private place": (
        [ROOT, TMP, exact("/tmp/s", Kind.HIDDEN)],
        ["ro-bind /", "tmpfs /tmp"],
    ),
    "something visible below a hidden directory": (
        [ROOT, exact("/s", Kind.HIDDEN), exact("/s/a/b", Kind.WRITE)],
        ["ro-bind /", "tmpfs /s", "bind /s/a/b", "remount-ro /s"],
    ),
    "a shown path below a private place": (
        [ROOT, TMP, exact("/tmp/v", Kind.READ)],
        ["ro-bind /", "tmpfs /tmp", "ro-bind /tmp/v"],
    ),
    "a sealed private place is closed when all below it is in place": (
        [ROOT, RUN, Entry("/run/user/5", Kind.PRIVATE, mode=0o700), general("/run/r/resolv.conf", Kind.READ, False)],
        ["ro-bind /", "tmpfs /run", "ro-bind /run/r/resolv.conf", "tmpfs /run/user/5", "remount-ro /run"],
    ),
    "a pin keeps its place where it is writable": (
        [ROOT, exact("/w", Kind.WRITE), Entry("/w/.git", Kind.PIN), general("/w/.git/config", Kind.READ, False)],
        ["ro-bind /", "bind /w", "bind /w/.git", "ro-bind /w/.git/config"],
    ),
    "a pin never makes anything writable": (
        [ROOT, Entry("/home", Kind.PIN), Entry("/", Kind.PIN), exact("/home/u/w", Kind.READ)],
        ["ro-bind /"],
    ),
    "a pin holds also where the same path is granted": (
        [ROOT, exact("/w", Kind.WRITE), exact("/w/.git", Kind.WRITE), Entry("/w/.git", Kind.PIN)],
        ["ro-bind /", "bind /w", "bind /w/.git"],
    ),
    "a pinned path that is hidden is hidden": (
        [ROOT, exact("/w", Kind.WRITE), exact("/w/a", Kind.HIDDEN), Entry("/w/a", Kind.PIN)],
        ["ro-bind /", "bind /w", "hide-directory /w/a"],
    ),
    "the whole root with devices": (
        [Entry("/", Kind.OPEN), Entry("/proc", Kind.PROCESSES)],
        ["dev-bind /", "proc /proc"],
    ),
    "fresh /dev and /proc": (
        [
            ROOT,
            Entry("/dev", Kind.DEVICES),
            Entry("/dev/shm", Kind.PRIVATE, mode=0o1777),
            Entry("/proc", Kind.PROCESSES),
        ],
        ["ro-bind /", "dev /dev", "tmpfs /dev/shm", "proc /proc"],
    ),
    "a name that sorts between a directory and its children": (
        [
            ROOT,
            exact("/w", Kind.WRITE),
            exact("/w/a", Kind.READ),
            exact("/w/a/b", Kind.WRITE),
            exact("/w/a-b", Kind.READ),
        ],
        ["ro-bind /", "bind /w", "ro-bind /w/a", "bind /w/a/b", "ro-bind /w/a-b"],
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_the_table(case):
    entries, steps = TABLE[case]
    assert [f"{mount.step} {mount.path}" for mount in plan_mounts(entries).mounts] == steps


@pytest.mark.parametrize("case", TABLE)
def test_order_never_matters(case):
    entries, _ = TABLE[case]
    first = plan_mounts(entries).mounts
    for shuffled in itertools.islice(itertools.permutations(entries), 24):
        assert plan_mounts(shuffled).mounts == first


TIES = {
    "hidden beats the rest": ((Origin.EXACT, Kind.WRITE), (Origin.EXACT, Kind.HIDDEN), Kind.HIDDEN),
    "read-only beats writable": ((Origin.EXACT, Kind.WRITE), (Origin.EXACT, Kind.READ), Kind.READ),
    "a written-out path beats a pattern": ((Origin.GENERAL, Kind.HIDDEN), (Origin.EXACT, Kind.WRITE), Kind.WRITE),
    "a grant by name beats protection": ((Origin.GENERAL, Kind.READ), (Origin.EXACT, Kind.WRITE), Kind.WRITE),
    "a grant by pattern does not": ((Origin.GENERAL, Kind.READ), (Origin.GENERAL, Kind.WRITE), Kind.READ),
}


@pytest.mark.parametrize("case", TIES)
def test_two_entries_on_one_path(case):
    (origin, kind), (other_origin, other), expected = TIES[case]
    entries = [ROOT, exact("/w", Kind.WRITE), Entry("/w/x", kind, origin), Entry("/w/x", other, other_origin)]
    assert plan_mounts(entries).kind("/w/x") is expected


def test_what_a_path_is_inside():
    plan = plan_mounts(
        [
            ROOT,
            TMP,
            exact("/w", Kind.WRITE),
            exact("/w/s", Kind.HIDDEN),
            exact("/w/s/v", Kind.READ),
            Entry("/proc", Kind.PROCESSES),
        ]
    )
    assert plan.visible("/etc/passwd")
    assert not plan.writable("/etc/passwd")
    assert plan.writable("/w/a/b")
    assert not plan.writable("/ww")
    assert not plan.visible("/w/s/x")
    assert plan.visible("/w/s/v/deep")
    assert plan.kind("/tmp/x") is Kind.PRIVATE
    assert not plan.visible("/proc/1")
    assert plan.mounted("/tmp")
    assert not plan.mounted("/tmp/x")


def test_the_mode_of_a_private_place_is_kept():
    assert Mount("tmpfs", "/tmp", 0o1777) in plan_mounts([ROOT, TMP]).mounts


def test_paths():
    assert components("/a/b") == ("a", "b")
    assert components("/") == ()
    assert list(parents("/a/b")) == ["/a", "/"]

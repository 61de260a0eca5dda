"""The planner against its rule in plain words, for any entries: the mounts are made in order on a model of a tree."""

from hypothesis import given, settings
from hypothesis import strategies as st

from doorward.launcher.mounts import Entry, Kind, Origin, parents, plan_mounts

NAMES = ("a", "b", "a-b", "c")
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
# what a person or a pattern can ask for; the private places come with the base layout
ENTRIES = st.lists(
    st.builds(
        lambda path, kind, origin: Entry(path, kind=kind, origin=origin),
        PATHS,
        st.sampled_from((Kind.WRITE, Kind.READ, Kind.HIDDEN, Kind.PIN)),
        st.sampled_from((Origin.BASE, Origin.GENERAL, Origin.EXACT)),
    ),
    max_size=8,
)
BASE = (Entry("/", Kind.READ), Entry("/c", Kind.PRIVATE, mode=0o1777))


def said(entries, path):
    """The rule: the deepest entry at or above a path decides; on one path the stronger origin, then the stricter."""
    for place in (path, *parents(path)):
        found = [entry for entry in entries if entry.path == place and entry.kind is not Kind.PIN]
        if found:
            return max(found, key=lambda entry: (entry.origin, entry.kind)).kind
    raise AssertionError("there is an entry for /")


def made(mounts, path):
    """What the mounts, made one after the other, leave at a path: "nothing" where no file of the host shows."""
    state = "nothing"
    for mount in mounts:
        if path != mount.path and mount.path not in parents(path):
            continue
        match mount.step:
            case "bind" | "ro-bind":
                state = "writable" if mount.step == "bind" else "readable"
            case "tmpfs" | "hide-directory" | "hide-file":
                state = "nothing"
    return state


def wanted(kind):
    return {Kind.WRITE: "writable", Kind.READ: "readable"}.get(kind, "nothing")


@settings(max_examples=400, deadline=None)
@given(ENTRIES, st.lists(PATHS, min_size=1, max_size=6))
def test_the_mounts_do_what_the_rule_says(entries, paths):
    entries = [*BASE, *entries]
    plan = plan_mounts(entries)
    for path in [*paths, *(entry.path + "/below" for entry in entries), "/", "/c/d"]:
        kind = said(entries, path)
        assert made(plan.mounts, path) == wanted(kind), (path, plan.mounts)
        assert plan.visible(path) == (kind <= Kind.READ)
        assert plan.writable(path) == (kind <= Kind.WRITE)


@settings(max_examples=200, deadline=None)
@given(ENTRIES, st.randoms())
def test_the_order_of_entries_never_matters(entries, random):
    entries = [*BASE, *entries]
    expected = plan_mounts(entries).mounts
    random.shuffle(entries)
    assert plan_mounts(entries).mounts == expected


@settings(max_examples=200, deadline=None)
@given(ENTRIES)
def test_every_mount_has_a_reason(entries):
    """Without any one of them something would be different, pins aside: each costs time at every start."""
    entries = [*BASE, *entries]
    pinned = {entry.path for entry in entries if entry.kind is Kind.PIN}
    plan = plan_mounts(entries)
    for mount in plan.mounts:
        if mount.step == "remount-ro" or mount.path in pinned:
            continue
        without = [other for other in plan.mounts if other != mount]
        assert made(without, mount.path) != made(plan.mounts, mount.path) or mount.step in ("tmpfs", "hide-directory")


@settings(max_examples=200, deadline=None)
@given(ENTRIES)
def test_a_hidden_directory_with_something_visible_below_is_closed_at_the_end(entries):
    plan = plan_mounts([*BASE, *entries])
    steps = [mount.step for mount in plan.mounts]
    closed = [mount.path for mount in plan.mounts if mount.step == "remount-ro"]
    opened = [mount.path for mount in plan.mounts if mount.step == "tmpfs" and plan.kind(mount.path) is Kind.HIDDEN]
    assert sorted(closed) == sorted(opened)
    assert steps == sorted(steps, key=lambda step: step == "remount-ro")


@settings(max_examples=200, deadline=None)
@given(ENTRIES)
def test_what_is_pinned_below_a_writable_place_is_a_mount_of_its_own(entries):
    """A mount point cannot be renamed."""
    entries = [*BASE, *entries]
    plan = plan_mounts(entries)
    for entry in entries:
        if entry.kind is Kind.PIN and entry.path != "/" and plan.writable(entry.path):
            above = entry.path.rpartition("/")[0] or "/"
            assert plan.mounted(entry.path) or not plan.writable(above)

"""What Windows is told for a policy. An evaluator of access control lists answers what the token could write."""

import ntpath

import pytest

from doorward.launcher import windows_paths as paths
from doorward.launcher import windows_structures as w
from doorward.launcher.interface import Mode, SandboxPolicy, SandboxUnavailable, UnenforceableRule
from doorward.launcher.windows_plan import (
    JOB_LIMITS,
    LOW_LABEL,
    TOKEN_FLAGS,
    capability_sid,
    check_network,
    make_plan,
)

WORK = r"C:\Users\ada\project"
HOME = r"C:\Users\ada\.doorward"
TEMPORARY = r"C:\Users\ada\AppData\Local\Temp\doorward-1"
TREE = {
    WORK: "directory", HOME: "directory", rf"{WORK}\.git": "directory", rf"{WORK}\.git\hooks": "directory",
    rf"{WORK}\.git\config": "file", rf"{WORK}\src": "directory", rf"{WORK}\src\a.c": "file", r"D:\out": "directory",
    rf"{WORK}\.vscode": "directory", rf"{WORK}\.vscode\settings.json": "file", "C:\\": "directory",
    r"C:\Windows": "directory", r"C:\Users": "directory", r"C:\Users\ada": "directory", TEMPORARY: "directory",
}  # fmt: skip


def policy(**more):
    values = {"mode": Mode.WORKSPACE_WRITE, "workspace": WORK, "home": HOME, "cache_dir": HOME, "network": "full"}
    return SandboxPolicy(**(values | more))


def look(tree):
    keyed = {paths.key(path): kind for path, kind in tree.items()}
    return lambda path: keyed.get(paths.key(path), "")


def plan(tree=TREE, resolve=lambda path: path, **more):
    return make_plan(policy(**more), TEMPORARY, look(tree), resolve)


def may(made, path, right):
    """Whether the capability SID has `right` on `path`: entries of its own before inherited ones, the nearest first,
    in each denying before granting ("How AccessCheck Works"; the order in which Windows keeps a list)."""
    at, own = path, True
    while True:
        here = [change for change in made.changes if paths.key(change.path) == paths.key(at) and change.access]
        for mode in (w.DENY_ACCESS, w.GRANT_ACCESS):
            for change in here:
                applies = not change.inheritance & w.INHERIT_ONLY if own else change.inheritance & 3
                if change.mode == mode and applies and change.access & right == right:
                    return mode == w.GRANT_ACCESS
        if ntpath.dirname(at) == at:
            return False
        at, own = ntpath.dirname(at), False


WRITE = 0x2  # FILE_WRITE_DATA, FILE_ADD_FILE


def test_writes_stay_in_the_workspace():
    made = plan()
    for path, allowed in [
        (rf"{WORK}\src\a.c", True), (rf"{WORK}\new", True), (WORK, True), (rf"{TEMPORARY}\x", True),
        (r"C:\Users\ada\x", False), (rf"{WORK}2\x", False), (r"C:\Windows\x", False), (rf"{HOME}\config.toml", False),
    ]:  # fmt: skip
        assert may(made, path, WRITE) is allowed, path


def test_read_only_writes_only_its_temporary_folder():
    made = plan(mode=Mode.READ_ONLY)
    assert not may(made, rf"{WORK}\new", WRITE)
    assert may(made, rf"{TEMPORARY}\x", WRITE)
    assert made.absent == ()


def test_protected_names_stay_and_cannot_be_moved_away():
    made = plan()
    assert not may(made, rf"{WORK}\.git\hooks\pre-commit", WRITE)
    assert not may(made, rf"{WORK}\.git\config", WRITE)
    assert not may(made, rf"{WORK}\.git\hooks", w.DELETE)
    assert not may(made, rf"{WORK}\.git", w.DELETE)
    assert not may(made, WORK, w.DELETE)
    assert may(made, rf"{WORK}\.git\index", WRITE)
    assert may(made, rf"{WORK}\src\a.c", w.DELETE)
    assert not any(change.mode == w.GRANT_ACCESS and change.access & w.FILE_DELETE_CHILD for change in made.changes)
    assert rf"{WORK}\.bashrc" in made.absent
    assert rf"{WORK}\.vscode" not in made.absent


def test_a_grant_by_name_lifts_the_protection():
    made = plan(write=(r".vscode\settings.json", r"\\?\C:\Users\ADA\project\.git\hooks"))
    assert may(made, rf"{WORK}\.vscode\settings.json", WRITE)
    assert not may(made, rf"{WORK}\.vscode\tasks.json", WRITE)
    assert may(made, rf"{WORK}\.git\hooks\pre-commit", WRITE)


def test_the_most_specific_rule_wins():
    made = plan(write=(rf"{WORK}\src\a.c", r"D:\out"), read_only=("src",))
    assert not may(made, rf"{WORK}\src\b.c", WRITE)
    assert may(made, rf"{WORK}\src\a.c", WRITE)
    assert may(made, r"D:\out\x", WRITE)


def test_two_spellings_are_one_path():
    """P-PL-06: granted once, so it is taken away once."""
    made = plan(write=(r"D:\out", "d:/OUT", r"\\?\D:\out"))
    assert sum(paths.key(change.path) == paths.key(r"D:\out") for change in made.changes) == 3  # folder, below, label


def test_a_workspace_without_a_repository():
    tree = {path: kind for path, kind in TREE.items() if ".git" not in path}
    made = plan(tree)
    assert rf"{WORK}\.git" in made.absent
    worktree = plan({**tree, rf"{WORK}\.git": "file"})
    assert not may(worktree, rf"{WORK}\.git", WRITE)


def test_what_may_be_written_has_a_low_label():
    labels = {change.path: change.label for change in plan().changes if change.label}
    assert labels == {WORK: LOW_LABEL, TEMPORARY: LOW_LABEL}


def test_the_token_and_the_job():
    made = plan()
    assert TOKEN_FLAGS == 0x1 | 0x4 | 0x8
    assert JOB_LIMITS & w.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
    assert made.restricting == (capability_sid(WORK), "S-1-1-0")
    assert made.restricted


def test_a_workspace_has_one_sid_and_another_has_another():
    assert capability_sid(WORK) == capability_sid(r"\\?\c:\USERS\ada\project")
    assert capability_sid(WORK) != capability_sid(rf"{WORK}2")
    assert capability_sid(WORK).startswith("S-1-5-21-")


@pytest.mark.parametrize(
    ("more", "named", "why"),
    [
        ({"deny_read": ("secret",)}, "secret", "cannot hide"),
        ({"write": ("*.log",)}, "*.log", "patterns"),
        ({"read_only": ("nothing",)}, "nothing", "does not exist"),
        ({"write": ("nothing",)}, "nothing", "does not exist"),
        ({"write": ("C:\\",)}, "C:\\", "system folder"),
        ({"write": (r"\\?\c:\WINDOWS",)}, r"\\?\c:\WINDOWS", "system folder"),
        ({"write": (r"C:\Users",)}, r"C:\Users", "system folder"),
        ({"write": (HOME,)}, HOME, "doorward's own"),
        ({"write": (r"\\.\PhysicalDrive0",)}, r"\\.\PhysicalDrive0", "device"),
        ({"allow_unix": ("x.sock",)}, "x.sock", "unix sockets"),
        ({"workspace": r"C:\gone"}, r"C:\gone", "not a directory"),
        ({"mode": Mode.DANGER_FULL_ACCESS, "read_only": ("src",)}, "src", "no file boundary"),
    ],
)
def test_what_cannot_be_held_is_refused_by_name(more, named, why):
    with pytest.raises(UnenforceableRule, match=why) as raised:
        plan(**more)
    assert raised.value.entry == named


def test_a_link_is_judged_by_where_it_leads():
    with pytest.raises(UnenforceableRule, match="system folder"):
        plan(
            {**TREE, rf"{WORK}\out": "directory"},
            lambda path: r"C:\Windows" if path.endswith("out") else path,
            write=("out",),
        )


def test_without_a_boundary_nothing_is_changed():
    for mode in (Mode.DANGER_FULL_ACCESS, Mode.UNCONFINED):
        made = plan(mode=mode)
        assert (made.changes, made.absent, made.restricted) == ((), (), False)


def test_the_network_is_not_held_and_that_is_said():
    assert check_network(policy()) == ()
    for network in ("off", "proxied"):
        with pytest.raises(SandboxUnavailable, match="network cannot be held") as raised:
            check_network(policy(network=network))
        assert "best-effort" in raised.value.remedy
        assert "variables" in check_network(policy(network=network, require="best-effort"))[0]

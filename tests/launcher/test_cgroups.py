"""Where a control group can be made, read from a folder that stands for the hierarchy."""

import os

import pytest

from doorward.launcher import cgroups
from doorward.launcher.cgroups import Cgroup, Delegation, delegation, sweep
from doorward.launcher.limits import Measured


@pytest.fixture
def hierarchy(tmp_path):
    """Makes groups below a folder; gives the text of a mount table that has it."""

    def make(**groups):
        for path, controllers in groups.items():
            folder = tmp_path / path.replace("__", "/")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cgroup.procs").write_text("")
            (folder / "cgroup.subtree_control").write_text(controllers)
        return f"30 23 0:26 / /sys rw - sysfs sysfs rw\n35 30 0:30 / {tmp_path} rw,nosuid - cgroup2 cgroup2 rw\n"

    return make


def test_the_nearest_group_that_hands_both_on(hierarchy, tmp_path):
    mounts = hierarchy(user="cpu memory pids", user__app="memory pids", user__app__shell="")
    found = delegation(mounts=mounts, own="0::/user/app/shell\n")
    assert found == Delegation(f"{tmp_path}/user/app", frozenset({"memory", "pids"}))


def test_one_farther_up_that_has_more_is_better(hierarchy, tmp_path):
    mounts = hierarchy(user="memory pids", user__app="pids", user__app__shell="")
    found = delegation(mounts=mounts, own="12:pids:/elsewhere\n0::/user/app/shell\n")
    assert found == Delegation(f"{tmp_path}/user", frozenset({"memory", "pids"}))
    assert delegation(["pids"], mounts=mounts, own="0::/user/app/shell\n").parent == f"{tmp_path}/user/app"


def test_one_controller_is_better_than_none(hierarchy, tmp_path):
    mounts = hierarchy(user="cpu", user__app="pids io")
    assert delegation(mounts=mounts, own="0::/user/app\n") == Delegation(f"{tmp_path}/user/app", frozenset({"pids"}))


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ("0::/user/app\n", "hands the memory and pids controllers on"),
        ("0::/../other\n", "outside"),
        ("4:memory:/x\n", "outside"),
        ("0::/nowhere/at/all\n", "no control group is delegated"),
    ],
)
def test_why_there_is_none(hierarchy, own, why):
    assert why in delegation(mounts=hierarchy(user="cpu", user__app="io"), own=own).why


def test_a_machine_without_them():
    assert "not mounted" in delegation(mounts="30 23 0:26 / /sys rw - sysfs sysfs rw\n", own="0::/\n").why


def test_a_group_that_may_not_be_written_is_not_delegated(hierarchy, monkeypatch):
    mounts = hierarchy(user="memory pids")
    monkeypatch.setattr(cgroups.os, "access", lambda path, mode: False)
    assert "delegated to this user" in delegation(mounts=mounts, own="0::/user\n").why


def test_limits_are_written_and_what_was_refused_is_read(tmp_path, monkeypatch):
    files = {}
    monkeypatch.setattr(cgroups, "_write", lambda path, value: files.update({path.rpartition("/")[2]: value}))
    made = Cgroup.make(str(tmp_path), memory=4096, pids=10)
    assert files == {"memory.max": 4096, "memory.swap.max": 0, "pids.max": 12}
    for name, text in (("memory.events", "low 0\nmax 3\noom 2\noom_kill 1\n"), ("pids.events", "max 5\n")):
        with open(f"{made.path}/{name}", "w") as file:
            file.write(text)
    assert made.measured(Measured(True)) == Measured(True, 2, 5)
    for name in os.listdir(made.path):
        os.unlink(f"{made.path}/{name}")
    made.remove()
    assert os.listdir(tmp_path) == []


def test_a_group_whose_limits_cannot_be_set_is_taken_back(tmp_path):
    with pytest.raises(OSError, match=r"pids\.max"):
        Cgroup.make(str(tmp_path), memory=None, pids=10)
    assert os.listdir(tmp_path) == []


def test_what_killed_shims_left_is_removed_and_nothing_else(tmp_path):
    living = Cgroup.make(str(tmp_path), memory=None, pids=None)
    for name in ("doorward-1-dead", "somebody-elses", "doorward-full"):
        (tmp_path / name).mkdir()
    (tmp_path / "doorward-full" / "inner").mkdir()
    sweep(str(tmp_path))
    left = set(os.listdir(tmp_path))
    assert left == {"somebody-elses", "doorward-full", os.path.basename(living.path)}
    living.remove()

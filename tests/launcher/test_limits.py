"""Who holds a limit, and what shows that it was reached."""

import pytest

from doorward.launcher.interface import Limits
from doorward.launcher.limits import Measured, holders, limits_hit, size_text, unseen

ALL = Limits(memory=64 << 20, pids=8, cpu_time=2.5, files=32)


def test_a_group_holds_what_it_has_a_controller_for_and_the_kernel_the_rest():
    assert holders(ALL, grouped=frozenset({"memory"})) == {
        "memory": "cgroup", "pids": "rlimit", "cpu_time": "doorward", "files": "rlimit",
    }  # fmt: skip
    assert holders(Limits(files=20), grouped=frozenset({"memory", "pids"})) == {"files": "rlimit"}
    assert holders(Limits(), grouped=frozenset()) == {}


HELD = {"memory": "cgroup", "pids": "cgroup", "cpu_time": "doorward", "files": "rlimit"}
BARE = {"memory": "rlimit", "pids": "rlimit", "cpu_time": "doorward", "files": "rlimit"}


@pytest.mark.parametrize(
    ("measured", "hit"),
    [
        (Measured(), []),
        (Measured(True), [("cpu_time", "doorward", 2.5)]),
        (Measured(out_of_memory=1), [("memory", "cgroup", 64 << 20)]),
        (Measured(forks_refused=7), [("pids", "cgroup", 8)]),
        (Measured(True, 1, 1), [("cpu_time", "doorward", 2.5), ("memory", "cgroup", 64 << 20), ("pids", "cgroup", 8)]),
    ],
)
def test_what_was_reached(measured, hit):
    assert [(each.limit, each.by, each.value) for each in limits_hit(ALL, measured)] == hit


def test_it_is_said_with_its_size_and_how_often():
    assert [each.message for each in limits_hit(ALL, Measured(True, 1, 3))] == [
        "the run used its 2.5 s of processor time and was ended",
        "the run reached its 64 MiB of memory, and the kernel refused more once",
        "the run reached its 8 processes and threads, and the kernel refused more 3 times",
    ]


def test_a_limit_that_is_not_set_is_never_reached():
    assert limits_hit(Limits(files=20), Measured(True, 1, 1)) == ()


def test_what_nobody_can_see_is_named():
    assert unseen(ALL, HELD) == ("32 open files for each process",)
    assert unseen(ALL, BARE) == (
        "64 MiB of memory for each process", "8 processes and threads", "32 open files for each process",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("size", "text"),
    [(1, "1 bytes"), (1536, "1.5 KiB"), (64 << 20, "64 MiB"), (1 << 40, "1 TiB"), (1 << 52, "4.1e+03 TiB")],
)
def test_sizes_in_words(size, text):
    assert size_text(size) == text

"""The line a shim is sent, and the descriptors that go with it."""

import pytest

from doorward.launcher.interface import Door, Identity, Limits, Stdio
from doorward.launcher.launch import Launch, Plan, launch_from
from doorward.launcher.watch import Watch


def launch(stdio=Stdio(3, 4, 5), handover=-1, user=None):  # noqa: B008
    return Launch(
        plan=Plan(arguments=("--a", "\udcff"), watched=(Watch("absent", "/w", ".codex"),)),
        bubblewrap="/usr/bin/bwrap",
        network=True,
        fresh_proc=False,
        argv=("sh", "-c", "echo \n"),
        cwd="/w\udcfe",
        env=(("A", "1"),),
        program="06000000",
        run="r",
        policy_id="p",
        deadline_s=2.5,
        cache_dir="/c",
        scoped=True,
        user=user,
        limits=Limits(memory=1 << 40, cpu_time=0.5),
        held=(("memory", "cgroup"), ("cpu_time", "doorward")),
        watching="ff00",
        calls=((2, 0), (257, 1)),
        cgroup="/sys/fs/cgroup/a",
        door=Door(True, (123,), (5432, 8080), False),
        stdio=stdio,
        handover=handover,
    )


STREAMS = [
    (Stdio(3, 4, 5), -1, (3, 4, 5)),
    (Stdio(-1, 4, 4), -1, (4, 4)),
    (Stdio(-1, -1, -1), -1, ()),
    (Stdio(7, 7, 7, 7), 9, (7, 7, 7, 7, 9)),
    (Stdio(0, 1, 2), 0, (0, 1, 2, 0)),
]


@pytest.mark.parametrize(("stdio", "handover", "sent"), STREAMS)
def test_only_descriptors_that_exist_are_sent_and_find_their_place(stdio, handover, sent):
    made = launch(stdio, handover)
    assert made.descriptors() == sent
    assert launch_from(made.to_line()[:-1], sent) == made


def test_another_user_arrives_as_it_was():
    made = launch(user=Identity("ann", 1001, 1002, (27, 1002)))
    assert launch_from(made.to_line(), (3, 4, 5)).user == made.user


def test_the_line_is_one_line():
    line = launch().to_line()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1


def test_numbers_are_those_of_the_receiver():
    received = launch_from(launch(Stdio(3, -1, 5, 6), 8).to_line(), [10, 11, 12, 13])
    assert received.stdio == Stdio(10, -1, 11, 12)
    assert received.handover == 13


@pytest.mark.parametrize("descriptors", [(), (1, 2), (1, 2, 3, 4)])
def test_another_number_of_descriptors_is_an_error(descriptors):
    with pytest.raises(ValueError, match="argument"):
        launch_from(launch().to_line(), descriptors)

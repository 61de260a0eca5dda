"""Settings that make the kernel run a program outside: where it sends core dumps, how it loads modules, how it
tells of devices. They are guarded by file permissions alone, which root passes without any capability.
"""

import os

import pytest

CODE = """
FILES = ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sys/kernel/hotplug',
         '/proc/sys/kernel/usermodehelper/bset', '/proc/sys/vm/overcommit_memory', '/proc/sysrq-trigger',
         '/proc/sys/fs/binfmt_misc/register', '/sys/kernel/uevent_helper', '/sys/kernel/mm/ksm/run',
         '/sys/power/state', '/proc/irq/default_smp_affinity', '/proc/acpi/wakeup', '/proc/1/oom_score_adj']
for path in FILES:
    def opened():
        # opened and nothing more: nothing is written, inside or outside
        os.close(os.open(path, os.O_WRONLY))
        return 'opened'
    if os.path.exists(path): attempt(path, opened)
"""


def test_none_can_be_opened_for_writing(way):
    probe = way(CODE)
    inside = probe.inside()
    assert "/proc/sys/kernel/core_pattern" in inside
    # the score of process one is the sandbox's own affair
    inside.pop("/proc/1/oom_score_adj", None)
    assert set(inside.values()) <= {"EROFS", "EACCES", "EPERM"}, inside
    if probe.sandbox.is_root:
        assert probe.outside()["/proc/sys/kernel/core_pattern"] == "opened"


def test_a_crash_inside_starts_nothing_that_was_planted(sandbox):
    """The core pattern itself: a program of the command's, or a path of its own."""
    if not sandbox.is_root:
        pytest.skip("root only: others may not write it outside either")
    with open("/proc/sys/kernel/core_pattern") as file:
        before = file.read()
    answer = sandbox.run(
        "echo '|/bin/touch /var/tmp/never' > /proc/sys/kernel/core_pattern; echo $?; "
        "mount -t proc proc /tmp; echo $?; ulimit -c unlimited; sh -c 'kill -SEGV $$'; true"
    )
    assert "0" not in answer["stdout"].split()
    with open("/proc/sys/kernel/core_pattern") as file:
        assert file.read() == before
    assert not os.path.exists("/var/tmp/never")

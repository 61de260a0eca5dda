"""Control groups: leaving one's own for another, or having the kernel run a program when one becomes empty."""

import json
import os

import pytest

CODE = """
def opened(path):
    # opened and nothing more: nothing is written, inside or outside
    os.close(os.open(path, os.O_WRONLY))
    return 'opened'
for where, folders, files in os.walk('/sys/fs/cgroup'):
    for name in ('cgroup.procs', 'tasks', 'release_agent', 'memory.max', 'pids.max', 'devices.allow'):
        if name in files: attempt(f'{where}/{name}', opened, f'{where}/{name}')
    attempt(f'make {where}', lambda: os.mkdir(f'{where}/doorward-probe') if 'make' in sys.argv else opened(where))
    if where.count('/') > 5: folders.clear()
for kind in (b'cgroup', b'cgroup2'):
    attempt('mount ' + kind.decode(), call, 'mount', kind, b'/tmp', kind, 0, None)
said['own'] = read('/proc/self/cgroup')
"""


def test_no_group_can_be_changed_or_left(way):
    """P-FS-15 for the kernel's own tree: also for root, who owns all of it."""
    probe = way(CODE)
    inside = probe.inside("make")
    own = inside.pop("own")
    assert set(inside.values()) <= {"EROFS", "EACCES", "EPERM"}, inside
    # a namespace of its own: the path of the host's group is not told
    assert all(line.endswith(":/") for line in own.split()), own
    if probe.sandbox.is_root and os.path.exists("/sys/fs/cgroup/cgroup.procs"):
        assert probe.outside()["/sys/fs/cgroup/cgroup.procs"] == "opened"


def test_a_group_of_a_namespace_of_the_tests_own(caller_sandbox, caller_way):
    """The probe's mounts work where one has the capabilities for them."""
    if not caller_sandbox.is_root:
        pytest.skip("root only: mounting control groups needs the machine's own capabilities")
    probe = caller_way(CODE)
    done = caller_sandbox.outside(probe.argv(), prefix=["unshare", "-m"])
    said = json.loads(done.stdout)
    assert 0 in (said["mount cgroup2"], said["mount cgroup"]), {name: said[name] for name in said if "mount" in name}

"""Mounts pass between namespaces: one made inside must not come out, one made outside must not come in writable."""

import json
import os

import pytest

CODE = """
folder = sys.argv[1]
attempt('tmpfs', call, 'mount', b'none', folder.encode(), b'tmpfs', 0, None)
attempt('bind', call, 'mount', b'/etc', folder.encode(), None, 4096, None)
attempt('shared', call, 'mount', None, b'/', None, 1 << 20 | 16384, None)
attempt('writable', call, 'mount', None, b'/', None, 32 | 4096, None)
attempt('umount', call, 'umount2', b'/tmp', 2)
attempt('pivot', syscall, 155 if os.uname().machine == 'x86_64' else 41, b'/tmp', b'/tmp')
said['shared or slave'] = sum('shared:' in line or 'master:' in line for line in open('/proc/self/mountinfo'))
"""


def test_nothing_can_be_mounted(way, sandbox):
    probe = way(CODE)
    folder = sandbox.mkdir("folder")
    inside = probe.inside(folder)
    assert {inside[name] for name in ("tmpfs", "bind", "shared", "writable", "umount", "pivot")} == {"EPERM"}
    # outside, in namespaces of the test's own
    done = sandbox.outside(probe.argv(folder), prefix=["unshare", "-Urm"])
    outside = json.loads(done.stdout)
    assert [outside[name] for name in ("tmpfs", "bind", "shared")] == [0, 0, 0]
    assert outside["shared or slave"] > 0
    assert os.listdir(folder) == []


@pytest.mark.parametrize("form", ["sandbox", "slave"])
def test_what_the_host_mounts_later_does_not_come_in(caller_sandbox, form):
    """It would be writable: only what was there at the start was made read-only."""
    sandbox = caller_sandbox
    if not sandbox.is_root:
        pytest.skip("root only: the test mounts, in a namespace of its own")
    outer = sandbox.base / "mnt"
    outer.mkdir()
    shared = f"mount -t tmpfs outer '{outer}' && mount --make-rshared '{outer}' && mkdir '{outer}/late' && "
    if form == "slave":
        # the same with plain propagation to a slave: the late mount does come in, so the test looks at the right thing
        done = sandbox.outside(
            ["unshare", "-m", "sh", "-c", shared + "unshare -m --propagation slave sh -c 'echo ready; read x; ls -A "
             f"{outer}/late' < {sandbox.base}/fifo & exec 3> {sandbox.base}/fifo; mount -t tmpfs late {outer}/late && "
             f"touch {outer}/late/seen; echo go >&3; exec 3>&-; wait"],
            prefix=["sh", "-c", f"mkfifo {sandbox.base}/fifo; exec \"$@\"", "sh"],
        )  # fmt: skip
        assert done.stdout.split() == ["ready", "seen"], done
        return
    driver = sandbox.start(
        f"echo ready; read line; ls -A '{outer}/late'; echo x > '{outer}/late/f' && echo WROTE",
        prefix=["unshare", "-m", "sh", "-c", shared + 'exec "$@"', "sh"],
        stdin="open",
        steps=[["release"], ["await", "ready"], ["mount", f"{outer}/late"], ["answer"]],
    )
    out, err = driver.communicate(timeout=30)
    assert json.loads(out)["stdout"] == "ready\n", (out, err)

"""The system call filter, each rule proved by making the call inside; and that ordinary runtimes do not notice."""

import errno
import json
import os
import platform
import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).parent

ENOSYS = {"clone3"}


def probe(sandbox, *options, **more):
    shutil.copy(HERE / "probe_syscalls.py", sandbox.path("probe.py"))
    sandbox.own(sandbox.path("probe.py"))
    answer = sandbox.run(["/usr/bin/python3", "probe.py", *options], **more)
    assert answer["exit_code"] == 0, answer
    return json.loads(answer["stdout"])


def test_every_rule_holds_inside(sandbox):
    """P-SC-01, P-SC-04."""
    found = probe(sandbox)
    wrong = {
        name: errno.errorcode.get(number, number)
        for name, number in found["refused"].items()
        if number != (errno.ENOSYS if name in ENOSYS else errno.EPERM)
    }
    assert wrong == {}


def test_the_probe_itself_sees_the_difference(sandbox):
    """Without the filter the same calls fail otherwise, or succeed; else the test above would prove nothing."""
    found = probe(sandbox, without_filter=True)["refused"]
    open_ones = {name for name, number in found.items() if number not in (errno.EPERM, errno.ENOSYS)}
    # open_by_handle_at, mount and the like need a capability as well, which is gone either way
    assert {"io_uring_enter", "keyctl", "pidfd_getfd", "ptrace", "kcmp", "add_key", "socket 40"} <= open_ones


def test_what_programs_probe_for_is_never_refused(sandbox):
    """EPERM from these makes C libraries give up instead of falling back."""
    for name, number in probe(sandbox)["allowed"].items():
        assert number not in (errno.EPERM, errno.ENOSYS), name


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86_64 numberings")
def test_foreign_numberings_do_not_exist(sandbox):
    """The trap is a second architecture added to the filter: its calls then get the default, which is to allow."""
    found = probe(sandbox, "--int80")["foreign"]
    assert set(found.values()) == {errno.ENOSYS}, found


@pytest.mark.parametrize("without_filter", [False, True])
def test_no_user_namespace_can_be_made_by_either_lock(sandbox, without_filter):
    """The filter, and without it the kernel's own limit (--disable-userns)."""
    answer = sandbox.run("unshare -U true; echo $?", without_filter=without_filter)
    assert answer["stdout"] != "0\n"


def test_identity_and_privileges_inside(sandbox):
    answer = sandbox.run("id -u; id -g; grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status")
    lines = answer["stdout"].split("\n")
    uid = os.geteuid() if sandbox.uid is None else sandbox.uid
    assert lines[:2] == [str(uid), str(uid) if sandbox.uid is not None else str(os.getegid())]
    status = dict(line.split(":\t") for line in lines[2:9])
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_root_inside_cannot_use_its_uid_on_the_kernels_files(caller_sandbox):
    """Without capabilities root still owns files in /proc and /sys; mounts hold them."""
    sandbox = caller_sandbox
    if not sandbox.is_root:
        pytest.skip("root only")
    answer = sandbox.run(
        "for f in $(find /proc /sys -xdev -maxdepth 4 -type f -perm -200 -not -path '/proc/[0-9]*' "
        "-not -path '/proc/self/*' -not -path '/proc/thread-self/*' 2>/dev/null); do "
        '( : >> "$f" ) 2>/dev/null && echo "$f"; done'
    )
    opened = set(answer["stdout"].split())
    # opening these asks for nothing; what is written needs a capability (kernel/power, PSI, MTRR)
    assert {path for path in opened if not path.startswith(("/proc/pressure/", "/proc/mtrr"))} == set(), answer


def test_setuid_programs_gain_nothing(sandbox):
    answer = sandbox.run("ls -l /usr/bin/su | cut -c4; su -c id nobody < /dev/null; sudo -n id; true")
    assert "uid=65534" not in answer["stdout"]


def test_ordinary_runtimes_work(sandbox):
    """P-SC-01: asyncio, threads, node and a C program that uses clone fall back where they must."""
    sandbox.write(
        "t.py",
        "import asyncio, threading, subprocess\n"
        "async def main():\n"
        "    p = await asyncio.create_subprocess_exec('echo', 'sub', stdout=-1)\n"
        "    print((await p.communicate())[0].decode().strip())\n"
        "    server = await asyncio.start_server(lambda r, w: w.close(), '127.0.0.1', 0)\n"
        "    server.close()\n"
        "asyncio.run(main())\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n",
    )
    assert sandbox.run(["/usr/bin/python3", "t.py"])["stdout"].split() == ["sub", "thread"]
    if shutil.which("node", path="/usr/bin:/usr/local/bin"):
        code = "require('fs').promises.readFile('t.py').then(() => new (require('worker_threads').Worker)"
        answer = sandbox.run(["node", "-e", code + "('console.log(1+1)', {eval: true}))"])
        assert answer["stdout"] == "2\n", answer
    if shutil.which("cc"):
        sandbox.write("a.c", '#include <stdio.h>\nint main(void) { puts("compiled"); return 0; }\n')
        answer = sandbox.run("cc -o a a.c && ./a")
        assert answer["stdout"] == "compiled\n", answer

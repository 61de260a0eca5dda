"""Run by a Windows Python, under Wine or on Windows: makes the Windows door's calls once and prints what came of them.

Wine refuses every call about integrity labels (error 5); those are noted, and left out of the rest.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, sys.argv[1])

from doorward.launcher import windows_structures as w
from doorward.launcher.interface import Command, Mode, SandboxPolicy, Stdio
from doorward.launcher.windows import Windows
from doorward.launcher.windows_api import WindowsApi
from doorward.launcher.windows_errors import ApiError
from doorward.launcher.windows_plan import capability_sid

FOUND = {"labels": "set"}


class Api(WindowsApi):
    """The real calls, with labels optional."""

    def label(self, path):
        try:
            return super().label(path)
        except ApiError as error:
            FOUND["labels"] = str(error)
            return ""

    def set_label(self, path, sddl):
        try:
            super().set_label(path, sddl)
        except ApiError as error:
            FOUND["labels"] = str(error)


def list_of(api, entries):
    """The access control list that Windows makes of `entries`: type, flags, mask of each, and whether it names the SID.

    ACL and ACE as in winnt.h."""
    with api._acl(None, entries) as acl:
        size, count = (ctypes.c_ushort.from_address(acl.value + offset).value for offset in (2, 4))
        raw = ctypes.string_at(acl.value, size)
    found, at = [], 8
    for _ in range(count):
        length, mask = int.from_bytes(raw[at + 2 : at + 4], "little"), int.from_bytes(raw[at + 4 : at + 8], "little")
        with api._sid(entries[0][0]) as sid:
            named = raw[at + 8 : at + length] == ctypes.string_at(sid, api._calls["GetLengthSid"](sid))
        found.append([raw[at], raw[at + 1], mask, named])
        at += length
    return found


def runs(pid):
    return api.started_at(pid) is not None


def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def spawn(confinement, code, *args):
    reader, writer = os.pipe()
    env = confinement.environment(dict(os.environ))
    process = confinement.spawn(Command((sys.executable, "-c", code, *args), work, env), Stdio(-1, writer, writer))
    os.close(writer)
    return process, os.fdopen(reader)


api = Api()
base = tempfile.mkdtemp()
work, home = os.path.join(base, "work"), os.path.join(base, "home")
hooks = os.path.join(work, ".git", "hooks")
os.makedirs(hooks)
os.mkdir(home)
cache = os.path.join(home, "cache")
policy = SandboxPolicy(Mode.WORKSPACE_WRITE, work, home, cache, network="full")
sid = capability_sid(os.path.realpath(work))

if len(sys.argv) > 2:
    # the run that is killed: its job must end with it
    process, said = spawn(
        Windows(api).prepare(policy._replace(workspace=sys.argv[2], cache_dir=sys.argv[3])),
        "import os, time; print(os.getpid(), flush=True); time.sleep(600)",
    )
    process.release()
    print(said.readline().strip(), flush=True)
    process.wait()

NAMES = "STARTUPINFOEXW PROCESS_INFORMATION EXPLICIT_ACCESS_W JOBOBJECT_EXTENDED_LIMIT_INFORMATION SID_AND_ATTRIBUTES"
FOUND["sizes"] = {name: ctypes.sizeof(getattr(w, name)) for name in NAMES.split()}
FOUND["logon"] = api.logon_sid()
FOUND["list"] = list_of(api, [(sid, 0x1201BF, w.GRANT_ACCESS, 0), (sid, 0x156, w.DENY_ACCESS, 3)])
FOUND["runs"] = [runs(os.getpid()), runs(4_000_000)]

confinement = Windows(api).prepare(policy)
process, said = spawn(confinement, "import os, sys; print(os.environ['TEMP']); open('made', 'w').close(); sys.exit(7)")
FOUND["held"] = not os.path.exists(os.path.join(work, "made"))
FOUND["journals during"] = len(os.listdir(os.path.join(cache, "windows")))
process.release()
outcome = process.wait()
FOUND["outcome"] = outcome.exit_code
temporary = said.readline().strip()
FOUND["temporary"] = [os.path.basename(temporary)[:9], os.path.exists(temporary)]
process.close()
said.close()
FOUND["journals after"] = len(os.listdir(os.path.join(cache, "windows")))

# what it starts is in the job, and ends with it
process, said = spawn(
    confinement,
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    "print(child.pid, flush=True)",
)
process.release()
child = int(said.readline())
FOUND["child outcome"] = process.wait().exit_code
FOUND["child ended"] = until(lambda: not runs(child))
process.close()
said.close()

process, said = spawn(confinement, "import time; print('up', flush=True); time.sleep(600)")
process.release()
said.readline()
process.kill()
FOUND["killed"] = process.wait().exit_code
process.close()
said.close()

missing, said = spawn(confinement, "")
missing.kill()
FOUND["never released"] = missing.wait().exit_code
missing.close()
said.close()

# a run that is killed itself
supervisor = subprocess.Popen([sys.executable, __file__, sys.argv[1], work, cache], stdout=subprocess.PIPE, text=True)
inside = int(supervisor.stdout.readline())
FOUND["before kill"] = [runs(inside), len(os.listdir(os.path.join(cache, "windows")))]
supervisor.kill()
supervisor.wait()
FOUND["kill on close"] = until(lambda: not runs(inside))
FOUND["left"] = [len(os.listdir(os.path.join(cache, "windows")))]
Windows(api).prepare(policy)
FOUND["swept"] = [len(os.listdir(os.path.join(cache, "windows")))]
print("FOUND " + json.dumps(FOUND))

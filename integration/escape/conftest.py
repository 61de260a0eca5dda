"""Ways out of the sandbox. Each file tries one, inside where it must fail, and outside where the same probe works.

Without the second half a probe with a mistake in it would pass for ever. Outside it acts on things the test made
and on nothing else.
"""

import json
import shutil
import socket
import tempfile
from pathlib import Path

import pytest
from unix_service import Service

PRELUDE = """
import ctypes, errno, json, os, socket, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
said = {}
def attempt(name, function, *arguments):
    try: said[name] = function(*arguments)
    except OSError as error: said[name] = errno.errorcode.get(error.errno, str(error))
def call(name, *arguments):
    ctypes.set_errno(0)
    result = getattr(libc, name)(*arguments)
    if result < 0: raise OSError(ctypes.get_errno(), name)
    return result
def syscall(number, *arguments):
    libc.syscall.restype = ctypes.c_long
    wide = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    return call('syscall', ctypes.c_long(number), *wide)
def greeted(path):
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(10)
        stream.connect(path)
        return stream.recv(9).decode()
def append(path, text='theirs'):
    with open(path, 'a') as file: file.write(text)
    return 'written'
def read(path):
    with open(path) as file: return file.read(4096)
"""
CLOSE = """
print(json.dumps(said), flush=True)
"""


class Way:
    """One probe, run inside or outside; it fills `said`, a name for each try and what came of it."""

    def __init__(self, sandbox, code):
        self.sandbox = sandbox
        self.path = sandbox.base / "probe.py"
        self.path.write_text(PRELUDE + code + CLOSE)
        self.path.chmod(0o644)

    def argv(self, *arguments):
        return ["/usr/bin/python3", str(self.path), *map(str, arguments)]

    def inside(self, *arguments, **more):
        """What the probe said inside a sandbox; the run itself must have gone well."""
        answer = self.sandbox.run(self.argv(*arguments), **more)
        assert answer["exit_code"] == 0, answer
        return json.loads(answer["stdout"])

    def outside(self, *arguments, **more):
        """What it said as a plain process of the same user."""
        done = self.sandbox.outside(self.argv(*arguments), **more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def way(sandbox):
    """Makes a probe for each identity."""
    return lambda code: Way(sandbox, code)


@pytest.fixture
def caller_way(caller_sandbox):
    """Makes a probe for whoever runs the tests."""
    return lambda code: Way(caller_sandbox, code)


@pytest.fixture
def host_folder(request):
    """A folder below the host's /tmp that everybody may write."""
    path = Path(tempfile.mkdtemp(prefix="tested-host-", dir="/tmp"))
    path.chmod(0o777)
    request.addfinalizer(lambda: shutil.rmtree(path, ignore_errors=True))
    return path


@pytest.fixture
def serve(request):
    """Starts services that end with the test."""

    def start(path, kind=socket.SOCK_STREAM):
        service = Service(path, kind)
        request.addfinalizer(service.close)
        return service

    return start


@pytest.fixture
def witness(caller_sandbox):
    """Makes a program `evil` beside the workspace, for git to run, and gives the file that it would leave."""
    evil, seen = caller_sandbox.base / "evil", caller_sandbox.base / "seen"
    evil.write_text(f"#!/bin/sh\ntouch '{seen}'\nexit 1\n")
    evil.chmod(0o755)
    return seen


@pytest.fixture
def user_works(caller_sandbox):
    """What somebody does outside afterwards: each of these has run programs from a repository before."""
    env = {f"GIT_{who}_{what}": "t@t.test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    commands = (
        "git status; git add -A; git commit --allow-empty -m more; git checkout -b other; git diff HEAD~1; "
        "git log -1; git stash; git fetch; git gc --auto"
    )
    return lambda: caller_sandbox.outside(commands, env={**env, "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"})

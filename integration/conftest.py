"""The installed `doorward` and an origin, for every folder that has no special ones (`scaffolding/`).

And the sandbox for real, for `sandbox/` and `escape/`: as whoever runs the tests and, when that is root, as an ordinary
user too.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest
from doorward_command import Doorward
from origin import Origin

HERE = Path(__file__).parent
ROOT = HERE.parent
DRIVER = HERE / "sandbox" / "driver.py"
ORDINARY = 64242  # an id nobody has


def _why_not():
    if sys.platform != "linux":
        return "not Linux"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    tried = subprocess.run(
        ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"], capture_output=True, timeout=20, check=False
    )
    return None if tried.returncode == 0 else f"no sandbox can be made: {tried.stderr.decode().strip()}"


@pytest.fixture(scope="session")
def _machine():
    why = _why_not()
    if why is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must be able to run the sandbox: {why}")
        pytest.skip(why)


def _interpreter(uid):
    """A Python that user can run; root's own may lie in a home closed to others."""
    site = [path for path in sys.path if path.endswith("site-packages")]
    env = {"PYTHONPATH": os.pathsep.join([str(ROOT), *site]), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    for python in (sys.executable, "/usr/bin/python3"):
        probe = [python, "-c", "import sys, doorward.launcher; assert sys.version_info >= (3, 11)"]
        try:
            # started through env(1), so that the right to look the path up is the new user's
            done = subprocess.run(
                ["/usr/bin/env", *probe], user=uid, group=uid, extra_groups=[], env=env, cwd="/",
                capture_output=True, check=False, timeout=30,
            )  # fmt: skip
        except OSError:
            continue
        if done.returncode == 0:
            return python, env
    return None


class Sandbox:
    """A workspace and a doorward home of one user, and a way to run commands in them."""

    def __init__(self, base, uid):
        self.base = base
        self.uid = uid
        self.workspace = base / "work space"
        self.home = base / "home"
        self.workspace.mkdir()
        self.home.mkdir(mode=0o700)
        self.marker = f"7{uuid.uuid4().int % 10**9:09d}"
        if uid is None:
            self.python = sys.executable
            self.env = {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "PATH": os.environ["PATH"]}
        else:
            found = _interpreter(uid)
            if found is None:
                pytest.skip("no Python that an ordinary user can run")
            self.python, self.env = found
            for path in (base, self.workspace, self.home):
                os.chown(path, uid, uid)

    @property
    def is_root(self):
        return self.uid is None and os.geteuid() == 0

    def path(self, *parts):
        return self.workspace.joinpath(*parts)

    def write(self, name, text=""):
        """Makes a file in the workspace, owned by the user."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.own(path)
        return path

    def own(self, path):
        if self.uid is not None:
            while True:
                os.lchown(path, self.uid, self.uid)
                if path in (self.base, Path("/")) or self.base not in path.parents:
                    break
                path = path.parent

    def mkdir(self, name):
        path = self.workspace / name
        path.mkdir(parents=True)
        self.own(path)
        return path

    def git(self, *arguments, cwd=None):
        """Runs git outside, as the user."""
        done = subprocess.run(
            ["git", "-c", "user.name=T", "-c", "user.email=t@t.test", "-c", "init.defaultBranch=main", *arguments],
            cwd=cwd or self.workspace, env={"HOME": str(self.base), "PATH": "/usr/bin:/bin"},
            check=False, capture_output=True, text=True, timeout=30, **self._as_user(),
        )  # fmt: skip
        assert done.returncode == 0, f"git {arguments}: {done.stderr}"
        return done

    def _as_user(self):
        return {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}

    def told(self, argv, **more):
        policy = {
            "mode": "workspace-write",
            "workspace": str(self.workspace),
            "home": str(self.home),
            "cache_dir": str(self.home / "cache"),
            "network": "off",
            **more.pop("policy", {}),
        }
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.base), "LANG": "C.UTF-8", **more.pop("env", {})}
        if isinstance(argv, str):
            argv = ["sh", "-c", argv]
        return {"policy": policy, "argv": argv, "cwd": str(self.workspace), "env": env, **more}

    def start(self, argv, *, prefix=(), alone=False, **more):
        """Starts the driver and gives it as a Popen; its stdout is the answer. `alone`: where root can see to it, out
        of sight of other tests' sockets, which are hidden too and may go away while a sandbox is long in the making."""
        as_user = self._as_user()
        if alone and os.geteuid() == 0:
            become = () if self.uid is None else ("setpriv", "--reuid", str(self.uid), "--regid", str(self.uid))
            prefix = ("unshare", "--net", *become, *(("--clear-groups",) if become else ()), *prefix)
            as_user = {}
        driver = subprocess.Popen(
            [*prefix, "/usr/bin/env", self.python, str(DRIVER), self.marker],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**self.env, **more.pop("outer_env", {})}, cwd="/",
            pass_fds=more.pop("pass_fds", ()), **as_user,
        )  # fmt: skip
        driver.stdin.write(json.dumps(self.told(argv, **more)).encode())
        driver.stdin.close()
        driver.stdin = None
        return driver

    def run(self, argv, **more):
        """Runs one command to its end and gives the driver's answer."""
        driver = self.start(argv, **more)
        out, err = driver.communicate(timeout=120)
        assert out, f"the driver said nothing: {err.decode()}"
        answer = json.loads(out)
        answer["driver_stderr"] = err.decode()
        assert "late" not in answer, answer
        return answer

    def outside(self, argv, *, cwd=None, env=None, pass_fds=(), prefix=(), **more):
        """Runs a command without a sandbox, as the user, and gives the CompletedProcess."""
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.base), "LANG": "C.UTF-8", **(env or {})}
        return subprocess.run(
            [*prefix, "/usr/bin/env", *(["sh", "-c", argv] if isinstance(argv, str) else argv)],
            cwd=cwd or self.workspace, env=env, pass_fds=pass_fds, check=False, capture_output=True, text=True,
            timeout=60, **self._as_user(), **more,
        )  # fmt: skip

    def survivors(self, *spared):
        """Command lines of processes that carry this sandbox's marker: the driver, its shims, what they run."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in spared:
                try:
                    line = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ")
                except OSError:
                    continue
                if self.marker.encode() in line:
                    found.append((int(name), line.decode("utf-8", "replace")))
        return found

    def gone(self, *spared, deadline=30):
        """Waits on pidfds until nothing of this sandbox is left but `spared`; gives what still is."""
        until = time.monotonic() + deadline
        while survivors := self.survivors(*spared):
            for pid, _ in survivors:
                try:
                    handle = os.pidfd_open(pid)
                except ProcessLookupError:
                    continue
                try:
                    poll = select.poll()
                    poll.register(handle, select.POLLIN)
                    if not poll.poll(max(0, (until - time.monotonic()) * 1000)):
                        return survivors
                finally:
                    os.close(handle)
        return []

    def tree(self, root=None):
        """Everything below the workspace, as a set of relative names."""
        root = root or self.workspace
        return {str(path.relative_to(root)) for path in root.rglob("*")}


def _identities():
    return ["caller", "ordinary"] if os.geteuid() == 0 else ["caller"]


def _make(request, directory):
    base = Path(tempfile.mkdtemp(prefix="tested-", dir=directory))
    base.chmod(0o755)
    request.addfinalizer(lambda: subprocess.run(["rm", "-rf", str(base)], check=False))
    return base


@pytest.fixture(params=_identities())
def sandbox(request, _machine):
    """A sandbox for each identity, with its workspace outside /tmp."""
    return Sandbox(_make(request, "/var/tmp"), None if request.param == "caller" else ORDINARY)


@pytest.fixture
def caller_sandbox(request, _machine):
    """A sandbox for whoever runs the tests."""
    return Sandbox(_make(request, "/var/tmp"), None)


@pytest.fixture(params=_identities())
def temporary_sandbox(request, _machine):
    """A sandbox whose workspace lies below /tmp."""
    return Sandbox(_make(request, "/tmp"), None if request.param == "caller" else ORDINARY)


@pytest.fixture
def doorward(tmp_path):
    """A doorward with nothing in its home yet."""
    return Doorward(tmp_path)


@pytest.fixture
def origin():
    """An origin that answers `hello`."""
    served = Origin()
    yield served
    served.close()

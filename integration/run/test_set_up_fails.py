"""A set-up that fails never becomes a run without its confinement, and says so where a program can read it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def _fake_bubblewrap(folder: Path, body: str) -> str:
    """A `bwrap` of ours, first on the returned PATH; `$real` in `body` is the real one."""
    folder.mkdir()
    fake = folder / "bwrap"
    fake.write_text(f"#!/bin/sh\nreal={shutil.which('bwrap')}\n{body}")
    fake.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


# The arguments come through a descriptor; opened anew through /proc, they are read without being taken away.
_NO_PROC = """
for word in "$@"; do
    [ "$previous" = --args ] && tr '\\0' '\\n' < /proc/self/fd/$word | grep -qx -- --proc && {
        echo "bwrap: Can't mount proc on /newroot/proc: Operation not permitted" >&2
        exit 1
    }
    previous=$word
done
exec "$real" "$@"
"""


def test_proc_that_cannot_be_mounted_is_125_by_default(doorward: Any, tmp_path: Path) -> None:
    """P-NS-01."""
    path = _fake_bubblewrap(tmp_path / "bin", _NO_PROC)
    seen = doorward("run", "--", "touch", "ran", env={"PATH": path})
    assert seen.status == 125
    assert "/proc" in seen.err
    assert not (doorward.workspace / "ran").exists()


def test_best_effort_goes_without_it_says_so_and_records_it(doorward: Any, tmp_path: Path) -> None:
    """P-NS-01, P-NS-04: the weaker state is announced once and stands in the record."""
    path = _fake_bubblewrap(tmp_path / "bin", _NO_PROC)
    seen = doorward("run", "--json", "--require", "best-effort", "--", "touch", "ran", env={"PATH": path})
    assert seen.status == 0, seen.err
    assert seen.err.count("/proc") == 1
    assert seen.document["enforcement"]["process"] != "kernel"
    assert seen.document["enforcement"]["filesystem"] == "kernel"


@pytest.mark.parametrize(
    "said",
    [
        "bwrap: setting up uid map: Permission denied",
        "bwrap: Failed to make / slave: Permission denied",
        "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
        "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged "
        "user namespaces.",
    ],
)
def test_each_known_failure_has_its_own_diagnosis(doorward: Any, tmp_path: Path, said: str) -> None:
    """P-NS-02."""
    body = f'[ "$1" = --version ] && exec "$real" --version\necho "{said}" >&2\nexit 1\n'
    path = _fake_bubblewrap(tmp_path / "bin", body)
    for level in ("full", "best-effort"):
        seen = doorward("run", "--require", level, "--", "touch", "ran", env={"PATH": path})
        assert seen.status == 125
        assert len(seen.err.splitlines()) <= 4
        assert not (doorward.workspace / "ran").exists()


# Each line makes one step of the set-up fail, in a copy of the program that a test may break.
_STEPS = {
    "the configuration cannot be read": "import doorward.configuration_file as m; m.read_text = boom",
    "the rules cannot be built": "import doorward.network_settings as m; m.network_settings = boom",
    "the proxy cannot start": "import doorward.proxy.process as m; m.run_proxy = boom",
    "the filter cannot be built": "import doorward.launcher.linux as m; m.filter_bytes = boom",
    "the mounts cannot be planned": "import doorward.launcher.linux as m; m.survey = boom",
    "the namespaces cannot be made": (
        "import doorward.launcher.namespaces as m; m.keep_identity = m.join_network = boom"
    ),
    "the listeners cannot be opened": "import doorward.launcher.namespaces as m; m.listen = boom",
    "the rollout cannot be made": "import doorward.sessions.rollout as m; m.Rollout.create = boom",
    "the environment cannot be recorded": "import doorward.session_log as m; m.environment_record = boom",
}


@pytest.mark.parametrize("step", _STEPS)
def test_no_step_that_throws_lets_the_command_run(doorward: Any, step: str) -> None:
    """P-NS-03."""
    doorward.home.mkdir(mode=0o700)
    (doorward.home / "config.toml").write_text('[network]\nallow = ["a.test"]\n')
    program = (
        "import sys\n"
        "def boom(*words, **more): raise OSError(5, 'made to fail')\n"
        f"{_STEPS[step]}\n"
        "from doorward.__main__ import main\n"
        "sys.exit(main(['run', '--', 'touch', 'ran']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=doorward.workspace, env=doorward.env, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert not (doorward.workspace / "ran").exists()
    assert done.returncode != 0


@pytest.mark.parametrize("name", ["plain", "with blanks", "mit Umlaut ü"])
def test_it_runs_from_wherever_it_is_installed(doorward: Any, tmp_path: Path, name: str) -> None:
    """P-NS-05: nothing of ours is needed inside, so no mount can hide it."""
    place = tmp_path / name
    place.mkdir()
    shutil.copytree(ROOT / "doorward", place / "doorward", symlinks=False, ignore=shutil.ignore_patterns("__pycache__"))
    boot = "import sys; sys.path.insert(0, sys.argv.pop(1)); from doorward.__main__ import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", boot, str(place), "run", "--", "true"],
        cwd=doorward.workspace, env=doorward.env, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

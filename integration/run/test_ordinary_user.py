"""The main job as an ordinary user, when the tests run as root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ORDINARY = 64243  # an id nobody has
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of that user, outside the private /tmp and outside any closed home."""
    folder = Path(tempfile.mkdtemp(prefix="doorward-user-", dir="/var/tmp"))
    try:
        for name in ("home", "work"):
            (folder / name).mkdir(mode=0o700)
            os.chown(folder / name, ORDINARY, ORDINARY)
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def _start(place: Path, python: str, *args: str) -> subprocess.CompletedProcess[bytes]:
    site = [path for path in sys.path if path.endswith("site-packages")]
    return subprocess.run(
        # started through env(1), so that the right to look the path up is the new user's
        ["/usr/bin/env", python, "-P", *args],
        user=ORDINARY,
        group=ORDINARY,
        extra_groups=[],
        cwd=place / "work",
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(place / "home"),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join([*site, str(ROOT)]),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_an_ordinary_user_gets_the_same_doors(place: Path) -> None:
    for python in (sys.executable, "/usr/bin/python3"):
        if _start(place, python, "-c", "import doorward.proxy.server").returncode == 0:
            break
    else:
        pytest.skip("no interpreter with these libraries that an ordinary user may run (its folder is closed)")
    script = "id -u; echo x > made; touch /etc/doorward-x; curl -sS http://b.test/; grep CapEff /proc/self/status"
    seen = _start(place, python, "-m", "doorward", "run", "--json", "--", "sh", "-c", script)
    assert seen.returncode == 0, seen.stderr
    observation = json.loads(seen.stdout)
    assert observation["output"].startswith(f"{ORDINARY}\n")
    assert observation["output"].rstrip().endswith("0000000000000000")
    assert [each["host"] for each in observation["refusals"]] == ["b.test"]
    assert set(observation["enforcement"].values()) == {"kernel"}
    assert (place / "work" / "made").stat().st_uid == ORDINARY
    assert not Path("/etc/doorward-x").exists()

"""Source archive and wheel hold the whole package, and nothing under a bare name."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = ("allowlists", "gates", "launcher", "proxy", "sessions")


def _sources() -> set[str]:
    """Every module as it is named in the package."""
    face = ROOT / "doorward"
    own = {path for path in face.rglob("*.py") if path.relative_to(face).parts[0] not in FOLDERS}
    below = {path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    inside = [path.relative_to(face) for path in own] + [path.relative_to(ROOT) for path in below]
    return {f"doorward/{path}" for path in inside}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive and the wheel made from it."""
    out = tmp_path_factory.mktemp("dist")
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout  # fmt: skip
    copy = tmp_path_factory.mktemp("checkout")
    subprocess.run(
        ["tar", "--null", "--no-recursion", "-T", "-", "--ignore-failed-read", "-cf", str(out / "c.tar")],
        cwd=ROOT, input=tracked, check=True,
    )  # fmt: skip
    subprocess.run(["tar", "-xf", str(out / "c.tar"), "-C", str(copy)], check=True)
    subprocess.run(
        [sys.executable, "-P", "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    return out


def test_the_wheel_holds_every_module_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name for name in names if name.endswith(".py")} == _sources()
    assert {name.split("/")[0] for name in names} == {"doorward"}
    assert "doorward/py.typed" in names


def test_the_source_archive_builds_that_wheel(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert _sources() <= names
    assert "LICENSE" in names

"""The Windows door's calls, made for real by a Windows Python under Wine. Opt-in: nothing installs Wine for it.

    DOORWARD_WINDOWS_PYTHON=…/python.exe pytest integration/platforms/test_windows_door_under_wine.py

python.exe is python.org's embeddable one; docs/platforms.md tells where it can be had from a package index. Wine takes
the calls and ends jobs, but enforces no restricted token, keeps no access control list of a file and refuses integrity
labels: this proves layouts, order and lifetimes, not confinement.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    python = os.environ.get("DOORWARD_WINDOWS_PYTHON")
    wine = shutil.which("wine")
    if not python or not wine:
        pytest.skip("opt-in: needs wine and DOORWARD_WINDOWS_PYTHON=…/python.exe (docs/platforms.md)")
    prefix = os.environ.get("WINEPREFIX") or str(tmp_path_factory.mktemp("wine"))
    env = {**os.environ, "WINEPREFIX": prefix, "WINEDEBUG": "-all", "WINEARCH": "win64", "DISPLAY": ""}
    script, root = (f"Z:{path}".replace("/", "\\") for path in (HERE / "windows_exercise.py", ROOT))
    done = subprocess.run(
        [wine, python, script, root], env=env, capture_output=True, text=True, timeout=300, check=False, input=""
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, done.stdout + done.stderr
    return json.loads(lines[0].removeprefix("FOUND "))


def test_structures_have_the_sizes_of_the_64_bit_headers(found):
    assert found["sizes"] == {
        "STARTUPINFOEXW": 112, "PROCESS_INFORMATION": 24, "EXPLICIT_ACCESS_W": 48,
        "JOBOBJECT_EXTENDED_LIMIT_INFORMATION": 144, "SID_AND_ATTRIBUTES": 16,
    }  # fmt: skip


def test_entries_of_access_control_lists_are_what_was_meant(found):
    """Type 0 grants, 1 denies. Windows puts denying ones first ("SetEntriesInAclW"), Wine does not; and it keeps no
    list of a file, so only the making of one is seen."""
    assert sorted(found["list"]) == [[0, 0, 0x1201BF, True], [1, 3, 0x156, True]]


def test_the_logon_session_and_processes_are_found(found):
    assert found["logon"].startswith("S-1-5-5-")
    assert found["runs"] == [True, False]


def test_a_run_is_held_then_runs_and_leaves_nothing(found):
    assert found["held"]
    assert (found["journals during"], found["journals after"]) == (1, 0)
    assert found["outcome"] == 7
    assert found["temporary"] == ["doorward-", False]


def test_the_job_ends_what_is_left(found):
    assert found["child outcome"] == 0
    assert found["child ended"]
    assert (found["killed"], found["never released"]) == (137, 137)


def test_a_killed_supervisor_takes_the_run_along_and_the_next_one_tidies_up(found):
    assert found["before kill"] == [True, 1]
    assert found["kill on close"]
    assert (found["left"], found["swept"]) == ([1], [0])

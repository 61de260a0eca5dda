"""Programs that change who they run as: set-user-ID files and file capabilities."""

import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root only: an ordinary user can make no program of root's")

SETCAP = shutil.which("setcap", path="/usr/sbin:/usr/bin:/sbin:/bin")
CODE = """
import subprocess
for path in sys.argv[1:]:
    attempt(os.path.basename(path), lambda: subprocess.run([path, '-u'], capture_output=True, text=True).stdout.strip())
attempt('setuid', lambda: os.setuid(0))
attempt('setgroups', lambda: os.setgroups([0]))
"""


@pytest.fixture
def programs(sandbox):
    """Copies of id(1): one that is root's and set-user-ID, one plain, both beside the workspace."""
    made = []
    for name, mode in (("set-user-id", 0o4755), ("plain", 0o755)):
        path = sandbox.base / name
        shutil.copy("/usr/bin/id", path)
        os.chown(path, 0, 0)
        path.chmod(mode)
        made.append(path)
    flags = os.statvfs(sandbox.base).f_flag
    if flags & os.ST_NOSUID:
        pytest.skip("the file system of the test honours no set-user-ID bit")
    return made


def test_set_user_id_changes_nothing(way, programs):
    probe = way(CODE)
    uid = probe.sandbox.uid or 0
    inside = probe.inside(*programs)
    assert {inside["set-user-id"], inside["plain"]} == {str(uid)}
    assert inside["setgroups"] == "EPERM"
    outside = probe.outside(*programs)
    assert outside["plain"] == str(uid)
    assert outside["set-user-id"] == "0"
    if uid:
        assert inside["setuid"] in ("EPERM", "EINVAL")


@pytest.mark.skipif(SETCAP is None, reason="no setcap to give a file capabilities")
def test_file_capabilities_change_nothing(way, sandbox):
    shutil.copy("/usr/bin/cat", sandbox.base / "cat")
    if subprocess.run([SETCAP, "cap_dac_read_search+ep", sandbox.base / "cat"], check=False).returncode:
        pytest.skip("the file system of the test keeps no capabilities")
    secret = sandbox.base / "secret"
    secret.write_text("TOP-SECRET")
    secret.chmod(0)
    os.chown(secret, 12345, 12345)
    probe = way("import subprocess\nsaid['cat'] = subprocess.run(sys.argv[1:], capture_output=True, text=True).stdout")
    assert probe.inside(sandbox.base / "cat", secret)["cat"] == ""
    assert probe.outside(sandbox.base / "cat", secret)["cat"] == "TOP-SECRET"

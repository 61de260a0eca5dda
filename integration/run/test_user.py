"""`--user NAME` of `doorward run` and `open_session(user=…)`, where root starts it."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAME = "daemon"  # every distribution has it


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder of the user's, below folders that everybody can enter."""
    folder = Path(tempfile.mkdtemp(prefix="doorward-user-", dir="/var/tmp"))
    folder.chmod(0o755)
    try:
        (folder / "work").mkdir()
        found = pwd.getpwnam(NAME)
        os.chown(folder / "work", found.pw_uid, found.pw_gid)
        yield folder / "work"
    finally:
        shutil.rmtree(folder)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="root only: nobody else may become another user")


@as_root
def test_the_command_is_the_user_and_the_records_stay_roots(doorward: Any, work: Path) -> None:
    script = (
        "id -u; pwd; echo x > made; echo $HOME $USER $LOGNAME $SHELL; echo again > /dev/stdout; curl -sS http://b.test/"
    )
    seen = doorward(
        "run", "--json", "--user", NAME, "--", "sh", "-c", script,
        cwd=work, env={"XDG_CONFIG_HOME": "/home/root/.config", "MAIL": "/var/mail/root"},
    )  # fmt: skip
    assert seen.status == 0, seen.err
    user = pwd.getpwnam(NAME)
    lines = seen.document["output"].splitlines()
    assert lines[:4] == [str(user.pw_uid), str(work), f"{user.pw_dir} {NAME} {NAME} {user.pw_shell}", "again"]
    assert [each["host"] for each in seen.document["refusals"]] == ["b.test"]
    assert set(seen.document["enforcement"].values()) == {"kernel"}
    assert (work / "made").stat().st_uid == user.pw_uid
    for path in (doorward.home, *doorward.home.rglob("*")):
        assert path.stat().st_uid == os.getuid(), path
    records = doorward.lines(seen.document["session"])
    (context,) = [line["payload"] for line in records if line["type"] == "turn_context"]
    assert context["doorward"]["sandbox"]["user"]["name"] == NAME
    (started,) = [line["payload"] for line in records if line["type"] == "exec"]
    names = {each["name"] for each in started["environment"]}
    assert not names & {"XDG_CONFIG_HOME", "MAIL"}


@as_root
def test_what_knows_no_proxy_is_captured_for_the_user_too(doorward: Any, work: Path) -> None:
    ask = "getent hosts a.test; curl -sS --noproxy '*' http://a.test:9/"
    hosts = ("--allow", "a.test:9", "-c", 'network.hosts={"a.test" = "127.0.0.1"}')
    seen = doorward("run", "--json", "--user", NAME, *hosts, "--", "sh", "-c", ask, cwd=work)
    first, answer = seen.document["output"].splitlines()
    assert first.split()[1] == "a.test"
    assert json.loads(answer)["host"] == "a.test" and json.loads(answer)["error"] == "upstream-failed"
    assert seen.document["notes"] == []


@as_root
def test_the_output_without_json_goes_through(doorward: Any, work: Path) -> None:
    seen = doorward("run", "--user", NAME, "--", "sh", "-c", "echo out > /dev/stdout; echo err > /dev/stderr", cwd=work)
    assert (seen.status, seen.out, seen.err) == (0, b"out\n", "err\n")


@as_root
def test_a_number_names_the_user_too_and_the_starters_own_name_changes_nothing(doorward: Any, work: Path) -> None:
    uid = pwd.getpwnam(NAME).pw_uid
    assert doorward("run", "--user", str(uid), "--", "id", "-u", cwd=work).out == f"{uid}\n".encode()
    own = doorward("run", "--user", "root", "--", "sh", "-c", "id -u; echo $HOME", cwd=work)
    assert own.out.decode().split() == ["0", doorward.env["HOME"]]


@as_root
def test_the_bypass_flag_keeps_the_user(doorward: Any, work: Path) -> None:
    script = "id -u; id -un; echo x > made"
    seen = doorward(
        "run", "--dangerously-bypass-approvals-and-sandbox", "--user", NAME, "--", "sh", "-c", script, cwd=work
    )
    user = pwd.getpwnam(NAME)
    assert seen.out.decode().split() == [str(user.pw_uid), NAME]
    assert (work / "made").stat().st_uid == user.pw_uid


@as_root
def test_a_library_session_runs_every_command_as_the_user(doorward: Any, work: Path) -> None:
    code = (
        "import json, doorward\n"
        f"with doorward.open_session(user={NAME!r}, network='off') as session:\n"
        "    seen = [session.exec(['sh', '-c', 'id -un; cat'], input='in').output for _ in range(2)]\n"
        "print(json.dumps(seen))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=work, env=doorward.env, capture_output=True, timeout=60, check=False
    )
    assert json.loads(done.stdout) == [f"{NAME}\nin"] * 2, done.stderr


@pytest.mark.parametrize("name", ["no-such-user-here", "4294967295", "", "99999999999999999999"])
def test_a_user_that_does_not_exist_is_a_usage_error(doorward: Any, name: str) -> None:
    seen = doorward("run", "--user", name, "--", "sh", "-c", "echo x > ran")
    assert seen.status == 2
    assert "no such user" in seen.err
    assert not (doorward.workspace / "ran").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may become another user")
def test_an_ordinary_user_is_told_to_start_as_root(doorward: Any) -> None:
    seen = doorward("run", "--user", NAME, "--", "true")
    assert seen.status == 125
    assert f"sudo doorward run --user {NAME}" in seen.err

"""`doorward doctor`: what it says is what a run would find."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any


def test_where_runs_are_enforced_it_says_so(doorward: Any) -> None:
    assert doorward("run", "--", "true").status == 0
    seen = doorward("doctor", "--json")
    assert seen.status == 0, seen.out
    found = {check["name"]: check["ok"] for check in seen.document["checks"]}
    for layer in ("bubblewrap", "filesystem", "network", "process", "syscalls", "configuration"):
        assert found[layer] is True
    assert "fully enforced" in doorward("doctor").out.decode()


def test_where_they_are_not_it_names_the_remedy(doorward: Any) -> None:
    """The binary is covered in a mount namespace of the test's own."""
    cover = f'mount --bind /dev/null {shutil.which("bwrap")} && exec "$@"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", cover, "sh", *doorward.argv("doctor", "--json")],
        cwd=doorward.workspace, env=doorward.env, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 125
    document = json.loads(done.stdout)
    (bad,) = [check for check in document["checks"] if check["ok"] is False]
    assert "bubblewrap" in bad["found"]
    assert "apt install bubblewrap" in bad["remedy"]


def test_a_broken_configuration_is_a_finding(doorward: Any) -> None:
    doorward.home.mkdir(mode=0o700)
    (doorward.home / "config.toml").write_text("[network\n")
    seen = doorward("doctor", "--json")
    assert seen.status == 125
    (bad,) = [check for check in seen.document["checks"] if check["ok"] is False]
    assert bad["name"] == "configuration"
    assert "config.toml" in bad["found"]

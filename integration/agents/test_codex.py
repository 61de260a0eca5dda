"""The real Codex, driven by a model that the test writes: its commands go through doorward, and it goes on after each.

Codex is no part of the project and is not installed for it. Where it is not there, the formats are held by
tests/doorward/agents, which has events that codex 0.171 wrote.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from integration.agents.conftest import Place
from integration.agents.model_stub import ModelStub, patch, shell

CODEX = os.environ.get("DOORWARD_TEST_CODEX") or shutil.which("codex")
pytestmark = pytest.mark.skipif(CODEX is None, reason="no codex on PATH, and DOORWARD_TEST_CODEX names none")

MODEL = "gpt-5.5"
"""One that this Codex knows, so that it offers the model its patch tool."""

_CONFIG = """
model = "{model}"
model_provider = "stub"
[model_providers.stub]
name = "stub"
base_url = "{url}"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0
"""


def _codex(place: Place, stub: ModelStub, *options: str) -> str:
    assert CODEX is not None
    home = place.base / "codex"
    home.mkdir()
    (home / "config.toml").write_text(_CONFIG.format(model=MODEL, url=stub.url))
    place.env["CODEX_HOME"] = str(home)
    installed = place.doorward("hook", "install", "codex", "--user", *options)
    assert installed.returncode == 0, installed.stderr
    done = place.run(
        CODEX, "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust",
        "--dangerously-bypass-approvals-and-sandbox", "-C", str(place.project), "do it",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_codex_goes_on_after_every_refusal_and_show_tells_the_story(place: Place) -> None:
    rules = Path(place.home, "rules")
    rules.mkdir(mode=0o700)
    (rules / "house.rules").write_text(
        'prefix_rule(pattern=["git", "push"], decision="forbidden", justification="releases go through CI")\n'
    )
    script = [
        shell("allowed", "echo hello > made.txt && cat made.txt"),
        shell("host", "curl -sS http://b.test/"),
        shell("forbidden", "git push origin main"),
        shell("write", "touch /opt/not-here"),
        patch("patched", "*** Begin Patch\n*** Add File: notes.txt\n+hi\n*** End Patch\n"),
        patch("outside", "*** Begin Patch\n*** Add File: ../outside.txt\n+hi\n*** End Patch\n"),
        shell("after", "echo still here"),
    ]
    with ModelStub(script) as stub:
        _codex(place, stub, "--allow", "a.test")
    told = stub.outputs()
    assert len(stub.requests) == len(script) + 1
    assert "hello" in told["allowed"]
    assert (place.project / "made.txt").read_text() == "hello\n"
    assert "not_allowed" in told["host"]
    assert "releases go through CI" in told["forbidden"]
    assert "Read-only file system" in told["write"] or "Permission denied" in told["write"]
    assert not Path("/opt/not-here").exists()
    assert (place.project / "notes.txt").read_text() == "hi\n"
    assert "outside the workspace" in told["outside"]
    assert not (place.base / "outside.txt").exists()
    assert "still here" in told["after"]

    [session] = place.sessions()
    assert session["name"].startswith("codex:")
    assert place.doorward("verify", session["id"]).returncode == 0
    shown = place.doorward("show", session["name"]).stdout
    for part in ("echo hello > made.txt", "b.test:80", "git push origin main", "/opt/not-here", "notes.txt",
                 "../outside.txt", "still here", "do it"):  # fmt: skip
        assert part in shown, part
    assert session["refused"] >= 3
    assert "agent_went_round" not in place.doorward("show", "--json", session["id"]).stdout


def test_a_hook_that_is_gone_opens_nothing(place: Place) -> None:
    """The command that `install` writes ends with a no where doorward is not there any more."""
    with ModelStub([shell("c1", "touch ran.txt")]) as stub:
        home = place.base / "codex"
        place.env["CODEX_HOME"] = str(home)
        assert place.doorward("hook", "install", "codex").returncode == 0
        hooks = home / "hooks.json"
        hooks.write_text(hooks.read_text().replace(" -m doorward", " -m doorward_gone"))
        (home / "config.toml").write_text(_CONFIG.format(model=MODEL, url=stub.url))
        assert CODEX is not None
        place.run(
            CODEX, "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust",
            "--dangerously-bypass-approvals-and-sandbox", "-C", str(place.project), "do it",
        )  # fmt: skip
    assert "nothing runs" in stub.outputs()["c1"]
    assert not (place.project / "ran.txt").exists()

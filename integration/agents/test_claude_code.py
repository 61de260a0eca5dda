"""The real Claude Code, driven by a model that the test writes, in a network namespace with nothing but loopback.

Claude Code is no part of the project and is not installed for it. Where it is not there, the formats are held by
tests/doorward/agents. Seen with 2.1.197 and 2.1.332.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from integration.agents import messages_stub
from integration.agents.conftest import Place

CLAUDE = os.environ.get("DOORWARD_TEST_CLAUDE") or shutil.which("claude")
pytestmark = pytest.mark.skipif(CLAUDE is None, reason="no claude on PATH, and DOORWARD_TEST_CLAUDE names none")


def bash(call: str, command: str) -> list[Any]:
    return ["Bash", call, {"command": command, "description": "what the model wants"}]


def _claude(place: Place, script: list[list[Any]], mode: str = "bypassPermissions") -> dict[str, Any]:
    """What became of one `claude -p` that was told to do as the script says."""
    assert CLAUDE is not None
    steps, log = place.base / "script.json", place.base / "log.json"
    steps.write_text(json.dumps(script))
    alone = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    done = place.run(
        *alone, sys.executable, messages_stub.__file__, str(steps), str(log),
        CLAUDE, "-p", "do it", "--permission-mode", mode,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1", IS_SANDBOX="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(log.read_text())
    assert told["status"] == 0, told
    return told


def test_claude_code_goes_on_after_every_refusal_and_show_tells_the_story(place: Place) -> None:
    rules = Path(place.home, "rules")
    rules.mkdir(mode=0o700)
    (rules / "house.rules").write_text(
        'prefix_rule(pattern=["git", "push"], decision="forbidden", justification="releases go through CI")\n'
    )
    installed = place.doorward("hook", "install", "claude-code", "--project", "--allow", "a.test")
    assert installed.returncode == 0, installed.stderr
    outside = place.base / "outside.txt"
    script = [
        bash("allowed", "echo hello > made.txt && cat made.txt"),
        bash("host", "curl -sS http://b.test/; exit 3"),
        bash("forbidden", "git push origin main"),
        bash("write", "touch /opt/not-here"),
        ["Write", "written", {"file_path": str(place.project / "notes.txt"), "content": "hi\n"}],
        ["Write", "refused", {"file_path": str(outside), "content": "hi\n"}],
        bash("after", "echo still here"),
    ]
    told = _claude(place, script)["tools"]
    assert list(told) == [step[1] for step in script], "it goes on after each"
    assert "hello" in told["allowed"] and (place.project / "made.txt").read_text() == "hello\n"
    assert "not_allowed" in told["host"] and "to allow it: --allow b.test" in told["host"]
    assert "releases go through CI" in told["forbidden"]
    assert "Read-only file system" in told["write"] and not Path("/opt/not-here").exists()
    assert (place.project / "notes.txt").read_text() == "hi\n"
    assert "outside the workspace" in told["refused"] and not outside.exists()
    assert "still here" in told["after"]
    assert "ANTHROPIC_API_KEY" not in json.dumps(told), "of what it did not ask for an agent hears nothing"

    [session] = place.sessions()
    assert session["name"].startswith("claude-code:") and session["refused"] >= 3
    assert place.doorward("verify", session["id"]).returncode == 0
    shown = place.doorward("show", session["name"]).stdout
    for part in ("do it", "echo hello > made.txt", "b.test:80", "git push origin main", "/opt/not-here", "notes.txt",
                 "outside.txt", "still here"):  # fmt: skip
        assert part in shown, part
    lines = [json.loads(line) for line in place.doorward("show", "--json", session["id"]).stdout.splitlines()]
    after = {line["payload"]["call_id"] for line in lines if line["payload"].get("type") == "function_call_output"}
    assert {"allowed", "host", "write", "after"} <= after, "of a command that failed the hook hears too"
    assert "agent_went_round" not in json.dumps(lines)


@pytest.mark.parametrize("how", ["gone", "hangs"])
def test_a_hook_that_does_not_answer_opens_nothing(place: Place, how: str) -> None:
    """The command that `install` writes ends with a no where doorward is gone; `onFailure` holds where it hangs."""
    assert place.doorward("hook", "install", "claude-code", "--project").returncode == 0
    settings = place.project / ".claude" / "settings.local.json"
    text = settings.read_text()
    if how == "gone":
        text = text.replace(" -m doorward", " -m doorward_gone")
    else:
        document = json.loads(text)
        (entry,) = document["hooks"]["PreToolUse"][0]["hooks"]
        assert entry["onFailure"] == "block"
        entry |= {"command": "exec sleep 600", "timeout": 1}
        version = place.run(str(CLAUDE), "--version").stdout.split()[0]
        if tuple(map(int, version.split("."))) < (2, 1, 295):
            pytest.skip(f"Claude Code {version} does not know onFailure")
        text = json.dumps(document)
    settings.write_text(text)
    told = _claude(place, [bash("c1", "touch ran.txt")])["tools"]
    assert not (place.project / "ran.txt").exists()
    assert how == "hangs" or "nothing runs" in told["c1"]

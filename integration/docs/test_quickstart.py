"""docs/quickstart.md, followed word by word: every block of commands, in order, in a project of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "quickstart.md").read_text()
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_every_block_works_in_order(tmp_path: Path) -> None:
    project, tools = tmp_path / "project", tmp_path / "bin"
    for folder in (project, tools, tmp_path / "home"):
        folder.mkdir()
    (project / "package.json").write_text("{}")
    (project / "my.secret").write_text("hunter2\n")
    (tools / "doorward").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m doorward "$@"\n')
    (tools / "doorward").chmod(0o755)
    env = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "LANG": "C.UTF-8",
        "DOORWARD_HOME": str(tmp_path / "doorward"),
    }
    said = ""
    for block in (text for kind, text in FENCED if kind == "sh"):
        for line in block.splitlines():
            done = subprocess.run(
                ["bash", "-c", line], cwd=project, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=120, check=False,
            )  # fmt: skip
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            said += done.stdout + done.stderr
    # what the page shows is what was printed
    for shown in (text for kind, text in FENCED if not kind):
        assert shown in said
    assert '"hint": "--allow example.com"' in said and "hunter2" not in said and said.count("refused\n") >= 2
    assert (project / ".doorward" / "config.toml").exists() and not (tmp_path / "home" / "outside.txt").exists()


def test_the_pages_it_leads_to_are_there() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name} links to {link}"

"""`doorward export --html`, read by a real browser: Chromium, headless, with scripts off and nothing to fetch."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

DEADLINE = 120
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
def browser() -> str:
    """Its path. In CI it must be there."""
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no chromium: ./install.sh --dev installs it")
        pytest.skip("no chromium")
    return CHROMIUM


def opened(browser: str, page: Path, folder: Path, *options: str) -> bytes:
    """What Chromium prints for a page."""
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}", *options,
         page.as_uri()],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE, check=True,
    )  # fmt: skip
    return done.stdout


def test_a_browser_shows_it(doorward: Any, browser: str, tmp_path: Path) -> None:
    evil = "<script>document.title = 'owned'</script>"
    doorward("run", "--name", "nightly", "--", "echo", evil)
    doorward("run", "--session", "nightly", "--", "curl", "-sS", "http://b.test/")
    page = tmp_path / "page.html"
    assert doorward("export", "nightly", "--html", "-o", str(page)).status == 0
    assert page.stat().st_mode & 0o777 == 0o600
    dom = opened(browser, page, tmp_path, "--dump-dom").decode()
    assert "<title>nightly</title>" in dom
    assert "document.title = 'owned'" in dom
    assert dom.count("<section") == 2
    assert "b.test:80" in dom
    picture = tmp_path / "page.png"
    opened(browser, page, tmp_path, f"--screenshot={picture}", "--window-size=900,1200")
    assert picture.stat().st_size > 10_000


def test_where_it_goes(doorward: Any, tmp_path: Path) -> None:
    session = doorward("run", "--json", "--", "true").document["session"]
    shown = doorward("export", session, "--html")
    assert shown.out.startswith(b"<!doctype html>")
    page = tmp_path / "page.html"
    page.write_text("mine")
    assert doorward("export", session, "--html", "-o", str(page)).status == 2
    assert page.read_text() == "mine"
    assert doorward("export", session).status == 2
    assert doorward("export", "nobody", "--html").status == 2

"""Programs that tests need: where one is missing the test is skipped and says why, and in CI that is a failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Container

import pytest


def need(*programs: str, must: Container[str] | None = None, path: str | None = None) -> str:
    """The path of the first of these programs, all of which are there. With CI=true those in `must` may not be
    missing; None: none may."""
    found = {program: shutil.which(program, path=path) for program in programs}
    missing = [program for program in programs if found[program] is None]
    required = [program for program in missing if must is None or program in must]
    if required and os.environ.get("CI") == "true":
        pytest.fail(f"CI must have {', '.join(required)}; install.sh --dev installs them")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    return str(found[programs[0]])

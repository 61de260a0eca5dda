"""A dial in its middle position and plain commands for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.dial import Dial

WORKSPACE = "/srv/project"
PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.fixture
def dial() -> Dial:
    """workspace-write, on-request, nothing trusted, nothing allowed."""
    return Dial(workspace=WORKSPACE)


@pytest.fixture
def shell() -> Callable[..., Action]:
    """`shell("rm", "-rf", "build")`: a shell action in the workspace; keywords go to Action."""

    def make(*argv: str, **fields: object) -> Action:
        return Action(**{"kind": "shell", "argv": argv, "cwd": WORKSPACE, "env": PATH, **fields})  # type: ignore[arg-type]

    return make

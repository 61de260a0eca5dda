"""An approval covers exactly what was shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.approval_key import approval_key
from doorward.gates.dial import Dial

Shell = Callable[..., Action]


@pytest.mark.parametrize(
    "other",
    [
        {"argv": ("npm", "run", "lint")},
        {"argv": ("npm", "run test")},
        {"cwd": "/srv/other"},
        {"writes": ("a",)},
        {"network_to": (("a.test", 443),)},
        {"needs_feature": "f"},
        {"kind": "hook"},
    ],
)
def test_what_differs_has_another_key(dial: Dial, shell: Shell, other: dict[str, object]) -> None:
    """P-AP-20, P-AP-21"""
    action = shell("npm", "run", "test")
    assert approval_key(dial, action._replace(**other)) != approval_key(dial, action)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other", [{"sandbox_mode": "danger-full-access"}, {"writable_roots": ("/x",)}, {"network": "full"}]
)
def test_other_permissions_have_another_key(dial: Dial, shell: Shell, other: dict[str, object]) -> None:
    assert approval_key(dial._replace(**other), shell("ls")) != approval_key(dial, shell("ls"))  # type: ignore[arg-type]


def test_what_is_the_same_has_the_same_key(dial: Dial, shell: Shell) -> None:
    """P-AP-21: another spelling of the folder, another order of the grants."""
    one = dial._replace(writable_roots=("/x", "/y"), network="proxied")
    two = dial._replace(writable_roots=("/y", "/x", "/x"))
    assert approval_key(one, shell("ls")) == approval_key(two, shell("ls", cwd="/srv/project/."))


@pytest.mark.parametrize("shell_words", [("bash", "-lc"), ("/bin/sh", "-c"), ("zsh", "-lc")])
def test_a_wrapped_form_has_the_key_of_the_command(dial: Dial, shell: Shell, shell_words: tuple[str, str]) -> None:
    """P-AP-21"""
    assert approval_key(dial, shell(*shell_words, "npm run test")) == approval_key(dial, shell("npm", "run", "test"))
    for other in ("npm run test; rm x", "npm run lint", "npm run test $X"):
        assert approval_key(dial, shell(*shell_words, other)) != approval_key(dial, shell("npm", "run", "test"))


def test_another_path_to_find_the_program_on_has_another_key(dial: Dial, shell: Shell) -> None:
    """P-AP-18"""
    planted = shell("git", "status", env={"PATH": ".:/usr/bin"})
    assert approval_key(dial, planted) != approval_key(dial, shell("git", "status"))

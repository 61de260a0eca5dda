"""The action's inputs as options of `doorward run`."""

from __future__ import annotations

import pytest

from doorward.ci_step import run_words
from doorward.errors import UsageError

BASE = {"DOORWARD_STEP_RUN": "make\nmake test\n"}
TAIL = ["--", "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", "make\nmake test\n"]


def test_the_script_is_one_argument_and_nobody_is_asked() -> None:
    assert run_words(BASE, {}, "s") == ["--name", "s", "-a", "never", *TAIL]


def test_rules_are_words_of_any_lines() -> None:
    inputs = {**BASE, "DOORWARD_STEP_ALLOW": "@pip\n  example.test:8443 b.test\n", "DOORWARD_STEP_DENY": "bad.test"}
    assert run_words(inputs, {}, "s")[4:-8] == [
        "--allow", "@pip", "--allow", "example.test:8443", "--allow", "b.test", "--deny", "bad.test",
    ]  # fmt: skip


def test_observing_failing_and_further_options() -> None:
    inputs = {
        **BASE,
        "DOORWARD_STEP_MODE": "observe",
        "DOORWARD_STEP_FAIL_ON_DENY": "true",
        "DOORWARD_STEP_OPTIONS": "--deny-read '~/.my keys'",
    }
    assert run_words(inputs, {}, "s")[4:-8] == ["--observe", "--fail-on-deny", "--deny-read", "~/.my keys"]


def test_the_step_may_write_its_outputs_and_not_what_the_next_step_runs_with() -> None:
    env = {"GITHUB_OUTPUT": "/t/output", "GITHUB_ENV": "/t/env", "GITHUB_PATH": "/t/path"}
    assert run_words(BASE, env, "s")[4:-8] == ["--add-dir", "/t/output"]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "`run` is empty"),
        ({"DOORWARD_STEP_RUN": "  \n"}, "`run` is empty"),
        ({**BASE, "DOORWARD_STEP_MODE": "audit"}, "`mode` is enforce or observe"),
        ({**BASE, "DOORWARD_STEP_FAIL_ON_DENY": "yes"}, "`fail-on-deny` is true or false"),
    ],
)
def test_an_input_that_cannot_be_used_is_named(inputs: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run_words(inputs, {}, "s")

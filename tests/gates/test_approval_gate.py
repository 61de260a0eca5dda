"""Gate 5: which policy asks about what."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.gates.resolver import resolve

Shell = Callable[..., Action]


@pytest.mark.parametrize(
    ("argv", "never", "on_failure", "on_request", "untrusted"),
    [
        (("ls",), "allow", "allow", "allow", "allow"),
        (("make",), "allow", "allow", "allow", "ask"),
        (("touch", "a"), "allow", "allow", "allow", "ask"),
        (("rm", "-rf", "build"), "allow", "allow", "ask", "ask"),
        (("cat", "/home/u/.ssh/id_ed25519"), "allow", "allow", "ask", "ask"),
        (("sh", "-c", "ls"), "allow", "allow", "allow", "allow"),
        (("sh", "-c", "ls; make"), "allow", "allow", "allow", "ask"),
        (("sh", "-c", "ls; rm -rf build"), "allow", "allow", "ask", "ask"),
    ],
)
def test_who_is_asked(
    dial: Dial, shell: Shell, argv: tuple[str, ...], never: str, on_failure: str, on_request: str, untrusted: str
) -> None:
    verdicts = [
        resolve(dial._replace(approval_policy=policy), shell(*argv)).verdict
        for policy in ("never", "on-failure", "on-request", "untrusted")
    ]
    assert verdicts == [never, on_failure, on_request, untrusted]


def test_an_ask_names_its_switch_its_reason_and_what_would_change_it(dial: Dial, shell: Shell) -> None:
    reason = resolve(dial, shell("git", "push", "--force")).deciding
    assert reason.switch == "approval_policy=on-request"
    assert "git push --force rewrites or drops history" in reason.sentence
    assert reason.remedy == "-a never"


def test_many_risks_are_counted_not_listed(dial: Dial, shell: Shell) -> None:
    hosts = tuple((f"h{number}.test", 443) for number in range(9))
    assert resolve(dial, shell("curl", network_to=hosts)).deciding.sentence.count("it connects") == 3

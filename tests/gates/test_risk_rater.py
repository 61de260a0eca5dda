"""The built-in reviewer: the same answer every time, strict where the harm is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.gates.known_commands import RISKY
from doorward.gates.resolver import resolve
from doorward.gates.review import ReviewStatus
from doorward.gates.risk_rater import POINTS, rate

Shell = Callable[..., Action]


@pytest.mark.parametrize(
    ("argv", "verdict"),
    [
        (("rm", "-rf", "build"), "allow"),
        (("rm", "old.txt"), "allow"),
        (("rm", "-rf", "."), "ask"),
        (("rm", "-rf", ".git/"), "ask"),
        (("rm", "-rf", "*"), "ask"),
        (("git", "reset", "--hard"), "ask"),
        (("git", "push", "--force"), "ask"),
        (("npm", "publish"), "deny"),
        (("sudo", "id"), "deny"),
        (("cat", "/home/u/.ssh/id_ed25519"), "deny"),
        (("ls",), "allow"),
    ],
)
def test_small_harm_is_allowed_and_great_harm_denied(
    dial: Dial, shell: Shell, argv: tuple[str, ...], verdict: str
) -> None:
    rated = dial._replace(approval_policy="never", features=frozenset({"guardian_approval"}), reviewer=rate)
    found = resolve(rated, shell(*argv))
    assert (found.verdict, resolve(rated, shell(*argv))) == (verdict, found)
    if verdict != "allow":
        assert (found.gate, found.deciding.switch) == ("guardian", "guardian.rater")


def test_points_add_up(shell: Shell) -> None:
    one = rate(shell("x"), ("it writes to /data, outside the workspace",))
    assert one.status is ReviewStatus.UNSURE and one.reason.startswith("5 points: ")
    both = ("it writes to /data, outside the workspace", "it connects to b.test:80, which is not in the allowlist")
    assert rate(shell("x"), both).status is ReviewStatus.DENIED
    assert rate(shell("x"), ("something nobody has thought of",)).status is ReviewStatus.UNSURE


def test_every_kind_of_risk_there_is_has_its_points() -> None:
    known = {risk.because for risks in RISKY.values() for risk in risks}
    assert {because for because in known if not because.endswith(tuple(POINTS))} == set()

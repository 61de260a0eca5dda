"""Gate 4 in its corners: which writes count, and what each deny says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.gates.resolver import resolve
from doorward.gates.verdict import Cause, Effect, Gate, Reason

Shell = Callable[..., Action]


def sandbox_reasons(dial: Dial, action: Action) -> list[Reason]:
    return [reason for reason in resolve(dial, action).reasons if reason.gate is Gate.SANDBOX]


@pytest.mark.parametrize(
    "target",
    ["build/x", "sub/../x", "/srv/project/x", "/tmp/x", "/dev/shm/x", "/dev/null", "/dev/fd/1", "/dev/stderr"],
)
def test_writes_that_workspace_write_holds_without_asking(dial: Dial, shell: Shell, target: str) -> None:
    assert resolve(dial, shell("tee", target)).verdict == "allow"


@pytest.mark.parametrize("target", ["../x", "/srv/project2/x", "/tmpx", "/", "/dev/sda", "/dev/nullx"])
def test_writes_outside(dial: Dial, shell: Shell, target: str) -> None:
    verdict = resolve(dial, shell("tee", target))
    assert (verdict.verdict, verdict.deciding.cause) == ("deny", Cause.WRITE_OUTSIDE)
    assert resolve(dial, shell("make", writes=(target,))).deciding.cause is Cause.WRITE_OUTSIDE


def test_a_link_counts_where_it_leads(dial: Dial, shell: Shell) -> None:
    linked = dial._replace(canonical=lambda path: path.replace("/srv/project/link", "/etc"))
    assert resolve(linked, shell("tee", "link/hosts")).gate == "sandbox"


def test_the_remedy_can_be_pasted_into_a_shell(dial: Dial, shell: Shell) -> None:
    assert resolve(dial, shell("tee", "/etc/a b/c")).deciding.remedy == "--add-dir '/etc/a b'"
    assert resolve(dial, shell("tee", "/hosts")).deciding.remedy == "--add-dir /hosts"


def test_read_only_with_a_folder_granted_by_name(dial: Dial, shell: Shell) -> None:
    read_only = dial._replace(sandbox_mode="read-only", writable_roots=("/data",), approval_policy="never")
    assert resolve(read_only, shell("tee", "/data/x")).verdict == "allow"
    denied = resolve(read_only, shell("tee", "/etc/x")).deciding
    assert denied.remedy == "-s workspace-write --add-dir /etc/x"


def test_danger_full_access_has_no_boundary_but_risk_remains(dial: Dial, shell: Shell) -> None:
    danger = dial._replace(sandbox_mode="danger-full-access")
    assert resolve(danger, shell("tee", "/etc/hosts")).verdict == "ask"
    assert resolve(danger._replace(approval_policy="never"), shell("tee", "/etc/hosts")).verdict == "allow"
    assert sandbox_reasons(danger, shell("make"))[0].effect is Effect.PASS


@pytest.mark.parametrize("mode", ["read-only", "workspace-write", "danger-full-access"])
def test_closed_paths_and_doorwards_own_folder_stay_closed_in_every_mode(dial: Dial, shell: Shell, mode: str) -> None:
    closed = dial._replace(
        sandbox_mode=mode,
        read_only=("/srv/project/vendor",),
        hidden=("/srv/project/secret",),
        home="/home/u/.doorward",
        writable_roots=("/home/u",),
    )
    vendor = resolve(closed, shell("tee", "vendor/x")).deciding
    assert (vendor.switch, vendor.cause) == ("filesystem.read_only=/srv/project/vendor", Cause.WRITE_PROTECTED)
    assert vendor.remedy == "--add-dir /srv/project/vendor/x"
    assert resolve(closed, shell("tee", "secret")).deciding.switch == "filesystem.deny_read=/srv/project/secret"
    assert resolve(closed, shell("tee", "secret")).deciding.remedy == ""
    assert resolve(closed, shell("tee", "/home/u/.doorward/config.toml")).deciding.cause is Cause.WRITE_PROTECTED


def test_a_folder_added_inside_the_workspace_is_not_outside_it(dial: Dial, shell: Shell) -> None:
    assert resolve(
        dial._replace(writable_roots=("/srv/project/.git/hooks",)), shell("tee", ".git/hooks/x")
    ).verdict == ("allow")


@pytest.mark.parametrize(
    ("network", "effect"), [("off", Effect.LEFT_TO_KERNEL), ("proxied", Effect.LEFT_TO_PROXY), ("full", Effect.PASS)]
)
def test_undeclared_network_is_left_to_whoever_holds_it(dial: Dial, shell: Shell, network: str, effect: Effect) -> None:
    assert sandbox_reasons(dial._replace(network=network), shell("curl", "http://b.test"))[-1].effect is effect


def test_the_network_follows_the_sandbox_unless_given(dial: Dial, shell: Shell) -> None:
    action = shell("ls", network_to=(("::1", 80),))
    read_only = dial._replace(sandbox_mode="read-only")
    assert resolve(read_only, action).deciding.switch == "sandbox_mode=read-only"
    assert resolve(read_only, action).deciding.remedy == "--network proxied --allow [::1]:80"
    assert resolve(dial._replace(network="off"), action).deciding.switch == "network.mode=off"
    assert resolve(read_only._replace(network="proxied"), action).verdict == "ask"


def test_declared_network_within_the_allowlist_is_not_risky(dial: Dial, shell: Shell) -> None:
    action = shell("curl", network_to=(("a.test", 443),))
    assert resolve(dial._replace(decide_host=lambda host, port: "allow"), action).verdict == "allow"


@pytest.mark.parametrize("answer", ["ask", "deny", "no such answer"])
def test_declared_network_beyond_the_allowlist_is_risky(dial: Dial, shell: Shell, answer: str) -> None:
    verdict = resolve(dial._replace(decide_host=lambda host, port: answer), shell("x", network_to=(("a.test", 1),)))
    assert (verdict.verdict, verdict.deciding.cause) == ("ask", Cause.RISKY)


@pytest.mark.parametrize("mode", ["workspace-write", "read-only"])
@pytest.mark.parametrize("path", ["/", "/etc", "/etc/", "/dev/sda", "/proc/1/mem", "/sys/x", "/usr"])
def test_no_option_is_advised_that_would_not_open_it(dial: Dial, shell: Shell, mode: str, path: str) -> None:
    """The launcher refuses a system folder, and all of the kernel's, as something to write to."""
    verdict = resolve(dial._replace(sandbox_mode=mode), shell("tee", path))
    assert (verdict.verdict, verdict.gate, verdict.deciding.remedy) == ("deny", "sandbox", "")
    assert "no option opens it" in verdict.deciding.sentence

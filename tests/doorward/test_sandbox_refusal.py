"""What a refusal of the sandbox says, and the option that would allow it."""

import pytest

from doorward.launcher.interface import Denied, Mode, SandboxPolicy, Undone
from doorward.sandbox_refusal import refusal_of_denied, refusal_of_undone
from doorward.summary import summarize

POLICY = SandboxPolicy(Mode.WORKSPACE_WRITE, "/w", "/h", "/c", read_only=("kept", "/w/also"))


@pytest.mark.parametrize(
    ("denied", "reason", "hint"),
    [
        (Denied("/srv/x", "write", "outside", "/srv"), "outside_path", "--add-dir /srv"),
        (Denied("/w/.git/hooks/x", "write", "protected", "/w/.git/hooks"), "protected_path", "--add-dir /w/.git/hooks"),
        (Denied("/w/kept/x", "remove", "protected", "/w/kept"), "protected_path", "leave out --read-only /w/kept"),
        (Denied("/w/also", "remove", "protected", "/w/also"), "protected_path", "leave out --read-only /w/also"),
        (Denied("/w/a", "read", "hidden", "/w/a"), "hidden_path", "leave out the --deny-read that matches /w/a"),
        (Denied("/run/lock/x", "write", "private", "/run/lock"), "private_path", "--add-dir /run/lock"),
        (Denied("/run/a.sock", "connect", "socket", "/run/a.sock"), "socket_not_allowed", "--allow-unix /run/a.sock"),
        (Denied("/a b/x", "mkdir", "outside", "/a b"), "outside_path", "--add-dir '/a b'"),
        # in a workspace that may only be read
        (Denied("/w/x", "write", "outside", "/w"), "outside_path", "-s workspace-write"),
        # nothing grants these
        (Denied("/proc/sys/kernel/x", "write", "outside", "/proc/sys/kernel"), "outside_path", ""),
        # a system folder as a whole is never writable, a file in it can be
        (Denied("/etc/no/such", "write", "outside", "/etc"), "outside_path", ""),
        (Denied("/etc/passwd", "write", "outside", "/etc"), "outside_path", "--add-dir /etc/passwd"),
        (Denied("/etc/passwd", "remove", "outside", "/etc"), "outside_path", ""),
    ],
)
def test_reason_and_hint(denied: Denied, reason: str, hint: str) -> None:
    refusal = refusal_of_denied(denied, POLICY)
    assert (refusal["reason"], refusal["hint"]) == (reason, hint)
    assert refusal["class"] == "blocked-by-sandbox"
    assert (refusal["path"], refusal["operation"]) == (denied.path, denied.operation)
    assert str(refusal["message"]).startswith(f"{denied.path} ")
    assert denied.operation in str(refusal["message"])


def test_every_refusal_of_the_sandbox_has_the_same_keys() -> None:
    denied = refusal_of_denied(Denied("/etc/x", "write", "outside", "/etc"), POLICY)
    assert [*denied] == [*refusal_of_undone(Undone("/w/.codex", "removed"))]


def test_many_paths_that_one_grant_would_let_through_are_one_line() -> None:
    refusals = [refusal_of_denied(Denied(f"/srv/{n}", "write", "outside", "/srv"), POLICY) for n in range(30)]
    assert summarize(refusals) == [
        "doorward: refused 30 times",
        "  /srv/0  30x  lies outside of what may be written (write)",
        "    to allow it: --add-dir /srv",
    ]

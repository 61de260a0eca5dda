"""PowerShell and cmd: plain commands are read, anything else is not understood."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.command_knowledge import knowledge_of
from doorward.gates.unfolding import unfold

Shell = Callable[..., Action]


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("powershell.exe", "-NoProfile", "-Command", "Get-ChildItem; Remove-Item -Recurse x"),
         ["get-childitem", "remove-item -Recurse x"]),
        (("pwsh", "-c", "git push | Out-Null"), ["git push", "out-null"]),
        (("PowerShell", "-ExecutionPolicy", "Bypass", "git", "push"), ["git push"]),
        (("cmd", "/d", "/c", "dir && del x"), ["dir", "del x"]),
        (("cmd.exe", "/C", "git", "push"), ["git push"]),
        (("C:\\Windows\\System32\\cmd.exe", "/c", "rd /s x"), ["rd /s x"]),
    ],
)  # fmt: skip
def test_plain_commands_are_read(shell: Shell, argv: tuple[str, ...], expected: list[str]) -> None:
    found = unfold(shell(*argv))
    assert [part.text for part in found] == expected
    assert not any(part.doubt for part in found)


@pytest.mark.parametrize(
    "argv",
    [
        ("powershell", "-Command", "& $x"),
        ("powershell", "-Command", "iex (Get-Content x)"),
        ("pwsh", "-c", "Remove-Item `x"),
        ("pwsh", "-c", 'echo "$(rm x)"'),
        ("cmd", "/c", "echo %PATH%"),
        ("cmd", "/c", "d^el x"),
        ("cmd", "/c", "dir > x"),
        ("powershell", "-File", "x.ps1"),
        ("powershell",),
        ("pwsh", "-enc", "!!"),
        ("pwsh", "-c", "a'b'c"),
    ],
)
def test_anything_else_is_not_understood(shell: Shell, argv: tuple[str, ...]) -> None:
    assert any(part.doubt for part in unfold(shell(*argv)))
    assert not knowledge_of(shell(*argv), ()).read_only


def test_an_encoded_command_is_decoded_and_a_risk(shell: Shell) -> None:
    text = base64.b64encode("Remove-Item x".encode("utf-16-le")).decode()
    (part,) = unfold(shell("powershell", "-EncodedCommand", text))
    assert part.words == ("remove-item", "x")
    assert part.risks == ("powershell is given an encoded command",)


def test_their_risky_commands_are_known(shell: Shell) -> None:
    assert knowledge_of(shell("cmd", "/c", "DEL /q x"), ()).risks == ("del deletes for good",)
    assert knowledge_of(shell("powershell", "-c", "Format-Volume D"), ()).risks
    assert knowledge_of(shell("cmd", "/c", "reg delete HKLM"), ()).risks

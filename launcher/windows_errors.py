"""What Windows' error numbers mean at the start of a sandbox, a cause and a remedy each. Pure.

Numbers: winerror.h ("System Error Codes", learn.microsoft.com).
"""

from typing import Final

from doorward.launcher.interface import LaunchFailure, SandboxUnavailable


class ApiError(Exception):
    """A Windows call that failed: its name, and GetLastError's number."""

    def __init__(self, call: str, number: int) -> None:
        super().__init__(f"{call} failed with Windows error {number}")
        self.call = call
        self.number = number


_FILE_NOT_FOUND: Final = 2
_PATH_NOT_FOUND: Final = 3
_BAD_EXE_FORMAT: Final = 193
_DIRECTORY: Final = 267
_CANT_ACCESS_FILE: Final = 1920

_CAUSES: Final = {
    5: (
        "Windows refused access: a policy or a security product of this machine lets no restricted process start.",
        "Allow doorward and the program there; on a managed machine its administrator can.",
    ),
    740: (
        "The program asks for administrator rights, which nothing in a sandbox can have.",
        "Start it yourself, outside, or use a program that does not need them.",
    ),
    1312: (
        "The logon session of this process has ended, or never was a full one (a service, a remote shell).",
        "Log on at the machine and start doorward there.",
    ),
    1314: (
        "This account may not start a process with a restricted token (it lacks a privilege).",
        "Start doorward from an ordinary logon session of the user, not from a service.",
    ),
    1326: (
        "Windows did not accept the account's credentials: they have changed since it was logged on.",
        "Log off and on again.",
    ),
    1385: (
        "The account may not log on in the way that is asked for (a policy of this machine).",
        "Start doorward from an interactive session.",
    ),
    1909: (
        "The account is locked, after too many failed attempts to log on.",
        "Wait until it is unlocked, or have an administrator do it.",
    ),
}


def explain(error: ApiError) -> tuple[str, str]:
    """The sentence and the remedy for a failed call. A number nobody foresaw is told as it is, with its call."""
    sentence, remedy = _CAUSES.get(
        error.number, ("Windows did not do what the sandbox needs.", "Please report it with the version of Windows.")
    )
    return f"{sentence} ({error.call}, error {error.number})", remedy


def unavailable(error: ApiError) -> SandboxUnavailable:
    """A set-up that failed; nothing of the command ran."""
    return SandboxUnavailable(*explain(error))


def failure_of_start(error: ApiError, program: str) -> LaunchFailure:
    """Why CreateProcessAsUser did not start `program`."""
    if error.number in (_FILE_NOT_FOUND, _PATH_NOT_FOUND):
        return LaunchFailure("not-found", f"{program}: no such program.")
    if error.number == _DIRECTORY:
        return LaunchFailure("directory", "The working directory does not exist, or is no directory.")
    if error.number == _BAD_EXE_FORMAT:
        return LaunchFailure("not-executable", f"{program}: not a program for this Windows.")
    if error.number == _CANT_ACCESS_FILE:
        return store_alias(program)
    if error.number == 740:
        return LaunchFailure("not-executable", *explain(error))
    return LaunchFailure("sandbox", *explain(error))


def store_alias(program: str) -> LaunchFailure:
    """For a name that is only an alias of the Microsoft Store."""
    return LaunchFailure(
        "not-executable",
        f"{program} is an alias of the Microsoft Store, which a restricted process cannot start.",
        "Install the program itself (for PowerShell the MSI package), or name the .exe in its own folder.",
    )

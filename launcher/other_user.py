"""Asks whether a command can start with the rights of the user it is to run as, where root asks for another."""

import json
import os

from doorward.launcher.command_check import check_start
from doorward.launcher.identity import become
from doorward.launcher.interface import Command, Identity, LaunchFailure
from doorward.launcher.mounts import MountPlan


def check_start_as(user: Identity, command: Command, plan: MountPlan) -> LaunchFailure | None:
    """As `command_check.check_start`, in a child that is the user: group rights and access lists count as they do for
    the command."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer: object = ["sandbox", "What the user may reach could not be found out.", ""]
        try:
            os.chdir("/")
            become(user)
            answer = _look(user, command, plan)
        except OSError as error:
            answer = ["sandbox", f"No process can be made {user.name}'s: {error.strerror}.", _CONTAINER]
        finally:
            # the answer is far smaller than a pipe
            os.write(writer, json.dumps(answer).encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        text = answers.read()
    os.waitpid(child, 0)
    found = json.loads(text)
    return None if found is None else LaunchFailure(*found)


_CONTAINER = "In a container root needs the capabilities SETUID and SETGID, and the user must be mapped."


def _look(user: Identity, command: Command, plan: MountPlan) -> LaunchFailure | None:
    try:
        os.chdir(command.cwd)
        os.chdir("/")
    except PermissionError:
        return LaunchFailure(
            "directory",
            f"The working directory {command.cwd} cannot be entered by {user.name}.",
            f"Choose one that {user.name} can reach (-C DIR), or open the way to it.",
        )
    except OSError:
        pass  # the check says what is wrong with it
    return check_start(command, plan)

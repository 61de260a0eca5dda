"""Starts a command whose arguments and variables are more than bubblewrap takes (9000, all its options included).

They travel through a descriptor to a small Python inside, which becomes the command. The kernel's own limits
still hold. Costs one start of Python, so it is used only beyond that number.
"""

import json
import os
import sys

from doorward.launcher.interface import Command
from doorward.launcher.mounts import MountPlan

# Reads the descriptor named by its only argument, undoes what Python does to signals, and executes.
_CODE = """
import json, os, signal, sys
with os.fdopen(int(sys.argv[1]), "rb") as source:
    command = json.loads(source.read())
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
argv, env = command["argv"], command["env"]
try:
    try:
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        if error.errno != 8:
            raise
        os.execve("/bin/sh", ["/bin/sh", *argv], env)
except OSError as error:
    print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
    sys.exit(127 if error.errno == 2 else 126)
"""


def carrier(plan: MountPlan) -> list[str]:
    """The command that becomes another; the number of the descriptor is to be added. Empty if none is visible.

    The interpreter itself, not its virtual environment: only the standard library is needed.
    """
    for python in (os.path.realpath(sys.executable), os.path.realpath("/usr/bin/python3")):
        if os.access(python, os.X_OK) and plan.visible(python):
            return [python, "-I", "-S", "-c", _CODE]
    return []


def carried(command: Command) -> str:
    """What the descriptor holds. Bytes that are no text survive as lone surrogates."""
    env = {**command.env, "PWD": command.cwd}
    return json.dumps({"argv": command.argv, "env": env})

"""`doorward sessions seal-key FILE`: a key pair for environments that only its owner can read."""

from __future__ import annotations

import json
import os
import sys

from doorward.commands.named_session import store
from doorward.errors import UsageError
from doorward.options import HelpWanted, Option, help_text, parse

_OPTIONS = (Option("json", "one JSON document"),)


def main(args: list[str]) -> int:
    """Make the pair: the private key into FILE, the configuration for the public one to stdout."""
    try:
        parsed = parse("sessions seal-key", _OPTIONS, args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward sessions seal-key FILE",
                "Make a key pair. With the public key in the configuration, environments are recorded encrypted to it.",
                _OPTIONS,
                ("doorward sessions seal-key ~/offline/doorward.key >> ~/.doorward/config.toml",),
            )
        )
        return 0
    if len(parsed.words) != 1:
        raise UsageError("doorward sessions seal-key: name one new file, outside $DOORWARD_HOME")
    from doorward.sessions.sealing import SealError, new_key

    with store("sessions seal-key") as home:
        path = os.path.abspath(parsed.words[0])
        if f"{os.path.realpath(path)}/".startswith(f"{os.path.realpath(home.path)}/"):
            raise UsageError("doorward sessions seal-key: keep the key outside $DOORWARD_HOME, where what it opens is")
        try:
            public = new_key(path)
        except SealError as error:
            raise UsageError(f"doorward sessions seal-key: {error}") from None
    if parsed.has("json"):
        sys.stdout.write(json.dumps({"file": path, "public": public}) + "\n")
    else:
        sys.stdout.write(f'[replay]\nenv = "sealed"\nseal_to = "{public}"\n')
        sys.stderr.write(f"doorward: the private key is in {path}; without it nothing that is sealed can be read\n")
    return 0

"""`doorward verify SESSION`: is the rollout as it was written?"""

from __future__ import annotations

import os
import sys

from doorward.errors import EngineError, UsageError
from doorward.options import HelpWanted, help_text, parse
from doorward.sessions.home import Home, StoreError, default_home
from doorward.summary import printable


def main(args: list[str]) -> int:
    """Print the result. Returns 0 if intact, 1 with the first line that was changed, removed or reordered."""
    try:
        parsed = parse("verify", (), args)
    except HelpWanted:
        sys.stdout.write(
            help_text(
                "doorward verify SESSION",
                "Check a rollout against its own chain of hashes. Exit status 0 intact, 1 not.",
                (),
                ("doorward verify nightly",),
            )
        )
        return 0
    if len(parsed.words) != 1:
        raise UsageError("doorward verify: name one session, by its UUID or its name")
    from doorward.sessions.lookup import SessionLookupError, find_session
    from doorward.sessions.verify import verify

    try:
        home = Home(default_home(os.environ))
        result = verify(find_session(home, parsed.words[0]).path)
    except SessionLookupError as error:
        raise UsageError(f"doorward verify: {error.sentence}; {error.remedy}") from None
    except StoreError as error:
        raise EngineError(str(error)) from None
    sys.stdout.write(printable(result.sentence) + "\n")
    for note in result.notes:
        sys.stdout.write(printable(f"  {note}") + "\n")
    return 0 if result.intact else 1

"""The key an approval is kept under: exact, so that a yes never covers more than what was shown."""

import json

from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.gates.plain_script import unwrapped


def approval_key(dial: Dial, action: Action) -> str:
    """A text that is equal for two actions only if a person would call them the same: the full argv (that of the one
    plain command in `bash -lc`), the cwd, the PATH, and the permissions (sandbox, writable folders, network mode,
    declared writes and connections).

    The allowlist is not part of it: a yes to a command never opens the network, whatever it covers (P-PP-18).
    """
    return json.dumps(
        [
            str(action.kind),
            unwrapped(action.argv),
            action.env.get("PATH"),
            dial.canonical(action.cwd),
            str(dial.sandbox_mode),
            sorted({dial.canonical(folder) for folder in (dial.workspace, *dial.writable_roots)}),
            str(dial.network_mode),
            sorted(action.writes),
            sorted(action.network_to),
            action.needs_feature,
            action.hook_hash,
        ],
        separators=(",", ":"),
    )

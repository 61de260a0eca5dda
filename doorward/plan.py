"""What a session is, decided before it starts: the sandbox's policy and the proxy's settings.

What the gates and the rollout need besides is in `judgement.py`: it is made while the sandbox comes up, and importing
it is not on the way there.
"""

from __future__ import annotations

from doorward.configuration import Configuration
from doorward.launcher.interface import SandboxPolicy
from doorward.named_tuple import NamedTuple
from doorward.sessions.home import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from doorward.gates.policy_rules import Policy
    from doorward.inspection_settings import Inspection
    from doorward.other_user import OtherUser

PROXY_URL: Final = "http://127.0.0.1:3128"
"""Where the proxy listens in the sandbox's own network namespace. Fixed: the namespace holds nothing else."""


class Plan(NamedTuple):
    """Pure data. `proxy_settings` is what the proxy process is sent (allowlists/settings.py reads it); `session` is the
    path of a rollout to go on with, `agent` the agent's session whose first it is, `name` names a new one; `bypass` is
    the flag that skips approvals and sandbox, `bypass_hook_trust` the one that lets any hook run; `user` is whom
    commands run as, unless the caller; `policy` holds the exec policy, None where there is no rules file; `seal_to` is
    the key environments are sealed to."""

    home: Home
    configuration: Configuration
    sandbox: SandboxPolicy
    proxied: bool
    proxy_settings: Mapping[str, object]
    bypass: bool = False
    bypass_hook_trust: bool = False
    session: str | None = None
    agent: str | None = None
    name: str | None = None
    user: OtherUser | None = None
    seal_to: str | None = None
    notices: tuple[str, ...] = ()
    policy: Policy | None = None
    inspection: Inspection | None = None

    @property
    def sandbox_profile(self) -> dict[str, object]:
        """What a session is pinned to from its start (`pinned_profile.py`)."""
        sandbox = self.sandbox
        return {
            "mode": sandbox.mode,
            "workspace": sandbox.workspace,
            # to the sandbox a limited network is a proxied one
            "network": "limited" if self.proxy_settings.get("limited") else sandbox.network,
            "write": sandbox.write,
            "read_only": sandbox.read_only,
            "deny_read": sandbox.deny_read,
            "allow_unix": sandbox.allow_unix,
            "require": sandbox.require,
            "user": None if self.user is None else self.user.identity.name,
            "limits": sandbox.limits.set_values(),
        }

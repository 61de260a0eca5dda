"""What one session needs, decided before it starts: the sandbox's policy, the gates' dial, the proxy's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from doorward.gates.dial import Dial
from doorward.launcher.interface import SandboxPolicy
from doorward.session_log import TurnContext
from doorward.sessions.home import Home

PROXY_URL: Final = "http://127.0.0.1:3128"
"""Where the proxy listens in the sandbox's own network namespace. Fixed: the namespace holds nothing else."""


class Plan(NamedTuple):
    """Pure data. `proxy_settings` is what the proxy process is sent (allowlists/settings.py reads it)."""

    home: Home
    sandbox: SandboxPolicy
    dial: Dial
    proxied: bool
    proxy_settings: Mapping[str, object]
    inherit: str
    pass_env: tuple[str, ...]
    context: TurnContext
    notices: tuple[str, ...] = ()

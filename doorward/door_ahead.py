"""The operating system's door, opened before anything is known of the policy: its shim makes namespaces meanwhile."""

from __future__ import annotations

from doorward.errors import EngineError
from doorward.launcher.backend import backend
from doorward.launcher.interface import SandboxUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.launcher.protocols import Backend


def door_ahead() -> Backend:
    """This platform's door, with what the first run will need coming up already. Raises EngineError."""
    try:
        return backend(started=True)
    except SandboxUnavailable as error:
        raise EngineError(error.sentence, error.remedy) from None

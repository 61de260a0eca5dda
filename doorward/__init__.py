"""doorward runs a command you do not fully trust, says no where policy says no, and keeps the record.

    with doorward.open_session(allow=["example.com"]) as session:
        seen = session.exec(["sh", "-c", "curl -sS https://example.com/"])
        seen.exit_code, seen.output, seen.refusals   # a refusal is data

`open_session_async` gives the same for asyncio. EngineError is raised only when the machine is broken.
"""

# The command line imports this package at every start, so the library's modules are imported when first asked for.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.async_session import AsyncSession
    from doorward.errors import EngineError, UsageError
    from doorward.observation import Observation
    from doorward.open_session import open_session, open_session_async
    from doorward.session import Session

__all__ = [
    "AsyncSession",
    "EngineError",
    "Observation",
    "Session",
    "UsageError",
    "open_session",
    "open_session_async",
]

_HOMES = {
    "AsyncSession": "async_session",
    "EngineError": "errors",
    "Observation": "observation",
    "Session": "session",
    "UsageError": "errors",
    "open_session": "open_session",
    "open_session_async": "open_session",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'doorward' has no attribute {name!r}")
    value = getattr(__import__(f"doorward.{_HOMES[name]}", fromlist=[name]), name)
    globals()[name] = value
    return value

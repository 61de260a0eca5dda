"""Why something is not done to a session. Nothing was changed when one of these is raised."""

from doorward.sessions.home import StoreError


class SessionRefused(StoreError):
    """The state of the session does not allow it. `remedy` is what to do first, a command where there is one."""

    def __init__(self, sentence: str, remedy: str) -> None:
        super().__init__(f"{sentence}; {remedy}" if remedy else sentence)
        self.sentence = sentence
        self.remedy = remedy


class SessionLive(SessionRefused):
    """A process is writing it. `pid` is None where it cannot be told (another pid namespace)."""

    def __init__(self, session: str, pid: int | None) -> None:
        who = f"process {pid}" if pid is not None else "another process"
        super().__init__(f"session {session} is live: {who} writes it", "end that first")
        self.pid = pid

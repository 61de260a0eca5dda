"""What the caller gets back. A refusal is data in here, never an exception."""

from __future__ import annotations

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Observation(NamedTuple):
    """The outcome of one command.

    `success` is true whenever the machinery worked, whatever the command's exit code. `output` holds both streams
    in order of arrival (bytes that are not UTF-8 as lone surrogates; head and tail over 64 KiB), `refusals` one
    entry for every no a door said (the keys of the refusal body, the machine's own field `status` first),
    `verdict` what the gates said, `enforcement` what really held, `duration_s` seconds, `notes` plain sentences
    about the run itself (a time limit, a proxy that died, a client that went round the proxy), `limits_hit` one entry
    for each limit that was reached: `limit`, `value`, `by`, `message`, `hints` one for each cause that a failed command
    shows: `cause`, `message` (also among the notes), `remedy`, the option or words to write, "" where none helps.
    """

    session: str
    turn: int
    success: bool
    exit_code: int
    output: str
    refusals: tuple[Mapping[str, object], ...]
    verdict: Mapping[str, object]
    enforcement: Mapping[str, str]
    duration_s: float
    notes: tuple[str, ...] = ()
    limits_hit: tuple[Mapping[str, object], ...] = ()
    hints: tuple[Mapping[str, object], ...] = ()

    def to_json(self) -> dict[str, object]:
        """The document `run --json` prints."""
        return {
            **self._asdict(),
            "refusals": [dict(entry) for entry in self.refusals],
            "notes": list(self.notes),
            "limits_hit": [dict(entry) for entry in self.limits_hit],
            "hints": [dict(entry) for entry in self.hints],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> Observation:
        """The same value from its document. Raises KeyError if a field is missing."""
        values = {name: document[name] for name in cls._fields}
        refusals = values["refusals"]
        assert isinstance(refusals, list)
        values["refusals"] = tuple(refusals)
        for name in ("notes", "limits_hit", "hints"):
            listed = values[name]
            assert isinstance(listed, list)
            values[name] = tuple(listed)
        return cls(**values)  # type: ignore[arg-type]

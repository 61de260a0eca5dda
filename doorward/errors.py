"""The two ways doorward itself fails: its machine is broken, or it was asked wrongly. A refusal is neither."""

from __future__ import annotations


class EngineError(Exception):
    """The machine failed: no sandbox, no rollout, no proxy. Exit status 125; nothing ran unconfined.

    `sentence` says what failed, `remedy` what to do about it (may be empty).
    """

    def __init__(self, sentence: str, remedy: str = "") -> None:
        # one line, whoever wrote the two
        super().__init__(f"{sentence.rstrip('.')}. {remedy[:1].upper()}{remedy[1:]}" if remedy else sentence)
        self.sentence = sentence
        self.remedy = remedy


class UsageError(Exception):
    """The request itself is wrong: an option, a rule, a session that is not there. Exit status 2."""


class Refused(Exception):
    """Asked rightly, and not done as things stand: a live session is left alone. Exit status 1."""


class ProxyStopped(Exception):
    """The proxy process ended while the run still needed it; the network of the run is closed."""

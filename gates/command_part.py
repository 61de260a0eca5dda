"""One command of an action, as far as it can be told before it runs: its words, what wraps it, where it writes."""

from collections.abc import Mapping, Sequence
from types import EllipsisType

from doorward.gates.wording import plain, shell_word
from doorward.named_tuple import NamedTuple

Word = str | None | EllipsisType
"""A word of a command: its text; None for one word that is not known; `...` for any number of such words."""

ANYTHING: tuple[Word, ...] = (None, ...)
"""The words of a command of which nothing is known."""


class Layer(NamedTuple):
    """A wrapper around a command. `words` are all of its own, the command in it included; `inner` is the place among
    them where that begins (for a shell: where its script stands)."""

    words: tuple[Word, ...]
    inner: int
    script: bool = False
    """It reads a text, and what stands in that are the commands."""


def is_script(parts: Sequence["Part"]) -> bool:
    """True unless `parts` are one simple command, wrapped or not."""
    return len(parts) != 1 or any(layer.script for layer in parts[0].outer)


class Part(NamedTuple):
    """One simple command, or one effect of its own (a redirection: no words, a write).

    `doubt` says why it is not wholly understood, "" where it is. `env` holds the variables set for it on the way;
    `outer` the wrappers from the outside in. `writes` are the literal targets of its redirections, `reads` what it
    is given by them. `moved`: the working folder may be another by then. `risks` are what its surroundings add.
    """

    words: tuple[Word, ...]
    doubt: str = ""
    env: Mapping[str, str] = {}
    outer: tuple[Layer, ...] = ()
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    moved: bool = False
    risks: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """The same for parts of one action that are the same command in the same surroundings: a script repeats
        itself. The environment counts by identity, since no mapping is a key."""
        return (id(self.env), self.words, self.doubt, self.outer, self.writes, self.reads, self.moved, self.risks)

    @property
    def text(self) -> str:
        """The command as a person would write it; what is not known is "…"."""
        return shown(self.words)


def shown(words: Sequence[Word], limit: int = 100) -> str:
    """`words` as one line for a sentence, "" where not even the program is known."""
    if not words or not isinstance(words[0], str):
        return ""
    return plain(" ".join(shell_word(word) if isinstance(word, str) else "…" for word in words), limit)


def base_name(word: Word) -> str:
    """The name of the program that `word` calls, "" where it is not known."""
    return word.rpartition("/")[2] if isinstance(word, str) else ""

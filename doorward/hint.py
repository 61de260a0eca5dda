"""What a hint after a failed command is: one cause, told once, with what would lift it."""

from __future__ import annotations

from doorward.named_tuple import NamedTuple


class Hint(NamedTuple):
    """`cause` names the kind (docs/hints.md lists them), `message` is a sentence for a person, `remedy` the option, or
    the words to write in place of others, that the sentence names: doing literally that is what a test of each does."""

    cause: str
    message: str
    remedy: str = ""

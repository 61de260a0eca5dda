"""What is wrong with a configuration: every problem of every file, each with its place and what would be right."""

from collections.abc import Iterable

from doorward.errors import UsageError
from doorward.named_tuple import NamedTuple


class Problem(NamedTuple):
    """One mistake. `file` is a path, or the option ("--allow", "-c network.mode"); `line` counts from 1, None where
    there is none; `key` is dotted, "" for a whole file; `suggestion` is the nearest valid spelling or remedy."""

    file: str
    line: int | None
    key: str
    message: str
    suggestion: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        text = f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"
        return printable(f"{text}; {self.suggestion}" if self.suggestion else text)


class ConfigurationError(UsageError):
    """A configuration that cannot be used (exit status 2); nothing runs. `problems` holds all of them, in order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            super().__init__(f"doorward: {self.problems[0]}")
        else:
            lines = "".join(f"\n  {problem}" for problem in self.problems)
            super().__init__(f"doorward: {len(self.problems)} problems in the configuration:{lines}")


def printable(text: str) -> str:
    """`text` with what a terminal would act on as escapes: names and values are whatever stands in a file."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode("ascii")
        for char in text
    )


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is spelled most like `word`, or None if none is near."""
    import difflib  # only where there is a mistake to explain

    near = difflib.get_close_matches(
        word.lower().replace("-", "_"), {name.replace("-", "_"): name for name in known}, 1
    )
    return next((name for name in known if near and name.replace("-", "_") == near[0]), None)

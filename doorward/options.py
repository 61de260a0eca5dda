"""Options of the commands as one table each: parsed, shown as help, offered to shells.

argparse would cost every run about 10 ms, and getopt 1 ms (it loads gettext). Options are spelled out: an abbreviation
that is unique today would be another option's tomorrow.
"""

from __future__ import annotations

from doorward.errors import UsageError
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Option(NamedTuple):
    """One option. `value` is the placeholder of its argument; empty for a switch."""

    name: str
    help: str
    value: str = ""
    short: str = ""
    choices: tuple[str, ...] = ()
    repeat: bool = False
    hidden: bool = False
    """Not shown: one program says it to another."""


class Parsed(NamedTuple):
    """What was given: option name to its values in order (a switch has one empty string), and the other words."""

    values: Mapping[str, tuple[str, ...]]
    words: tuple[str, ...]

    def has(self, name: str) -> bool:
        """True if the option was given."""
        return name in self.values

    def last(self, name: str, default: str = "") -> str:
        """The option's value; the last one wins."""
        given = self.values.get(name)
        return given[-1] if given else default

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a repeatable option, in order."""
        return self.values.get(name, ())


class HelpWanted(Exception):
    """`-h` or `--help` was among the options."""


def parse(command: str, options: Sequence[Option], args: Sequence[str], *, stop_at_word: bool = False) -> Parsed:
    """Read `args`. With `stop_at_word` everything from the first non-option on belongs to the command to run.

    Raises UsageError with the nearest spelling, HelpWanted for `-h`.
    """
    known = {f"--{option.name}": option for option in options}
    known |= {f"-{option.short}": option for option in options if option.short}
    values: dict[str, tuple[str, ...]] = {}
    words: list[str] = []
    ahead = [*reversed(args)]
    while ahead:
        word = ahead.pop()
        is_word = word == "-" or not word.startswith("-")
        if is_word:
            words.append(word)
        if word == "--" or (is_word and stop_at_word):
            words += reversed(ahead)
            break
        if is_word:
            continue
        if word.startswith("--"):
            flag, attached, value = word.partition("=")
        else:
            flag = word[:2]
            attached = value = word[2:]
        if flag in ("-h", "--help"):
            raise HelpWanted
        option = known.get(flag)
        if option is None:
            raise UsageError(f"doorward {command}: option {flag} not recognized; {_remedy(flag, options)}")
        if option.value and not attached:
            if not ahead:
                raise UsageError(f"doorward {command}: option {flag} requires an argument; see --help")
            value = ahead.pop()
        elif attached and not option.value:
            if flag == f"--{option.name}":
                raise UsageError(f"doorward {command}: option {flag} takes no argument; see --help")
            ahead.append(f"-{value}")  # the next letter of a cluster
            value = ""
        if option.choices and value not in option.choices:
            raise UsageError(f"doorward {command}: --{option.name} takes {'|'.join(option.choices)}, not {value!r}")
        if option.name in values and not option.repeat and option.value:
            raise UsageError(f"doorward {command}: --{option.name} was given twice")
        values[option.name] = (*values.get(option.name, ()), value)
    return Parsed(values, tuple(words))


def _remedy(flag: str, options: Sequence[Option]) -> str:
    if flag.startswith("--"):
        import difflib  # only for the error text

        near = difflib.get_close_matches(flag[2:], [option.name for option in options], n=1, cutoff=0.6)
        if near:
            return f"did you mean --{near[0]}?"
    return "see --help"


def help_text(usage: str, summary: str, options: Sequence[Option], examples: Sequence[str] = ()) -> str:
    """The help of one command: an example first, then the options, one line each."""
    lines = [summary, ""]
    lines += [f"  {example}" for example in examples]
    lines += ["", f"usage: {usage}", ""] if examples else [f"usage: {usage}", ""]
    for option in options:
        if option.hidden:
            continue
        left = f"  {'-' + option.short + ', ' if option.short else '    '}--{option.name}"
        left += f" {'|'.join(option.choices) or option.value}" if option.value else ""
        lines.append(f"{left:<42} {option.help}" if len(left) < 42 else f"{left}\n{'':<42} {option.help}")
    lines.append(f"{'  -h, --help':<42} show this text")
    return "\n".join(lines) + "\n"

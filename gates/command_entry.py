"""What one line of the command tables says: a command that reads, one that writes, one that is risky, a wrapper."""

from doorward.named_tuple import NamedTuple


class ReadOnly(NamedTuple):
    """A command that only reads, unless one of these is used."""

    unless_short: str = ""
    """Letters of short options, alone or in a cluster: `-o`, `-uo`."""
    unless_long: tuple[str, ...] = ()
    """Long options without their dashes."""
    unless_words: tuple[str, ...] = ()
    """Whole arguments."""
    unless_env: tuple[str, ...] = ()
    """Variables that make it run or write something; one that ends in `*` is a prefix."""
    most_operands: int | None = None
    """More operands than this and it writes (`uniq IN OUT`)."""
    only: tuple[str, ...] | None = None
    """If given, the only arguments with which it just reads."""
    operands_begin: str = ""
    """If given, how every operand must begin (`date +%s` prints, `date 0101` sets the clock)."""
    because: str = ""
    """Why those make it do more, for a sentence: "--output writes a file"."""


class Writer(NamedTuple):
    """A command that writes to the operands it names, as long as only these options are used."""

    targets: str
    """"all" operands, the "last" of at least two, or all "after-first"."""
    flags: str = ""
    """Short options without a value."""
    long_flags: tuple[str, ...] = ()
    """Long options without a value, or with one after `=`, that change nothing about the targets."""
    values: str = ""
    """Short options whose next argument is a value."""


class Risk(NamedTuple):
    """One way a program is risky. All that is given must hold; `because` completes "PROGRAM …"."""

    because: str
    words: tuple[str, ...] = ()
    """The sub-command: the first operands after the program's own options."""
    short: str = ""
    """Letters of short options, any of which suffices."""
    long: tuple[str, ...] = ()
    """Long options without dashes, any of which suffices (as does a letter of `short`)."""
    arguments: tuple[str, ...] = ()
    """Whole arguments, or how one begins where the text ends in `*`; any suffices."""
    unless: tuple[str, ...] = ()
    """Arguments with which it only shows something."""


class Wrapper(NamedTuple):
    """A program that starts the command it is given. An option that is not listed makes the rest uncertain."""

    because: str
    """What it does to the command, for a reader of the table."""
    flags: str = ""
    """Short options without a value."""
    values: str = ""
    """Short options with one, attached or as the next argument."""
    long_flags: tuple[str, ...] = ()
    """Long options without a value, or with one after `=`."""
    long_values: tuple[str, ...] = ()
    """Long options whose value may be the next argument."""
    operands: int = 0
    """Operands of its own before the command (`timeout 5 CMD`)."""
    assignments: bool = False
    """`NAME=value` may stand before the command."""
    adds: str = ""
    """"many": more arguments than are written (`xargs`); "script": the words are joined and given to a shell."""

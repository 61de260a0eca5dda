"""What is known of one command: does it only read, what does it write by name, is it risky.

No shell grammar: one argv is one simple command, and the script of a shell is not understood. A caller that
understands more puts its own function in `Dial.knowledge`.
"""

from __future__ import annotations

from doorward.gates.action import Action
from doorward.gates.known_commands import (
    GIT_GLOBAL_HARMLESS,
    GIT_READ_ONLY,
    READ_ONLY,
    SHELLS,
    SYSTEM_FOLDERS,
    WRITERS,
    ReadOnly,
    Writer,
)
from doorward.gates.places import inside
from doorward.gates.risky_commands import CREDENTIAL_FILES, RISKY, RISKY_BEGINNINGS, VALUE_OPTIONS, Risk
from doorward.gates.wording import plain
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Knowledge(NamedTuple):
    """`understood`: all the action does is known by name, no script is in it. `read_only`: it is known to change
    nothing. `risks` are sentences without a full stop. `writes` are the literal targets it names, as it names them.
    """

    understood: bool
    read_only: bool
    risks: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def knowledge_of(action: Action, planted: Sequence[str]) -> Knowledge:
    """What the tables say of `action`. A program found in or below one of the folders `planted` (absolute: those the
    sandboxed side can write to) is not taken for the one its name says (P-AP-18)."""
    if not action.argv:
        return Knowledge(understood=False, read_only=False)
    name = action.argv[0].rpartition("/")[2]
    arguments = action.argv[1:]
    risks = _risks(name, arguments, action.cwd)
    if name in SHELLS:
        return Knowledge(understood=False, read_only=False, risks=risks)
    reads = _only_reads(name, arguments, action.env) and _is_genuine(action, planted)
    writes = _targets(name, arguments)
    return Knowledge(understood=reads or bool(writes), read_only=reads, risks=risks, writes=writes)


def _is_genuine(action: Action, planted: Sequence[str]) -> bool:
    """True if `argv[0]` can only be the system's program of that name."""
    program = action.argv[0]
    if "/" in program:
        return program.rpartition("/")[0] in SYSTEM_FOLDERS
    if action.program is not None:
        return not any(inside(action.program, folder) for folder in planted)
    path = action.env.get("PATH")
    if path is None:
        return True  # the system's default
    return all(
        entry.startswith("/") and not any(inside(entry, folder) for folder in planted) for entry in path.split(":")
    )


def _only_reads(name: str, arguments: Sequence[str], env: Mapping[str, str]) -> bool:
    if name == "git":
        return _git_only_reads(arguments, env)
    if name == "sed":
        return _sed_only_prints(arguments)
    known = READ_ONLY.get(name)
    return known is not None and _fits(known, arguments, env)


def _git_only_reads(arguments: Sequence[str], env: Mapping[str, str]) -> bool:
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        if arguments[index] == "-C":
            index += 1
        elif arguments[index] not in GIT_GLOBAL_HARMLESS:
            return False
        index += 1
    if index >= len(arguments):
        return False
    known = GIT_READ_ONLY.get(arguments[index])
    return known is not None and _fits(known, arguments[index + 1 :], env)


def _sed_only_prints(arguments: Sequence[str]) -> bool:
    """`sed -n 1,20p FILE…`: the one form whose script can be read at a glance (a `w` command writes, `e` runs)."""
    if len(arguments) < 2 or arguments[0] != "-n" or any(word.startswith("-") for word in arguments[1:]):
        return False
    first, _, last = arguments[1].removesuffix("p").partition(",")
    return arguments[1].endswith("p") and first.isdecimal() and (last or "1").isdecimal()


def _fits(known: ReadOnly, arguments: Sequence[str], env: Mapping[str, str]) -> bool:
    """True if nothing in `arguments` or `env` makes a command that only reads do more."""
    for pattern in known.unless_env:
        if pattern.endswith("*"):
            if any(variable.startswith(pattern[:-1]) for variable in env):
                return False
        elif pattern in env:
            return False
    if known.only is not None:
        return all(argument in known.only for argument in arguments)
    if any(argument in known.unless_words for argument in arguments):
        return False
    options, operands = _split(arguments)
    if any(_is_option(option, known.unless_short, known.unless_long) for option in options):
        return False
    if known.most_operands is not None and len(operands) > known.most_operands:
        return False
    return all(operand.startswith(known.operands_begin) for operand in operands)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options and operands; `--` ends the options, `-` is an operand. The value of an option counts as an operand."""
    if "--" in arguments:
        end = list(arguments).index("--")
        arguments, rest = arguments[:end], list(arguments[end + 1 :])
    else:
        rest = []
    options = [argument for argument in arguments if argument.startswith("-") and argument != "-"]
    operands = [argument for argument in arguments if not argument.startswith("-") or argument == "-"]
    return options, operands + rest


def _is_option(argument: str, short: str, long: Sequence[str]) -> bool:
    """True if `argument` is or may hold one of these options: `-uo`, `--output=x`, `--out` (GNU abbreviation)."""
    if argument.startswith("--"):
        given = argument[2:].partition("=")[0]
        return given != "" and any(name.startswith(given) for name in long)
    return any(letter in short for letter in argument[1:])


def _targets(name: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The literal targets of one simple writer; none where an option is not known, since they could be elsewhere."""
    if name == "dd":
        return tuple(argument[3:] for argument in arguments if argument.startswith("of=") and len(argument) > 3)
    writer = WRITERS.get(name)
    if writer is None:
        return ()
    operands = _operands_of(writer, arguments)
    if operands is None:
        return ()
    if writer.targets == "last":
        return (operands[-1],) if len(operands) > 1 else ()
    chosen = operands[1:] if writer.targets == "after-first" else operands
    return tuple(operand for operand in chosen if operand and operand != "-")


def _operands_of(writer: Writer, arguments: Sequence[str]) -> list[str] | None:
    operands: list[str] = []
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        index += 1
        if argument == "--":
            operands.extend(arguments[index:])
            break
        if not argument.startswith("-") or argument == "-":
            operands.append(argument)
        elif argument.startswith("--"):
            if argument[2:].partition("=")[0] not in writer.long_flags:
                return None
            if "=" not in argument and argument[2:] in ("date", "reference", "time", "size", "mode", "iterations"):
                index += 1
        elif all(letter in writer.flags for letter in argument[1:]):
            continue
        elif len(argument) == 2 and argument[1] in writer.values:
            index += 1
        else:
            return None
    return operands


def _risks(name: str, arguments: Sequence[str], cwd: str) -> tuple[str, ...]:
    found: list[str] = []
    beginnings = tuple(risk for begin, risk in RISKY_BEGINNINGS.items() if name.startswith(begin))
    for risk in RISKY.get(name, beginnings):
        if _is_risk(risk, _after_own_options(name, arguments)):
            found.append(f"{plain(' '.join((name, *risk.words)))} {risk.because}")
            break
    for argument in arguments:
        if _is_credential_file(argument if argument.startswith("/") else f"{cwd}/{argument}"):
            found.append(f"{plain(name)} names {plain(argument)}, a file that holds credentials")
            break
    return tuple(found)


def _after_own_options(name: str, arguments: Sequence[str]) -> Sequence[str]:
    """`arguments` from the sub-command on, for a program that has one; all of them otherwise."""
    takes_value = VALUE_OPTIONS.get(name)
    if takes_value is None:
        return arguments
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 2 if arguments[index] in takes_value else 1
    return arguments[index:]


def _is_risk(risk: Risk, arguments: Sequence[str]) -> bool:
    options, operands = _split(arguments)
    if tuple(operands[: len(risk.words)]) != risk.words:
        return False
    if (risk.short or risk.long) and not any(_is_option(option, risk.short, risk.long) for option in options):
        return False
    return not risk.arguments or any(
        argument.startswith(wanted[:-1]) if wanted.endswith("*") else argument == wanted
        for wanted in risk.arguments
        for argument in arguments
    )


def _is_credential_file(path: str) -> bool:
    return any(part in path if part.startswith("/") else f"/{part}" in path for part in CREDENTIAL_FILES)

"""What is known of a command: does it only read, what does it write by name, is it risky.

One argv is one simple command, unless its program runs another: wrappers and scripts are taken apart (unfolding.py,
loaded only for those) and every part is weighed by itself.
"""

from __future__ import annotations

from doorward.gates.action import Action
from doorward.gates.known_commands import (
    BUILTINS,
    CMD,
    CREDENTIAL_FILES,
    FOLLOWED,
    GIT_GLOBAL_HARMLESS,
    GIT_READ_ONLY,
    POWERSHELLS,
    READ_ONLY,
    RISKY,
    RISKY_BEGINNINGS,
    SYSTEM_FOLDERS,
    VALUE_OPTIONS,
    WRITERS,
)
from doorward.gates.places import inside
from doorward.gates.wording import plain
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import EllipsisType
    from typing import Literal

    from doorward.gates.command_entry import ReadOnly, Risk, Writer
    from doorward.gates.command_part import Part

    Word = str | None | EllipsisType
    # where a program (a name or a path, PATH, the working folder) is found: absolute, or None
    Locate = Callable[[str, str, str], str | None]


class Knowledge(NamedTuple):
    """`understood`: all the action does is known by name. `read_only`: it is known to change nothing. `risks` are
    sentences without a full stop. `writes` are the literal targets it names, as it names them.

    For a script `parts` holds what is known of each of its commands, in order; `targets` are then what they write to,
    weighed but left to the kernel. `because` completes "only known
    read-only commands run unasked, and …".
    """

    understood: bool
    read_only: bool
    risks: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    parts: tuple[Knowledge, ...] = ()
    targets: tuple[str, ...] = ()
    because: str = ""


def knowledge_of(action: Action, planted: Sequence[str], locate: Locate | None = None) -> Knowledge:
    """What the tables say of `action`. A program found in or below one of the folders `planted` (absolute: those the
    sandboxed side can write to) is not taken for the one its name says (P-AP-18). `locate` finds the programs of the
    commands within; without it PATH itself must hold nothing planted."""
    argv = action.argv
    if not argv:
        return Knowledge(understood=False, read_only=False)
    if program_name(argv[0]) not in FOLLOWED:
        return _of_words(argv, action.env, action.cwd, lambda: _is_genuine(action, planted))
    from doorward.gates.unfolding import remembering, unfold  # for commands that run others

    return _of_parts(action, unfold(action), planted, remembering(action, locate) if locate is not None else None)


def program_name(word: str) -> str:
    """The base name a program is known by; Windows' shells in lower case without `.exe`."""
    name = word.rpartition("/")[2]
    if "\\" in name or name[:1] in "PpCc":
        lower = name.rpartition("\\")[2].lower().removesuffix(".exe")
        if lower in POWERSHELLS or lower == CMD:
            return lower
    return name


def is_known_harmless(name: str) -> bool:
    """True for a program that surely does not run what stands in its arguments."""
    return name in READ_ONLY or name in WRITERS


def after_own_options(name: str, arguments: Sequence[Word]) -> Sequence[Word] | None:
    """`arguments` from the sub-command on, for a program that has sub-commands; None for any other."""
    takes_value = VALUE_OPTIONS.get(name)
    if takes_value is None:
        return None
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if not isinstance(word, str) or not word.startswith("-"):
            break
        index += 2 if word in takes_value else 1
    return arguments[index:]


def _of_parts(action: Action, parts: Sequence[Part], planted: Sequence[str], locate: Locate | None) -> Knowledge:
    from doorward.gates.command_part import is_script

    genuine = _Genuine(action, planted, locate)
    judged: dict[tuple[object, ...], Knowledge] = {}
    found: list[Knowledge] = []
    for part in parts:
        key = part.key
        of_part = judged.get(key)
        if of_part is None:
            of_part = judged[key] = _of_part(action, part, genuine)
        found.append(of_part)
    known = tuple(found)
    risks = tuple(dict.fromkeys(risk for each in known for risk in each.risks))
    understood = all(each.understood for each in known)
    reads = all(each.read_only for each in known)
    because = next((each.because for each in known if not each.read_only and each.because), "")
    if not is_script(parts):
        return Knowledge(understood, reads, risks, known[0].writes, because=because)
    targets = tuple(dict.fromkeys(target for each in known for target in each.writes))
    return Knowledge(understood, reads, risks, (), known, targets, because)


class _Genuine:
    """Which programs of one action are the ones their names say: a script calls the same few again and again."""

    def __init__(self, action: Action, planted: Sequence[str], locate: Locate | None) -> None:
        self._action = action
        self._planted = planted
        self._locate = locate
        self._known: dict[tuple[str, str | None], bool] = {}
        self._merged: tuple[Mapping[str, str], Mapping[str, str]] = ({}, action.env)

    def environment(self, more: Mapping[str, str]) -> Mapping[str, str]:
        """The action's variables with those set on the way; most parts of a script have the same."""
        if self._merged[0] is not more:
            self._merged = (more, {**self._action.env, **more} if more else self._action.env)
        return self._merged[1]

    def is_real(self, part: Part, env: Mapping[str, str]) -> bool:
        """Is the command of `part` the one its name says, and all that is wrapped around it?"""
        own = bool(part.outer) and part.outer[-1].script and part.words[0] in BUILTINS
        return (own or self(part.words[0], env)) and all(self(layer.words[0], env) for layer in part.outer)

    def __call__(self, word: Word, env: Mapping[str, str]) -> bool:
        if not isinstance(word, str):
            return False
        key = (word, env.get("PATH"))
        if key not in self._known:
            self._known[key] = self._judged(word, key[1], env)
        return self._known[key]

    def _judged(self, word: str, path: str | None, env: Mapping[str, str]) -> bool:
        if path is not None and "\0" in path:
            return "/" in word and _is_genuine_path(word, None, env, self._planted)  # set to what is not known
        found = None
        if self._locate is not None and "/" not in word:
            found = self._locate(word, path or "", self._action.cwd)
        return _is_genuine_path(word, found, env, self._planted)


def _of_part(action: Action, part: Part, genuine: _Genuine) -> Knowledge:
    """One command of several. A relative target counts only while the working folder is the action's."""
    env = genuine.environment(part.env)
    risks = list(part.risks)
    for layer in part.outer:
        name = program_name(layer.words[0]) if isinstance(layer.words[0], str) else ""
        if name in RISKY:
            risks += _risks(name, (), action.cwd)
    for file in part.reads:
        if _is_credential_file(_absolute(file, action.cwd)):
            risks.append(_credential("it", file))
    for file in (*part.reads, *part.writes):
        if file.startswith(("/dev/tcp/", "/dev/udp/")):
            risks.append(f"it opens a connection to {plain(file[9:])} without the proxy")
    if not part.words:
        known = Knowledge(not part.doubt, False, (), part.writes, because=_writing(part.writes))
    else:
        known = _of_words(part.words, env, action.cwd, lambda: genuine.is_real(part, env))
    if part.doubt:
        known = known._replace(understood=False, read_only=False, because=f"what it does cannot be told: {part.doubt}")
    if part.moved:
        known = known._replace(writes=tuple(target for target in known.writes if target.startswith("/")))
    return known._replace(risks=tuple(dict.fromkeys((*risks, *known.risks)))) if risks else known


def _of_words(words: Sequence[Word], env: Mapping[str, str], cwd: str, genuine: Callable[[], bool]) -> Knowledge:
    """`genuine` is asked only where a name would make the command harmless: finding programs takes time."""
    program = words[0]
    if not isinstance(program, str):
        return Knowledge(understood=False, read_only=False)
    name = program_name(program)
    arguments = words[1:]
    texts = [word for word in arguments if isinstance(word, str)]
    certain = len(texts) == len(arguments)
    risks = _risks(name, texts, cwd)
    entry = _read_only_entry(name, arguments, env)
    reads = entry is True and genuine()
    writes = _targets(name, texts) if certain else ()
    because = ""
    if entry is True and not reads:
        because = f"which {plain(name)} this is cannot be told: it lies where the command itself can write, or may"
    elif writes:
        because = f"{plain(name)} writes to {plain(writes[0])}"
    elif entry is not True and entry is not None and entry.because:
        because = f"{plain(name)} used like this may be none: {entry.because}"
    elif entry is not True:
        because = f"{plain(' '.join(_called(name, arguments)))} is none"
    return Knowledge(reads or bool(writes), reads, risks, writes, (), (), because)


def _called(name: str, arguments: Sequence[Word]) -> Sequence[str]:
    """The program and its sub-command, which is what is known or not."""
    if name == "sed":
        return name, "used like this"
    own = after_own_options(name, arguments)
    return (name, own[0]) if own and isinstance(own[0], str) and not own[0].startswith("-") else (name,)


def _is_genuine(action: Action, planted: Sequence[str]) -> bool:
    """True if `argv[0]` can only be the system's program of that name."""
    return _is_genuine_path(action.argv[0], action.program, action.env, planted)


def _is_genuine_path(program: str, found: str | None, env: Mapping[str, str], planted: Sequence[str]) -> bool:
    if "/" in program:
        return program.rpartition("/")[0] in SYSTEM_FOLDERS
    if found is not None:
        return not any(inside(found, folder) for folder in planted)
    path = env.get("PATH")
    if path is None:
        return True  # the system's default
    return all(
        entry.startswith("/") and not any(inside(entry, folder) for folder in planted) for entry in path.split(":")
    )


def _read_only_entry(name: str, arguments: Sequence[Word], env: Mapping[str, str]) -> ReadOnly | Literal[True] | None:
    """True if it only reads; else the line of the table it goes beyond, None where there is none."""
    texts = [word for word in arguments if isinstance(word, str)]
    certain = len(texts) == len(arguments)
    if name == "git":
        return _git_only_reads(arguments, env)
    if name == "sed":
        return True if certain and _sed_only_prints(texts) else None
    known = READ_ONLY.get(name)
    if known is None:
        return None
    return True if _fits_words(known, arguments, env) else known


def _fits_words(known: ReadOnly, arguments: Sequence[Word], env: Mapping[str, str]) -> bool:
    """`_fits`, with the safe side of words that are not known: they may be any option."""
    texts = [word for word in arguments if isinstance(word, str)]
    if len(texts) != len(arguments):
        limited = known.unless_short or known.unless_long or known.unless_words or known.only is not None
        if limited or known.most_operands is not None or known.operands_begin:
            return False
    return _fits(known, texts, env)


def _git_only_reads(arguments: Sequence[Word], env: Mapping[str, str]) -> ReadOnly | Literal[True] | None:
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if not isinstance(word, str):
            return None
        if not word.startswith("-"):
            known = GIT_READ_ONLY.get(word)
            if known is None:
                return None
            return True if _fits_words(known, arguments[index + 1 :], env) else known
        if word == "-C":
            index += 1
        elif word not in GIT_GLOBAL_HARMLESS:
            return None
        index += 1
    return None


def _sed_only_prints(arguments: Sequence[str]) -> bool:
    """`sed -n 1,20p FILE…`: the one form whose script can be read at a glance (a `w` command writes, `e` runs)."""
    if len(arguments) < 2 or arguments[0] != "-n" or any(word.startswith("-") for word in arguments[1:]):
        return False
    first, _, last = arguments[1].removesuffix("p").partition(",")
    return arguments[1].endswith("p") and first.isdecimal() and (last or "1").isdecimal()


def _fits(known: ReadOnly, arguments: Sequence[str], env: Mapping[str, str]) -> bool:
    """True if nothing in `arguments` or `env` makes a command that only reads do more."""
    if known.unless_env and _is_set(known.unless_env, env):
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


_last_set: tuple[Sequence[str], Mapping[str, str], bool] = ((), {}, False)


def _is_set(patterns: Sequence[str], env: Mapping[str, str]) -> bool:
    """True if one of these variables is set; one that ends in `*` is a prefix. In a script most commands have the same
    variables, so the last answer is kept."""
    global _last_set
    if _last_set[0] is not patterns or _last_set[1] is not env:
        answer = any(
            any(variable.startswith(pattern[:-1]) for variable in env) if pattern.endswith("*") else pattern in env
            for pattern in patterns
        )
        _last_set = (patterns, env, answer)
        return answer
    return _last_set[2]


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
    rows = RISKY.get(name) or tuple(risk for begin, risk in RISKY_BEGINNINGS.items() if name.startswith(begin))
    if rows:
        behind = after_own_options(name, arguments)
        own = arguments if behind is None else [word for word in behind if isinstance(word, str)]
        options, operands = _split(own)
        for risk in rows:
            if risk.words and risk.words[:1] != tuple(operands[:1]):
                continue
            if _is_risk(risk, own, options, operands):
                shown = (name, *risk.words, *_telling(risk, own, options))
                found.append(f"{plain(' '.join(shown))} {risk.because}")
                break
    for argument in arguments:
        if _is_credential_file(_absolute(argument, cwd)):
            found.append(_credential(plain(name), argument))
            break
    return tuple(found)


def _telling(risk: Risk, arguments: Sequence[str], options: Sequence[str]) -> Sequence[str]:
    """The option or argument that makes it risky: `git push` is not, `git push --force` is."""
    for option in options:
        if (risk.short or risk.long) and _is_option(option, risk.short, risk.long):
            return (option,)
    return next(
        ((each,) for each in arguments for wanted in risk.arguments if _is_argument(each, wanted)),
        (),
    )


def _is_argument(argument: str, wanted: str) -> bool:
    return argument.startswith(wanted[:-1]) if wanted.endswith("*") else argument == wanted


def _is_risk(risk: Risk, arguments: Sequence[str], options: Sequence[str], operands: Sequence[str]) -> bool:
    if risk.words and tuple(operands[: len(risk.words)]) != risk.words:
        return False
    if (risk.short or risk.long) and not any(_is_option(option, risk.short, risk.long) for option in options):
        return False
    if risk.unless and any(argument in risk.unless for argument in arguments):
        return False
    return not risk.arguments or any(
        _is_argument(argument, wanted) for wanted in risk.arguments for argument in arguments
    )


def _is_credential_file(path: str) -> bool:
    if "/." not in path and not path.startswith("/etc/"):
        return False  # nearly every word
    return any(part in path if part.startswith("/") else f"/{part}" in path for part in CREDENTIAL_FILES)


def _writing(targets: Sequence[str]) -> str:
    return f"it writes to {plain(targets[0])}" if targets else ""


def _absolute(path: str, cwd: str) -> str:
    return path if path.startswith("/") else f"{cwd}/{path}"


def _credential(who: str, file: str) -> str:
    return f"{who} names {plain(file)}, a file that holds credentials"

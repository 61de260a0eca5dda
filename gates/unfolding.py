"""An action taken apart into the commands it runs, as far as that is certain; the rest is marked as not understood.

Wrappers are peeled to any depth that a person would write, scripts are read with a grammar. Nothing here decides: a
part that is not understood has a `doubt`, and whoever judges takes the safe side of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doorward.gates.action import Action
from doorward.gates.command_knowledge import program_name
from doorward.gates.command_part import ANYTHING, Layer, Part, Word, base_name
from doorward.gates.known_commands import (
    CMD,
    EXECUTING,
    FOLLOWED,
    INTERPRETERS,
    POWERSHELLS,
    REMOTE_RUNS,
    REMOTE_VALUES,
    SHELLS,
    WRAPPERS,
)
from doorward.gates.wording import plain
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.gates.command_knowledge import Locate

DEEPEST = 24
"""Wrappers and scripts within each other that are followed."""
MOST_PARTS = 2000
"""Commands of one action that are taken apart; a script of 64 KiB has fewer."""


class Surroundings(NamedTuple):
    """What a command stands in: the wrappers around it, the variables set for it, how deep it is."""

    outer: tuple[Layer, ...] = ()
    env: Mapping[str, str] = {}
    depth: int = 0
    moved: bool = False
    home: str = ""
    """HOME, "" where it is not known."""

    def within(
        self, words: tuple[Word, ...], inner: int, env: Mapping[str, str] = {}, *, script: bool = False
    ) -> Surroundings:
        """These, one wrapper further in."""
        return self._replace(
            outer=(*self.outer, Layer(words, inner, script)), env={**self.env, **env}, depth=self.depth + 1
        )


_last: tuple[Action, tuple[Part, ...], dict[tuple[str, str, str], str | None]] | None = None


def unfold(action: Action) -> tuple[Part, ...]:
    """The parts of `action`, in the order they are written. The policy and the command knowledge ask one after the
    other, so the last answer is kept."""
    global _last
    last = _last
    if last is not None and last[0] is action:
        return last[1]
    parts = tuple(unfold_words(action.argv, Surroundings(home=action.env.get("HOME", ""))))
    _last = (action, parts, {})
    return parts


def remembering(action: Action, locate: Locate) -> Locate:
    """`locate` for the action last taken apart: its parts call the same few programs again and again."""
    found = _last[2] if _last is not None and _last[0] is action else {}

    def once(name: str, path: str, cwd: str) -> str | None:
        key = (name, path, cwd)
        if key not in found:
            found[key] = locate(name, path, cwd)
        return found[key]

    return once


def unfold_words(words: Sequence[Word], around: Surroundings) -> list[Part]:
    """The parts of one command."""
    words = tuple(words)
    if not words:
        return []
    program = words[0]
    if not isinstance(program, str):
        return [_part(words, around, "which program runs is known only when it does")]
    name = program_name(program)
    if name not in FOLLOWED:
        return [_part(words, around)]
    if around.depth >= DEEPEST:
        return [_part(ANYTHING, around, "it is wrapped deeper than anybody would write")]
    if name in SHELLS:
        return _shell(name, words, around)
    if name in POWERSHELLS or name == CMD:
        from doorward.gates.windows_shells import unfold_windows

        return unfold_windows(name, words, around)
    if name == "find":
        return _find(words, around)
    if name == "ssh":
        return _ssh(words, around)
    if name == "eval":
        return _joined(words, 1, around, "sh", "it runs the text that eval is given")
    if name in ("su", "runuser"):
        return [_part(words, around), _part(ANYTHING, around, f"{name} starts a shell")]
    if name == "trap":
        return _trap(words, around)
    return _wrapped(name, words, around)


def _part(words: tuple[Word, ...], around: Surroundings, doubt: str = "") -> Part:
    return Part(words, doubt, around.env, around.outer, (), (), around.moved, ())


def _wrapped(name: str, words: tuple[Word, ...], around: Surroundings) -> list[Part]:
    """A program of the table and what it starts."""
    if name == "command" and len(words) > 1 and words[1] in ("-v", "-V"):
        return [_part(("type", *words[2:]), around)]
    wrapper = WRAPPERS[name]
    place, env = 1, dict[str, str]()
    while place < len(words):
        word = words[place]
        if not isinstance(word, str):
            return [_part(ANYTHING, around.within(words, place), f"the options of {name} are known only when it runs")]
        if word == "--":
            place += 1
            break
        if not word.startswith("-") or word == "-":
            break
        step = _option(word, wrapper.flags, wrapper.values, wrapper.long_flags, wrapper.long_values)
        if step is None:
            return [
                _part(ANYTHING, around.within(words, place), f"{plain(word)} is an option of {name} that is not known")
            ]
        place += step
    place += wrapper.operands
    while wrapper.assignments and place < len(words):
        word = words[place]
        variable, equals, value = word.partition("=") if isinstance(word, str) else ("", "", "")
        if not equals:
            break
        env[variable] = value
        place += 1
    if place >= len(words):
        return [_part(words, around)]
    inner: tuple[Word, ...] = words[place:]
    within = around.within(words, place, env)
    if wrapper.adds == "script":
        return _joined(words, place, around, "sh", f"{name} runs its words as a script")
    if wrapper.adds == "many":
        replaced = _replaced(name, words[1:place])
        if replaced is not None:
            inner = tuple(None if isinstance(word, str) and replaced in word else word for word in inner)
        inner = (*inner, ...)
    return unfold_words(inner, within)


def _option(word: str, flags: str, values: str, long_flags: Sequence[str], long_values: Sequence[str]) -> int | None:
    """How many words the option takes; None for one that is not known."""
    if word.startswith("--"):
        given, equals, _ = word[2:].partition("=")
        if given in long_flags or (given in long_values and equals):
            return 1
        return 2 if given in long_values else None
    for place, letter in enumerate(word[1:], 1):
        if letter in values:
            return 1 if place + 1 < len(word) else 2
        if letter not in flags:
            return None
    return 1


def _replaced(name: str, options: Sequence[Word]) -> str | None:
    """What xargs(1) replaces in its words; GNU parallel always replaces `{}`."""
    if name == "parallel":
        return "{}"
    for place, option in enumerate(options):
        if option == "-I" and place + 1 < len(options):
            following = options[place + 1]
            return following if isinstance(following, str) and following else "{}"
        if isinstance(option, str) and option.startswith("-I") and len(option) > 2:
            return option[2:]
        if isinstance(option, str) and option.startswith("--replace"):
            return option.partition("=")[2] or "{}"
    return None


# --- shells ----------------------------------------------------------------------------------------------------------


def _shell(name: str, words: tuple[Word, ...], around: Surroundings) -> list[Part]:
    """`sh -c SCRIPT`, with the options bash(1), dash(1) and zsh(1) take before it."""
    place, script = 1, False
    while place < len(words):
        word = words[place]
        if not isinstance(word, str):
            break
        if word in ("-", "--"):
            place += 1
            break
        if word[:1] not in ("-", "+"):
            break
        if word[0] == "-" and word[1:2] != "-" and "s" in word:
            return _from_input(name, words, around)
        if word in ("--version", "--help"):
            return [_part(("true",), around.within(words, place))]
        if word in ("--rcfile", "--init-file"):
            place += 2
            continue
        if word.startswith("--"):
            place += 1
            continue
        script = script or (word[0] == "-" and "c" in word)
        # -o and -O take the next word as a value, also at the end of a cluster
        place += 2 if word[-1] in "oO" else 1
    if place < len(words) and (script or not isinstance(words[place], str)):
        return _script(name, words, place, around)
    if script:
        return [_part(words, around, f"{name} is given no script")]
    if place < len(words):
        file = words[place]
        shown = plain(file) if isinstance(file, str) else "a file"
        return [_part(words, around, f"{name} runs {shown}, and what is in it can change until then")]
    return _from_input(name, words, around)


def _from_input(name: str, words: tuple[Word, ...], around: Surroundings) -> list[Part]:
    """A shell that reads its commands. By itself it is a person's; within a command it is fed by that."""
    why = f"{name} runs what it is given on its input"
    part = _part(words, around, why)
    return [part, _part(ANYTHING, around, why)] if around.depth else [part]


def _script(name: str, words: tuple[Word, ...], place: int, around: Surroundings) -> list[Part]:
    script = words[place]
    within = around.within(words, place, script=True)
    if not isinstance(script, str):
        return [_part(ANYTHING, within, f"the script of {name} is known only when it runs")]
    if name in ("fish", "csh", "tcsh"):
        return [_part(ANYTHING, within, f"no grammar for {name} is at hand")]
    from doorward.gates.shell_script import unfold_script  # tree-sitter, 10 ms: only where there is a script

    return unfold_script(name, script, within)


def _joined(words: tuple[Word, ...], place: int, around: Surroundings, shell: str, why: str) -> list[Part]:
    """Words that a program joins with blanks and gives to a shell."""
    rest = words[place:]
    within = around.within(words, place, script=True)
    if not rest:
        return [_part(words, around)]
    known = [word for word in rest if isinstance(word, str)]
    if len(known) != len(rest):
        return [_part(ANYTHING, within, f"{why}, and that is known only when it runs")]
    from doorward.gates.shell_script import unfold_script

    return unfold_script(shell, " ".join(known), within)


def _trap(words: tuple[Word, ...], around: Surroundings) -> list[Part]:
    """`trap 'COMMANDS' SIGNAL…` (POSIX.1-2024, 2.15): the commands run later."""
    if len(words) < 3 or words[1] in ("-", ""):
        return [_part(("true",), around)]
    return _joined(words[:2], 1, around, "sh", "it runs the text that trap is given")


# --- find and ssh ----------------------------------------------------------------------------------------------------


def _find(words: tuple[Word, ...], around: Surroundings) -> list[Part]:
    parts = [_part(words, around)]
    place = 1
    while place < len(words):
        word = words[place]
        place += 1
        if not isinstance(word, str) or word not in EXECUTING:
            continue
        inner: list[Word] = []
        start = place
        while place < len(words) and not (isinstance(words[place], str) and words[place] in EXECUTING[word]):
            each = words[place]
            if isinstance(each, str) and "{}" in each:
                inner.append(None if words[place + 1 : place + 2] != ("+",) else ...)
            else:
                inner.append(each)
            place += 1
        if inner:
            parts += unfold_words(inner, around.within(words, start))
    return parts


def _ssh(words: tuple[Word, ...], around: Surroundings) -> list[Part]:
    """`ssh [options] HOST COMMAND…` (ssh(1)): the command is a script for a shell on the other machine."""
    place, doubt = 1, ""
    while place < len(words):
        word = words[place]
        if not isinstance(word, str):
            return [_part(words, around, "the options of ssh are known only when it runs")]
        if word == "--" or not word.startswith("-"):
            place += word == "--"
            break
        step = _option(word, "46AaCfGgKkMNnqsTtVvXxYy", REMOTE_VALUES, (), ())
        if step is None:
            return [_part(words, around, f"{plain(word)} is an option of ssh that is not known")]
        value = word[2:] if len(word) > 2 else words[place + 1] if place + 1 < len(words) else ""
        setting = value.lower().lstrip() if isinstance(value, str) else "proxycommand"
        if word.startswith("-o") and setting.startswith(REMOTE_RUNS):
            doubt = f"{plain(str(value))} starts a program here"
        elif word.startswith("-F"):
            doubt = "a configuration of its own can start a program here"
        place += step
    host_end = place + 1
    remote = words[host_end:]
    if doubt or not remote:
        return [_part(words, around, doubt)]
    known = [word for word in remote if isinstance(word, str)]
    if len(known) != len(remote):
        return [_part(words, around, "the command for the other machine is known only when it runs")]
    from doorward.gates.shell_script import unfold_script

    # every command over there is judged as what it is here: ssh HOST and its words
    there = unfold_script("sh", " ".join(known), around.within(words, len(words)))
    head = words[:host_end]
    return [
        Part(
            (*head, *part.words),
            part.doubt if part.words else "it writes a file on the other machine",
            around.env,
            around.outer,
            moved=around.moved,
        )
        for part in there
    ]


def feeds_interpreter(words: Sequence[Word]) -> str:
    """The name of the interpreter that `words` call without a script of its own, so that it runs what comes through
    its input; "" for any other command."""
    name = program_name(words[0]) if words and isinstance(words[0], str) else base_name(words[0] if words else None)
    if name not in INTERPRETERS:
        return ""
    for word in words[1:]:
        if word is ... or word is None:
            return name
        if word in ("-", "-s", "/dev/stdin"):
            return name
        if not word.startswith("-"):
            return ""  # a script's name, or its text
        if name not in SHELLS and word[:2] in ("-c", "-e", "-m", "-E", "-n", "-p", "-r") and not word.startswith("--"):
            return ""
        if name in SHELLS and "c" in word[1:] and not word.startswith("--"):
            return ""
    return name

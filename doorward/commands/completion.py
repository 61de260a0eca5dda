"""`doorward completion SHELL`: what a shell needs to complete doorward's own words, for bash, zsh and fish.

Commands, their actions and options are taken from the help they print, so that nothing is listed twice. What stands
behind `--`, and every value of an option that has no list of its own, is left to the shell: files, and for `run` the
command's own completion.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Mapping
from typing import Final

from doorward.errors import UsageError
from doorward.named_tuple import NamedTuple
from doorward.options import HelpWanted, help_text, parse

_SHELLS: Final = ("bash", "zsh", "fish")
_EXAMPLES: Final = (
    'eval "$(doorward completion bash)"        # in ~/.bashrc; zsh alike, after compinit',
    "doorward completion fish | source           # in ~/.config/fish/config.fish",
)
# an option as `help_text` prints it
_OPTION: Final = re.compile(r"^  (?:(-\w), |    )(--[a-z-]+)(?: (\S+))?", re.MULTILINE)
_CHOICES: Final = re.compile(r"[a-z-]+(?:\|[a-z-]+)+")
ACTIONS: Final = {
    "allowlist": ("show", "test", "add", "remove", "learn", "presets"),
    "approvals": ("list", "show", "allow", "deny"),
    "completion": _SHELLS,
    "features": ("list", "enable", "disable"),
    "hook": ("claude-code", "codex", "generic", "install", "uninstall"),
    "import": ("srt", "codex", "claude-code", "fence", "nono"),
    "policy": ("check",),
    "sessions": ("prune", "import"),
}
"""Words that may stand right behind a command. A test holds them to what each command's help names."""


Options = dict[str, tuple[str, ...] | None]
"""Options to the values they choose from: () for a switch, None for any value."""


class Word(NamedTuple):
    """What one command takes; `actions` are words that may stand first."""

    options: Options
    actions: tuple[str, ...]


def main(args: list[str]) -> int:
    """Print the script. Raises UsageError."""
    try:
        parsed = parse("completion", (), args)
    except HelpWanted:
        what = "Print a script with which a shell completes doorward's commands and options."
        sys.stdout.write(help_text("doorward completion bash|zsh|fish", what, (), _EXAMPLES))
        return 0
    if len(parsed.words) != 1 or parsed.words[0] not in _SHELLS:
        raise UsageError(f"doorward completion: name one shell: {', '.join(_SHELLS)}")
    from doorward.__main__ import COMMANDS

    words = {name: _word(name) for name in COMMANDS}
    made = {"bash": _bash, "zsh": _zsh, "fish": _fish}[parsed.words[0]]
    sys.stdout.write(made(COMMANDS, words))
    return 0


def read_help(text: str) -> Options:
    """The options of a command, from its help."""
    options: Options = {}
    for short, long, value in _OPTION.findall(text):
        taken = () if not value else tuple(value.split("|")) if _CHOICES.fullmatch(value) else None
        options[long] = taken
        if short:
            options[short] = taken
    return options


def help_of(name: str, *action: str) -> str:
    """The help that a command prints."""
    module = __import__(f"doorward.commands.{name}", fromlist=["main"])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        module.main([*action, "--help"])
    return out.getvalue()


def _word(name: str) -> Word:
    options = read_help(help_of(name))
    actions = ACTIONS.get(name, ())
    if not options:  # each action has options of its own
        for action in actions:
            options |= read_help(help_of(name, action))
    return Word(options, actions)


def _cases(words: Mapping[str, Word]) -> tuple[str, str]:
    """The arms of two `case` statements: a command's words, and an option's values."""
    arms = [f"    {name}) words='{' '.join((*word.actions, *word.options))}' ;;" for name, word in words.items()]
    values = [
        f"    {name}:{option}) " + (f"words='{' '.join(choices)}'; any= ;;" if choices else "words=; any=1 ;;")
        for name, word in words.items()
        for option, choices in word.options.items()
        if choices != ()
    ]
    return "\n".join(arms), "\n".join(values)


def _body(commands: Mapping[str, str], words: Mapping[str, Word]) -> str:
    """Shared by bash and zsh. Sets `words`, and `any` where the shell's own completion serves."""
    arms, values = _cases(words)
    return f"""  any=
  if [ "$position" -eq 1 ]; then words='{' '.join(commands)}'; return; fi
  case "$command" in
{arms}
    *) words=; any=1 ;;
  esac
  case "$command:$before" in
{values}
  esac
"""


def _bash(commands: Mapping[str, str], words: Mapping[str, Word]) -> str:
    return f"""# bash completion for doorward
_doorward_words() {{
{_body(commands, words)}}}
_doorward() {{
  local words any i position=$COMP_CWORD command=${{COMP_WORDS[1]}}
  local before=${{COMP_WORDS[COMP_CWORD-1]}} now=${{COMP_WORDS[COMP_CWORD]}}
  COMPREPLY=()
  for ((i = 2; i < COMP_CWORD; i++)); do [ "${{COMP_WORDS[i]}}" = -- ] && return; done
  _doorward_words
  [ -n "$words" ] && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$now")
}}
complete -o default -F _doorward doorward
"""


def _zsh(commands: Mapping[str, str], words: Mapping[str, Word]) -> str:
    return f"""#compdef doorward
# zsh completion for doorward
_doorward_words() {{
{_body(commands, words).replace("words=", "found=")}}}
_doorward() {{
  local found any position=$((CURRENT - 1)) command=${{words[2]}} before=${{words[CURRENT-1]}}
  if (( ${{words[(I)--]}} > 0 && ${{words[(I)--]}} < CURRENT )); then _normal; return; fi
  _doorward_words
  if [ -n "$found" ]; then compadd -- ${{=found}}; fi
  if [ -n "$any" ] || [ "$position" -gt 1 ]; then _files; fi
}}
compdef _doorward doorward
"""


def _fish(commands: Mapping[str, str], words: Mapping[str, Word]) -> str:
    lines = ["# fish completion for doorward"]
    for name, what in commands.items():
        said = what.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"complete -c doorward -n __fish_use_subcommand -f -a {name} -d '{said}'")
    for name, word in words.items():
        inside = f"complete -c doorward -n '__fish_seen_subcommand_from {name}'"
        if word.actions:
            lines.append(f"{inside} -a '{' '.join(word.actions)}'")
        for option, choices in word.options.items():
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            given = "" if choices == () else " -r" if choices is None else f" -x -a '{' '.join(choices)}'"
            lines.append(f"{inside} {flag}{given}")
    return "\n".join(lines) + "\n"

"""PowerShell and cmd: what they are given, split into commands where it is so plain that no grammar is needed.

There is no grammar for either at hand. Plain words with plain separators are read; a variable, a bracket, a quote
within a word or anything else these shells act on makes the whole not understood.
"""

import re
from typing import Final

from doorward.gates.command_part import ANYTHING, Part, Word
from doorward.gates.known_commands import CMD
from doorward.gates.unfolding import Surroundings, unfold_words

_WORD: Final = r"[A-Za-z0-9_./\\:=+@\-]+"
_QUOTED: Final = r"'[^'\n]*'|\"[^\"`$%^\n]*\""
_TOKEN: Final = re.compile(rf"[ \t]*(?:(?P<word>{_WORD})|(?P<quoted>{_QUOTED})|(?P<end>&&|\|\||[;|&\n])|(?P<rest>\S))")
_LONGEST: Final = 16 << 10
_VALUES: Final = ("-executionpolicy", "-ep", "-version", "-psconsolefile", "-inputformat", "-outputformat",
                  "-windowstyle", "-w", "-configurationname", "-workingdirectory", "-wd", "-settingsfile")  # fmt: skip
"""Options of powershell.exe and pwsh with a value (about_PowerShell_exe, about_Pwsh)."""


def unfold_windows(name: str, words: tuple[Word, ...], around: Surroundings) -> list[Part]:
    """The parts of `powershell … -Command TEXT` or `cmd /c TEXT`."""
    place = 1
    while place < len(words):
        word = words[place]
        if not isinstance(word, str):
            break
        option = word.lower()
        place += 1
        if name == CMD:
            if option in ("/c", "/k", "/r"):
                return _commands(name, words, place, around)
            if not option.startswith("/"):
                break
        elif len(option) > 1 and "-command".startswith(option):
            return _commands(name, words, place, around)
        elif len(option) > 1 and ("-encodedcommand".startswith(option) or option in ("-ec", "-enc")):
            return _encoded(name, words, place, around)
        elif option in _VALUES:
            place += 1
        elif option.startswith("-f"):
            return [
                Part(words, f"{name} runs a file, and what is in it can change until then", around.env, around.outer)
            ]
        elif not option.startswith("-"):
            return _commands(name, words, place - 1, around)  # -Command is what Windows PowerShell takes for granted
    return [Part(words, f"{name} runs what it is given on its input", around.env, around.outer)]


def _encoded(name: str, words: tuple[Word, ...], place: int, around: Surroundings) -> list[Part]:
    """-EncodedCommand: base64 of UTF-16LE."""
    import base64

    word = words[place] if place < len(words) else None
    try:
        text = base64.b64decode(word, validate=True).decode("utf-16-le") if isinstance(word, str) else None
    except ValueError:
        text = None
    within = around.within(words, place, script=True)
    if text is None:
        return [Part(ANYTHING, f"the encoded command of {name} cannot be read", within.env, within.outer)]
    return [
        part._replace(risks=(*part.risks, f"{name} is given an encoded command")) for part in _split(name, text, within)
    ]


def _commands(name: str, words: tuple[Word, ...], place: int, around: Surroundings) -> list[Part]:
    known = [word for word in words[place:] if isinstance(word, str)]
    within = around.within(words, place, script=True)
    if len(known) != len(words[place:]) or not known:
        return [Part(ANYTHING, f"what {name} runs is known only when it does", within.env, within.outer)]
    return _split(name, " ".join(known), within)


def _split(name: str, text: str, around: Surroundings) -> list[Part]:
    """Commands of plain words; the name of each in lower case, without `.exe`."""
    parts: list[Part] = []
    words: list[Word] = []
    doubt = "" if len(text) <= _LONGEST else f"the script of {name} is longer than anybody reads"
    place = 0
    while place < len(text) and not doubt:
        found = _TOKEN.match(text, place)
        if found is None:
            break  # blanks at the end
        place = found.end()
        if found["word"] is not None:
            words.append(found["word"])
        elif found["quoted"] is not None:
            words.append(found["quoted"][1:-1])
        elif found["end"] is not None:
            parts += _one(words, around)
            words = []
            if name != CMD and found["end"] == "&":
                doubt = "& calls what stands behind it"
        else:
            doubt = f"{found['rest']!r} is not understood in a script of {name}"
        if found.end() < len(text) and found["end"] is None and not doubt and text[place] not in " \t;|&\n":
            doubt = f"a word of several pieces is not understood in a script of {name}"
    parts += _one(words, around)
    if doubt:
        parts.append(Part(ANYTHING, doubt, around.env, around.outer))
    return parts or [Part(("true",), "", around.env, around.outer)]


def _one(words: list[Word], around: Surroundings) -> list[Part]:
    if not words:
        return []
    first = words[0]
    name = first.lower().removesuffix(".exe") if isinstance(first, str) else first
    return unfold_words((name, *words[1:]), around)

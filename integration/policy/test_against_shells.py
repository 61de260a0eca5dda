"""What a shell runs is what was said it would: random scripts, every command that runs found among the parts.

All there is on PATH are programs that write down how they were called. Each call must match a part word by word, an
unknown word matching anything, or the script must have been called not understood.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from doorward.gates.action import Action
from doorward.gates.command_part import Word
from doorward.gates.unfolding import unfold

SHELLS = [shell for shell in ("bash", "dash", "zsh") if shutil.which(shell)]
RECORDER = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" > "$CALLED/$$"
"""

WORDS = (
    *("a", "b1", "-x", "--long=v", "3", "'q r'", '"d e"', "e\\ f", "g''h", '"i"\'j\'k', "$'l\\tm'", '"$v"', "$v"),
    *("${w}", "x=1", "n$v"),
    *('"n$v o"', "*", "?", "{p,q}", "~", "$((1+2))", "$(c1 in)", "`c2 in`", '"$(c3 in)"', "<(c4 in)", "\\\n"),
    *("@", "%", "s#t", '"\\$u"', "'\\u'", "$", "[ab]", "=c5", "-", "--", '""', "''", "é", "${v:-d}", "${z:-$(c6 in)}"),
    *('"a\nb"', "\\$x", "!", "^", "a\\;b", "'$(c9 no)'", '"`c7 in`"', "%s", "a,b", "3>f"),
)
NAMES = ("c0", "c1", "c2", "c3", "'c4'", '"c5"', "c\\6", "c''7", "$n", "nohup c8", "env A=1 c9", "command c0", "c0 c1")
JOINTS = (" && ", " || ", "; ", "\n", " | ", " & ", "&&", ";", "|", "\n\n", " ;\n", " |& ", "\n# c9 no\n", " # c9 no\n")
FORMS = (
    *("{0}", "{0}", "{0}", "{0}", "{0} > f", "{0} 2>&1", "{0} >/dev/null 2>f", "V=1 W='x y' {0}", "! {0}", "({0})"),
    *("{{ {0}; }}", "if {0}; then {1}; else {2}; fi", "while {0}; do {1}; break; done", "for i in 1 2; do {0}; done"),
    *("case x in x) {0};; *) {1};; esac", "fun() {{ {0}; }}; fun", "x=$({0})", 'y="$({0})"', "cat <<E\n$({0})\nE\n{1}"),
    *("cat <<'E'\nc9 no\nE\n{0}", "eval '{3}'", '{0} <<< "$({1})"', "until {0}; do {1}; break; done", "time {0}"),
    *("[[ -n $({0}) ]]", "n=c1; {0}", "v=w; {0}", "export Q=$({0})", "trap '{3}' EXIT; {0}", "(( $({0}) ))"),
    *("{0} | while {1}; do break; done", "for ((i=0;i<1;i++)); do {0}; done", "a=(1 $({0}))", "exec 3>f; {0}"),
    *("{0} <f", "c1 >f {0}"),
    *("{0} 3\n{1}", 'set -- x; {0} "$@"', "unset v; {0}", "case $v in\n(x) {0} ;;\n*)\n{1}\nesac", "{0} -\n{1} -"),
)


def script_of(chance: random.Random) -> str:
    """A few lines of commands in forms."""

    def command() -> str:
        words = [chance.choice(WORDS) for _ in range(chance.randrange(4))]
        return " ".join((chance.choice(NAMES), *words))

    def plain() -> str:
        return f"c{chance.randrange(9)} {chance.choice('abc')}"

    pieces = []
    for _ in range(chance.randrange(1, 5)):
        form = chance.choice(FORMS)
        pieces.append(form.format(command(), command(), command(), plain()))
        pieces.append(chance.choice(JOINTS))
    return "".join(pieces[:-1])


def called(shell: str, script: str, folder: Path) -> list[list[str]]:
    """The words of every command that the shell started."""
    # a folder for each script and a file for each command: what runs in the background writes when it likes
    log = folder / f"called-{len(list(folder.iterdir()))}"
    log.mkdir()
    subprocess.run(
        [shell, "-c", script],
        env={"PATH": str(folder / "bin"), "CALLED": str(log), "HOME": "/h"},
        cwd=folder / "work",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )
    # a command that is still running has an empty file
    written = [os.fsdecode(file.read_bytes()) for file in sorted(log.iterdir())]
    return [text.split("\0")[:-1] for text in written if text.endswith("\0")]


def matches(words: tuple[Word, ...], argv: list[str]) -> bool:
    """True if `argv` is what `words` can become."""
    if not words:
        return not argv
    first, rest = words[0], words[1:]
    if first is ...:
        return any(matches(rest, argv[taken:]) for taken in range(len(argv) + 1))
    return bool(argv) and (first is None or first == argv[0]) and matches(rest, argv[1:])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder to work in, and one with the programs."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "s").touch()
    (tmp_path / "bin").mkdir()
    recorder = tmp_path / "recorder"
    recorder.write_text(RECORDER)
    recorder.chmod(0o755)
    for name in (*(f"c{number}" for number in range(10)), "nohup", "env"):
        (tmp_path / "bin" / name).symlink_to(recorder)
    return tmp_path


def test_the_shells_of_ci_are_here() -> None:
    assert "bash" in SHELLS and "dash" in SHELLS


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("seed", range(int(os.environ.get("SCRIPT_SEEDS", "3"))))
def test_every_command_that_runs_was_found(seed: int, shell: str, folder: Path) -> None:
    chance = random.Random(f"{shell}{seed}")
    understood = ran = 0
    path = shutil.which(shell)
    assert path is not None
    for _ in range(60):
        script = script_of(chance)
        parts = unfold(Action("shell", ("sh" if shell == "dash" else shell, "-c", script), "/w", {"HOME": "/h"}))
        if any(part.words == (None, ...) for part in parts):
            continue
        understood += 1
        # wrappers are programs that write down their words too
        known = [words for part in parts for words in (part.words, *(layer.words for layer in part.outer)) if words]
        for argv in called(path, script, folder):
            ran += 1
            assert any(matches(words, argv) for words in known), (script, argv, [part.text for part in parts])
    assert understood > 5 and ran > 10, "most of the scripts say nothing"

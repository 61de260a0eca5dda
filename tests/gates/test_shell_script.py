"""Scripts taken apart: every command found, every certain word filled in, every doubt said."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import pytest

from doorward.gates.action import Action
from doorward.gates.command_part import Part
from doorward.gates.unfolding import unfold

Shell = Callable[..., Action]


def parts(shell: Shell, script: str, program: str = "bash") -> list[Part]:
    return list(unfold(shell(program, "-c", script, env={"PATH": "/usr/bin", "HOME": "/home/u"})))


def texts(shell: Shell, script: str) -> list[str]:
    """The commands in order; "?" for what is not known at all, "> FILE" for a redirection."""
    return [part.text or (f"> {' '.join(part.writes)}" if part.writes else "?") for part in parts(shell, script)]


@pytest.mark.parametrize("between", [" && ", "&&", " || ", ";", " ; ", "|", " | ", "|&", " & ", "\n"])
def test_every_command_of_a_line_is_a_part(shell: Shell, between: str) -> None:
    """P-AP-01, P-AP-02"""
    assert texts(shell, between.join(("ls", "cd x", "python3 y"))) == ["ls", "cd x", "python3 y"]
    assert texts(shell, "rm -rf d && ls | wc -l ; echo ok") == ["rm -rf d", "ls", "wc -l", "echo ok"]


def test_a_line_ends_a_command_also_where_the_grammar_reads_on(shell: Shell) -> None:
    """tree-sitter-bash counts newlines as blanks and at times takes the next line for more words."""
    script = 'case "$n" in esac\nenv A=C sort "$O/x" | sort -rn | head -n 3\nrm -f "$O" && ls \'%s\n\' "d" "l"\n'
    for lines in (script, '""""|n|3\n""&&\'\'""""', "a | b 3\nrm x"):
        found = parts(shell, lines)
        assert not any(len(part.words) > 1 and "rm" in part.words[1:] for part in found), lines
    assert "rm -f …" in texts(shell, script)
    assert texts(shell, "ls 3 # rm x\nrm y") == ["ls 3", "rm y"]
    assert texts(shell, "ls \\\n a") == ["ls a"]


def test_a_carriage_return_separates_and_is_a_doubt(shell: Shell) -> None:
    """P-AP-01"""
    assert texts(shell, "ls\r\nrm x") == ["ls", "rm x", "?"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo $(rm x)", ["rm x", "echo …"]),
        ("echo `rm x`", ["rm x", "echo …"]),
        ('echo "a $(rm x) b"', ["rm x", "echo …"]),
        ("echo ${a:-$(rm x)}", ["rm x", "echo …"]),
        ("cat <(rm x)", ["rm x", "cat …"]),
        ("eval 'rm x'", ["rm x"]),
        ("eval rm x", ["rm x"]),
        ("exec rm x", ["rm x"]),
        ("command rm x", ["rm x"]),
        ("builtin cd x", ["cd x"]),
        ("trap 'rm x' EXIT", ["rm x"]),
        ("x=$(git push)", ["git push"]),
        ("export X=$(git push)", ["git push"]),
        ("a=(1 $(git push))", ["git push"]),
        ("[[ -n $(git push) ]]", ["git push"]),
        ("case $(git push) in a) ls;; esac", ["git push", "ls"]),
        ("for i in $(git push); do ls; done", ["git push", "ls"]),
        ("cat <<E\n$(rm x)\nE", ["rm x", "cat"]),
        ('cat <<< "$(rm x)"', ["cat", "rm x"]),
        ("ls > $(git push)", ["git push", "ls", "?"]),
        ("(( $(git push) ))", ["git push"]),
    ],
)
def test_commands_within_words(shell: Shell, script: str, expected: list[str]) -> None:
    """P-AP-03, P-AP-12"""
    assert sorted(texts(shell, script)) == sorted(expected)


@pytest.mark.parametrize(
    "script",
    [
        "git push &",
        "(git push)",
        "{ git push; }",
        "! git push",
        "if git push; then :; fi",
        "while git push; do :; done",
        "until git push; do :; done",
        "for i in 1; do git push; done",
        "for ((i=0;i<3;i++)); do git push; done",
        "case a in a) git push;; esac",
        "f() { git push; }; f",
        "function f { git push; }",
        "select x in a; do git push; done",
        "time git push",
        "coproc git push",
        "git push 2>&1",
        "A=b git push",
        "git \\\n push",
        "git push # later",
        "if true; then ls; elif git push; then ls; else ls; fi",
    ],
)
def test_commands_within_commands(shell: Shell, script: str) -> None:
    """P-AP-10, P-AP-12"""
    found = parts(shell, script)
    assert ("git", "push") in [part.words for part in found]
    assert not any(part.doubt for part in found)


@pytest.mark.parametrize(
    "script", ["r''m x", "'rm' x", 'r"m" x', "r\\m x", "$'\\x72\\x6d' x", "$'\\162m' x", "a=rm; $a x"]
)
def test_a_name_that_is_written_otherwise_is_the_name(shell: Shell, script: str) -> None:
    """P-AP-08"""
    assert texts(shell, script) == ["rm x"]


@pytest.mark.parametrize(
    "script",
    [
        "rm$IFS-rf$IFS.",
        "{rm,-rf,x}",
        "$a x",
        "a=rm; a=ls; $a x",
        "false && a=ls; $a x",
        "a=rm; unset a; $a x",
        "if true; then a=rm; fi; $a x",
        "read a; $a x",
        "a=ls; a[0]=rm; $a x",
        "a=ls; declare -n r=a; r=rm; $a x",
        "a=ls; b=rm; declare \"a=$b\"; $a x",
        "trap 'a=rm' DEBUG; a=ls; $a x",
        "a=ls; ((a=1)); $a x",
        "a+=ls; $a x",
        "IFS=x; a=rx; $a x",
        "${a} x",
        "${!a} x",
        "r? x",
        "~/x",
        "$'\\c' x",
    ],
)
def test_a_program_that_is_not_certain_is_not_guessed(shell: Shell, script: str) -> None:
    """P-AP-08"""
    home = {"PATH": "/usr/bin"}
    found = unfold(shell("bash", "-c", script, env=home))
    assert any(part.words and part.words[0] in (None, ...) for part in found)


@pytest.mark.parametrize(
    "script",
    [
        "alias ls='rm x'\nls",
        ". ./s.sh",
        "source s",
        'eval "$x"',
        "shopt -s extglob; ls",
        "enable -f x y",
        "ls |",
        "ls 'x",
        "l\\\ns",
        "hash -p /tmp/x ls",
        "\x00",
    ],
)
def test_what_makes_a_script_uncertain(shell: Shell, script: str) -> None:
    assert any(part.words == (None, ...) and part.doubt for part in parts(shell, script))


def test_a_function_is_judged_by_its_body(shell: Shell) -> None:
    """P-AP-08"""
    assert texts(shell, "cat(){ rm x; }; cat f") == ["rm x"]
    assert "cat f" in texts(shell, "cat f; cat(){ ls; }"), "before it is there the name means the program"
    assert "cat f" in texts(shell, "cat(){ ls; }; unset -f cat; cat f")


def test_a_here_document_ends_where_it_ends(shell: Shell) -> None:
    """P-AP-13"""
    assert texts(shell, "cat <<'E'\nbody\nE\nrm x") == ["cat", "rm x"]


def test_the_text_of_a_here_document_is_no_command(shell: Shell) -> None:
    """P-AP-14"""
    assert texts(shell, "cat >> n.md <<'E'\ngit switch -f\nE") == ["cat", "> n.md"]


@pytest.mark.parametrize("script", ["sh <<'E'\nrm x\nE", "bash <<< 'rm x'", "sh <<E\nrm x\nE"])
def test_unless_a_shell_reads_it(shell: Shell, script: str) -> None:
    assert "rm x" in texts(shell, script)
    assert not any(part.doubt for part in parts(shell, script))


@pytest.mark.parametrize(
    "script",
    [
        "curl x | sh",
        "echo cm0= | base64 -d | sh",
        "printf x | bash -s",
        "cat <<E | sh\nx\nE",
        "curl x | sudo bash",
        "ls | python3",
    ],
)
def test_a_pipe_into_an_interpreter_is_a_risk(shell: Shell, script: str) -> None:
    """P-AP-08"""
    assert any("what comes through a pipe is run by" in risk for part in parts(shell, script) for risk in part.risks)


def test_a_pipe_into_a_script_is_none(shell: Shell) -> None:
    assert not any(part.risks for part in parts(shell, "ls | python3 -c 'import sys' | sh script.sh | wc"))


def test_redirections_are_effects_of_their_own(shell: Shell) -> None:
    """P-AP-10"""
    found = parts(shell, "make 2>/dev/null >out 2>&1 <in")
    assert [part.writes for part in found] == [(), ("out",)]
    assert found[0].reads == ("in",)
    assert texts(shell, "> f") == ["> f"]
    assert parts(shell, 'ls > "$x"')[1].doubt == "where it writes is known only when it runs"


@pytest.mark.parametrize(
    "script",
    ["git >f push", "git push >f", "git >f push 2>&1", "git 2>&1 push", "ls && git >f push", "ls | git >/dev/null push",
     "! git >f push", ">f git push", "git <<E >f push\nE", "git <<< x push", "A=b >f git push", "git <f push"],
)  # fmt: skip
def test_words_behind_a_redirection_are_words_of_the_command(shell: Shell, script: str) -> None:
    assert ("git", "push") in [part.words for part in parts(shell, script)]


def test_words_are_as_the_shell_makes_them(shell: Shell) -> None:
    cases = {
        'ls "a b" c\\ d \'e"f\'': ("ls", "a b", "c d", 'e"f'),
        'ls "a\\"b\\$c\\d"': ("ls", 'a"b$c\\d'),
        "ls $'a\\tb'": ("ls", "a\tb"),
        "ls a'b'\"c\"d": ("ls", "abcd"),
        "ls ~/x $HOME/y ~ ~u": ("ls", "/home/u/x", "/home/u/y", "/home/u", None),
        'ls *.py "*.py"': ("ls", ..., "*.py"),
        'ls $x "$x" "$@" "${a[@]}" ${x}': ("ls", ..., None, ..., ..., ...),
        "ls {a,b} a{1..3} {}": ("ls", ..., ..., "{}"),
        "ls $((1+2)) <(ls)": ("ls", None, None),
        'a=x-1; ls $a "$a" ${a}': ("ls", "x-1", "x-1", "x-1"),
        "a='x y'; ls $a \"$a\"": ("ls", ..., "x y"),
        "ls \"\" ''": ("ls", "", ""),
        "ls \\*": ("ls", "*"),
        "ls ''~ 'a'~/b 'c'#d": ("ls", "~", "a~/b", "c#d"),
    }
    for script, expected in cases.items():
        found = [part.words for part in parts(shell, script) if part.words[:1] == ("ls",)]
        assert found[-1] == expected, script


@pytest.mark.parametrize(
    "script",
    ["[[ a && rm x ]]", "ls &>f rm", "((rm x))", "r$'m' x", "ls |& rm", "cat <<< x", "cat <(ls)", "a=(b)"],
)
def test_what_a_plain_sh_reads_otherwise_is_a_doubt_there(shell: Shell, script: str) -> None:
    assert any(part.words == (None, ...) for part in parts(shell, script, "sh"))


def test_brackets_are_a_command(shell: Shell) -> None:
    assert not any(part.doubt for part in parts(shell, '[ -f x ] && [ "$a" = b ] || [ ! -d "$(ls)" ]', "sh"))
    assert any(part.doubt for part in parts(shell, "[ a > f ]"))
    assert ("rm", "x", "]") in [part.words for part in parts(shell, "[ a && rm x ]")]


@pytest.mark.parametrize("script", ["repeat 3 rm x", "noglob rm x", "for x (a b) rm $x", "ls &!rm x"])
def test_forms_that_only_zsh_knows_are_a_doubt(shell: Shell, script: str) -> None:
    assert any(part.words == (None, ...) for part in parts(shell, script, "zsh"))


def test_words_that_zsh_expands_are_not_certain(shell: Shell) -> None:
    assert parts(shell, "echo =ls", "zsh")[0].words == ("echo", ...)
    assert parts(shell, "echo =ls", "bash")[0].words == ("echo", "=ls")


def test_variables_for_a_command_reach_it_and_those_after_it(shell: Shell) -> None:
    first, second = parts(shell, "A=1 ls; B=2; wc")
    assert (first.env, second.env) == ({"A": "1"}, {"B": "2"})
    assert parts(shell, "PATH=.:$PATH ls")[0].env == {"PATH": "\0"}, "set, to what is not known"


def test_a_relative_target_is_another_one_after_cd(shell: Shell) -> None:
    assert [part.moved for part in parts(shell, "rm a; cd x; rm a")] == [False, False, True]


def test_hostile_scripts_end_soon_and_are_not_understood(shell: Shell) -> None:
    began = monotonic()
    for script in (
        "ls;" * (1 << 18),
        "(" * 1000 + "ls" + ")" * 1000,
        "echo " + "$(" * 1000 + "ls" + ")" * 1000,
        "{ " * 5000,
        "if " * 5000,
        "ls;" * 20000,
        '"' + "a" * 60000,
        "a=" + "$a" * 10000 + "; $a",
        "cat " + "<<E " * 2000,
        "\\\n" * 30000 + "$x",
    ):
        assert any(part.doubt for part in parts(shell, script)), script[:20]
    assert monotonic() - began < 60


def test_bytes_that_are_no_text_are_words_like_others(shell: Shell) -> None:
    assert parts(shell, "ls a\udcff '\udcfe'")[0].words == ("ls", "a\udcff", "\udcfe")

"""The policy as a run meets it: unwrapped, taken apart, the strictest part counting."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

import pytest

from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.gates.policy_gate import PolicyGate
from doorward.gates.policy_starlark import Source, evaluate
from doorward.gates.resolver import resolve
from doorward.gates.verdict import Verdict

WORKSPACE = "/srv/project"
PLANTED = (WORKSPACE, "/tmp")


def locate(name: str, path: str, cwd: str) -> str | None:
    """Everything is in /usr/bin, and in whatever folder of the workspace stands before it."""
    for folder in path.split(":"):
        if folder in ("/usr/bin", ".", f"{WORKSPACE}/bin"):
            return posixpath.normpath(posixpath.join(cwd, folder, name))
    return None


class Judge:
    """A dial with rules; `untrusted` unless said otherwise, so that nothing passes for want of risk."""

    def __init__(self, rules: str, approval: str = "untrusted") -> None:
        gate = PolicyGate(evaluate([Source("a.rules", rules)], 10), PLANTED, locate, posixpath.normpath)
        self.dial = Dial(workspace=WORKSPACE, approval_policy=approval, policy=gate, locate=locate)

    def of(self, *argv: str, **fields: object) -> Verdict:
        env = {"PATH": "/usr/bin", "HOME": "/home/u"}
        program = locate(argv[0], "/usr/bin", WORKSPACE) if "/" not in argv[0] else None
        action = Action("shell", argv, WORKSPACE, env, program=program)._replace(**fields)
        return resolve(self.dial, action)

    def script(self, text: str, shell: str = "sh") -> str:
        return str(self.of(shell, "-c", text).verdict)


ALLOW = "".join(
    f'prefix_rule(pattern=["{name}"])\n' for name in ("echo", "make", "cargo")
) + 'prefix_rule(pattern=["git", ["fetch", "commit"]])\n'
DENY_PUSH = 'prefix_rule(pattern=["git", "push"], decision="forbidden", justification="ask a maintainer")\n'
DENY_RM = 'prefix_rule(pattern=["rm"], decision="forbidden")\n'


@pytest.mark.parametrize("between", [" && ", " || ", ";", " | ", " |& ", " & ", "\n"])
def test_a_line_is_as_strict_as_its_strictest_part(between: str) -> None:
    """P-AP-01"""
    judge = Judge(ALLOW + DENY_RM)
    assert judge.script(between.join(("make a", "cargo b")), "bash") == "allow"
    assert judge.script(between.join(("make a", "python3 y")), "bash") == "ask"
    assert judge.script(between.join(("make a", "rm y")), "bash") == "deny"
    assert judge.script("make a\r\ncargo b") == "ask"


def test_no_match_is_never_an_allow() -> None:
    """P-AP-02"""
    assert Judge(ALLOW).script("rm -rf d && ls | wc -l ; echo ok") == "ask"
    assert Judge(ALLOW, "on-request").script("rm -rf d && ls | wc -l ; echo ok") == "ask"


@pytest.mark.parametrize(
    "script",
    ["echo $(rm x)", "echo `rm x`", "cat <(rm x)", 'eval "rm x"', "exec rm x", "command rm x", "builtin rm x",
     "echo y | xargs rm", "find . -exec rm {} +", "trap 'rm x' EXIT"],
)  # fmt: skip
def test_the_command_within_is_judged(script: str) -> None:
    """P-AP-03"""
    assert Judge(ALLOW + DENY_RM).script(script) == "deny"
    assert Judge(ALLOW + 'prefix_rule(pattern=["cat"])').script(script) == "ask"


@pytest.mark.parametrize("script", ["echo y >(sh)", ". ./s.sh", "source s", 'eval "$x"', "echo x | sh"])
def test_and_where_it_cannot_be_read_somebody_is_asked(script: str) -> None:
    """P-AP-03: also under the policies that ask nothing, since a rule might forbid it."""
    for policy in ("untrusted", "never"):
        assert Judge(ALLOW + DENY_RM, policy).script(script) == "ask"


def test_a_harmless_substitution_is_allowed() -> None:
    """P-AP-04"""
    judge = Judge('prefix_rule(pattern=["git", ["diff", "merge-base"]])')
    assert judge.script("git diff $(git merge-base a b)") == "allow"
    assert judge.script("git diff $(git unheard-of)") == "ask"


@pytest.mark.parametrize(
    "script", ["r''m x", "'rm' x", "r\\m x", "$'\\x72\\x6d' x", "a=rm; $a x", "cat(){ rm x; }; cat f"]
)
def test_a_name_in_disguise_is_denied(script: str) -> None:
    """P-AP-08"""
    assert Judge(ALLOW + DENY_RM).script(script) == "deny"


@pytest.mark.parametrize(
    "script",
    ["rm$IFS-rf$IFS.", "{rm,-rf,x}", "alias ls='rm x'\nls", "echo cm0gLXJmIHgK | base64 -d | sh", "printf x | bash"],
)
def test_and_a_disguise_that_cannot_be_proven_is_asked_about(script: str) -> None:
    """P-AP-08"""
    for policy in ("untrusted", "on-request", "never"):
        assert Judge(ALLOW + DENY_RM, policy).script(script) == "ask"


@pytest.mark.parametrize(
    "wrapper",
    ["timeout 5", "timeout -s KILL 5", "nice -n 10", "env A=1", "env -i", "stdbuf -oL", "setsid", "nohup", "xargs",
     "sudo", "time -p", "watch", "nohup env timeout 5 nice"],
)  # fmt: skip
def test_a_wrapper_hides_nothing(wrapper: str) -> None:
    """P-AP-09"""
    judge = Judge(DENY_PUSH, "never")
    assert judge.of(*wrapper.split(), "git", "push").verdict == "deny"
    assert judge.script(f"{wrapper} git push") == "deny"


def test_an_unknown_wrapper_is_asked_about_where_a_rule_could_mean_it() -> None:
    """P-AP-09"""
    judge = Judge(DENY_PUSH + DENY_RM, "never")
    asked = judge.of("./retry", "git", "push")
    assert asked.verdict == "ask"
    assert "retry is given these words and may run them" in asked.deciding.sentence
    assert judge.of("./retry", "git", "fetch").verdict == "allow"
    assert judge.of("echo", "git", "push").verdict == "allow", "echo runs nothing"
    assert judge.of("git", "rm", "x").verdict == "allow", "a sub-command is no program"


@pytest.mark.parametrize("program", ["bash -lc", "/usr/bin/env bash -c", "zsh -c", "sh -c"])
def test_the_same_command_has_the_same_verdict_however_it_is_wrapped(program: str) -> None:
    """P-AP-10"""
    for rules in (ALLOW, ALLOW.replace("])", '], decision="prompt")'), DENY_PUSH + DENY_RM):
        judge = Judge(rules)
        for command in ("make x", "git push", "git fetch", "cargo x", "unheard-of"):
            expected = judge.of(*command.split()).verdict
            for form in (command, f"A=b {command}", f"{command} 2>&1", f"{command} >/dev/null"):
                assert judge.of(*program.split(), form).verdict == expected, (rules, form)


def test_a_redirection_is_an_effect_of_its_own() -> None:
    """P-AP-10"""
    assert Judge(ALLOW).script("make x > out") == "ask"
    assert Judge(ALLOW, "on-request").script("make x > out") == "allow"


def test_a_rule_about_a_shell_is_about_the_persons_own_use_of_it() -> None:
    """P-AP-11"""
    judge = Judge('prefix_rule(pattern=["bash", "-lc"], decision="forbidden")\nprefix_rule(pattern=["date"])')
    assert judge.of("date").verdict == "allow"
    assert judge.of("bash", "-lc", "date").verdict == "deny"
    assert judge.of("nohup", "bash", "-lc", "date").verdict == "deny"


@pytest.mark.parametrize(
    "argv",
    [
        ("bash", "-ic", "git push"),
        ("sh", "-xec", "git push"),
        *(("sh", "-c", text) for text in ("x=$(git push)", "git push &", "(git push)", "{ git push; }", "! git push",
                                          "if git push; then :; fi", "git -C sub push", "git -c a=b push")),
    ],
)  # fmt: skip
def test_clusters_and_assignments(argv: tuple[str, ...]) -> None:
    """P-AP-12"""
    assert Judge(DENY_PUSH, "never").of(*argv).verdict == "deny"


def test_here_documents() -> None:
    """P-AP-13, P-AP-14"""
    judge = Judge('prefix_rule(pattern=["git", "switch", "-f"], decision="forbidden")\n' + DENY_RM, "on-request")
    assert judge.script("cat <<'E'\nbody\nE\nrm x") == "deny"
    assert judge.script("cat >> n.md <<'E'\ngit switch -f\nE") == "allow"


def test_a_command_for_another_machine() -> None:
    """P-AP-15"""
    judge = Judge('prefix_rule(pattern=["ssh", "h", "git", "status"])', "on-request")
    assert judge.of("ssh", "h", "git", "status").verdict == "allow"
    assert judge.of("ssh", "h", "git status && rm -rf x").verdict == "ask"
    assert judge.of("ssh", "h", "git", "status", ";", "rm", "x").verdict == "ask"
    assert judge.of("ssh", "-o", "ProxyCommand=./x", "h").verdict == "ask"
    assert judge.of("ssh", "h", "--", "git", "status").verdict == "ask"


def test_a_script_is_run_by_the_interpreter_it_names(tmp_path: Path) -> None:
    """P-AP-16: a copy under another name is out of reach of names; what it does the sandbox holds."""
    judge = Judge('prefix_rule(pattern=["python3"], decision="forbidden")', "never")
    script = tmp_path / "s.py"
    for line in ("#!/usr/bin/python3", "#! /usr/bin/env python3", "#!/usr/bin/env -S python3 -u"):
        script.write_text(f"{line}\nprint()\n")
        expected = "ask" if "-S" in line else "deny"
        assert judge.of(str(script)).verdict == expected, line
        assert judge.script(f"nice {script} x") == expected
    assert judge.of("env", "python3", "-V").verdict == "deny"
    assert judge.script("python3 -V") == "deny"
    assert judge.of("./p", "-V").verdict == "allow"


def test_one_name_of_a_shared_binary(tmp_path: Path) -> None:
    """P-AP-17"""
    multi = tmp_path / "multi"
    multi.write_bytes(b"\x7fELF")
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(multi)
    rules = 'prefix_rule(pattern=["a"], decision="forbidden")'
    judge = Judge(rules, "never")
    judge.dial = judge.dial._replace(
        policy=PolicyGate(evaluate([Source("a.rules", rules)], 10), PLANTED, locate, os.path.realpath)
    )
    denied = judge.of(str(tmp_path / "a"))
    assert denied.verdict == "deny"
    assert "by its name only: a is multi, which can have other names" in denied.deciding.sentence
    assert judge.of(str(tmp_path / "b")).verdict == "allow"


def test_the_same_base_name_is_not_the_same_program() -> None:
    """P-AP-18"""
    rules = 'prefix_rule(pattern=["git", "commit"])\nprefix_rule(pattern=["make"])'
    judge = Judge(rules)
    assert judge.of("git", "commit").verdict == "allow"
    assert judge.of("/usr/bin/git", "commit").verdict == "allow"
    for program in ("./git", "/tmp/git", "../bin/git", f"{WORKSPACE}/bin/git", "/opt/x/git"):
        assert judge.of(program, "commit").verdict == "ask", program
    assert judge.script("PATH=.:$PATH git commit") == "ask"
    assert judge.of("env", f"PATH={WORKSPACE}/bin:/usr/bin", "git", "commit").verdict == "ask"
    assert judge.of("git", "commit", program=f"{WORKSPACE}/bin/git").verdict == "ask"
    assert judge.of("./nice", "git", "commit").verdict == "ask", "nor is the wrapper"


def test_host_executables_say_which_paths_a_name_stands_for() -> None:
    rules = 'host_executable(name="git", paths=["/opt/x/git"])\nprefix_rule(pattern=["git"])'
    judge = Judge(rules)
    assert judge.of("/opt/x/git", "commit").verdict == "allow"
    assert judge.of("/usr/bin/git", "commit").verdict == "ask"
    assert judge.of("git", "commit").verdict == "ask", "PATH finds another"


def test_forbidden_means_the_base_name_and_a_path_means_the_file() -> None:
    judge = Judge(DENY_PUSH + 'prefix_rule(pattern=["/usr/bin/make"], decision="forbidden")', "never")
    for program in ("git", "./git", "/tmp/x/git"):
        assert judge.of(program, "push").verdict == "deny"
    assert judge.of("make").verdict == "deny"
    assert judge.of("/usr/bin/../bin/make").verdict == "deny"
    assert judge.of("./make").verdict == "allow"


def test_an_allow_of_a_wrapper_opens_nothing() -> None:
    judge = Judge('prefix_rule(pattern=["sudo"])\nprefix_rule(pattern=["sh", "-c"])\nprefix_rule(pattern=["env"])')
    assert judge.of("sudo", "make").verdict == "ask"
    assert judge.script("make") == "ask"
    assert judge.of("env", "A=1", "make").verdict == "ask"
    wider = Judge('prefix_rule(pattern=["sudo", "make"])\nprefix_rule(pattern=["sh", "-c", "make; cargo x"])')
    assert wider.of("sudo", "make", "install").verdict == "allow"
    assert wider.script("make; cargo x") == "allow"
    assert wider.script("make; cargo y") == "ask"


def test_a_part_without_a_rule_is_judged_as_if_it_stood_alone() -> None:
    judge = Judge('prefix_rule(pattern=["rm", "-rf", "build"])', "on-request")
    assert judge.script("rm -rf build && make") == "allow"
    assert judge.script("rm -rf build && rm -rf src") == "ask"
    assert judge.script("rm -rf build; git push --force") == "ask"
    assert Judge('prefix_rule(pattern=["make"])').script("make && ls | wc -l") == "allow"


def test_a_forbidden_rule_beats_the_bypass() -> None:
    judge = Judge(DENY_PUSH)
    judge.dial = judge.dial._replace(bypass_approvals_and_sandbox=True)
    assert judge.script("nice git push") == "deny"
    assert judge.script("make") == "allow"


def test_an_approval_asked_for_by_a_doubt_is_told_so() -> None:
    asked = Judge(DENY_PUSH, "never").of("sh", "-c", "git $x")
    assert (asked.verdict, asked.gate) == ("ask", "approval")
    assert asked.deciding.sentence == (
        "whether the policy rule at a.rules:1 means `git …` cannot be told (not all of its words are known before it "
        "runs), so a person is asked: ask a maintainer"
    )


def test_sentences_name_the_part_that_is_meant() -> None:
    denied = Judge(DENY_PUSH).of("sh", "-c", "make && git push --force")
    assert "forbids `git push --force`: ask a maintainer; no option overrides that" in denied.deciding.sentence

"""What the tables know of single commands; the safe side of every doubt."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doorward.gates.action import Action
from doorward.gates.command_knowledge import knowledge_of

Shell = Callable[..., Action]
PLANTED = ("/srv/project", "/tmp")


def reads(shell: Shell, line: str, **fields: object) -> bool:
    return knowledge_of(shell(*line.split(), **fields), PLANTED).read_only


@pytest.mark.parametrize(
    "line",
    [
        "find . -exec rm {} +",
        "find . -execdir x",
        "find . -ok x",
        "find . -okdir x",
        "find . -delete",
        "find . -fls f",
        "find . -fprint f",
        "find . -fprint0 f",
        "find . -fprintf f x",
    ],
)
def test_find_that_writes_or_runs_is_not_read_only(shell: Shell, line: str) -> None:
    """P-AP-05"""
    assert not reads(shell, line)
    assert reads(shell, "find . -name *.py")


@pytest.mark.parametrize(
    "line",
    [
        "git -c core.pager=x log",
        "git --config-env=a=b log",
        "git --exec-path=. status",
        "git --git-dir=.. status",
        "git --work-tree /x status",
        "git --namespace=x log",
        "git -p status",
        "git --paginate show",
        "git",
        "git -C",
        "git diff --output=f",
        "git diff --outp f",
        "git log --ext-diff",
        "git branch new",
        "git branch -D old",
        "git remote add x y",
        "git stash",
        "git push",
    ],
)
def test_git_with_options_that_name_something_is_not_read_only(shell: Shell, line: str) -> None:
    """P-AP-06, P-AP-19"""
    assert not reads(shell, line)


@pytest.mark.parametrize(
    "line",
    ["git log -p", "git show -p HEAD", "git -C sub status", "git --no-pager diff", "git branch -a", "git tag"],
)
def test_git_that_only_looks_is_read_only(shell: Shell, line: str) -> None:
    """P-AP-06"""
    assert reads(shell, line)


def test_variables_that_name_a_program_count_too(shell: Shell) -> None:
    """P-AP-07"""
    path = {"PATH": "/usr/bin"}
    assert reads(shell, "git status", env=path)
    assert not reads(shell, "git status", env={**path, "GIT_EXTERNAL_DIFF": "./x"})
    assert not reads(shell, "git status", env={**path, "GIT_CONFIG_COUNT": "1"})
    assert not reads(shell, "rg pat", env={**path, "RIPGREP_CONFIG_PATH": "./c"})


@pytest.mark.parametrize(
    "line", ["rg --pre ./x pat", "rg --pre=./x pat", "rg --hostname-bin ./x", "rg -z pat", "rg -iz x"]
)
def test_a_search_that_runs_a_program_is_not_read_only(shell: Shell, line: str) -> None:
    """P-AP-07"""
    assert not reads(shell, line)
    assert reads(shell, "rg pat")


@pytest.mark.parametrize(
    "line",
    [
        "sort -o f f",
        "sort -uo f f",
        "sort --out=f f",
        "sort f --output f",
        "sed -i s/a/b/ f",
        "sed -n 1w/etc/x f",
        "sed s/a/b/ f",
        "tee f",
        "uniq a b",
        "date -s tomorrow",
        "date 01010000",
        "tree -o f",
        "file -C -m x",
        "hostname new",
        "env touch a",
        "xargs touch",
        "unheard-of",
    ],
)
def test_writing_forms_and_unknown_commands_are_not_read_only(shell: Shell, line: str) -> None:
    """P-AP-19"""
    assert not reads(shell, line)


@pytest.mark.parametrize(
    "line",
    ["sort f", "sort -u -k 2 f", "sed -n 1,20p f g", "sed -n 7p f", "date +%s", "uniq a", "cat -- -o", "sort -- -o"],
)
def test_reading_forms_are_read_only(shell: Shell, line: str) -> None:
    assert reads(shell, line)


@pytest.mark.parametrize(
    ("line", "fields", "genuine"),
    [
        ("./git status", {}, False),
        ("/tmp/git status", {}, False),
        ("../bin/cat f", {}, False),
        ("/usr/bin/cat f", {}, True),
        ("cat f", {"env": {"PATH": ".:/bin"}}, False),
        ("cat f", {"env": {"PATH": "/bin:"}}, False),
        ("cat f", {"env": {"PATH": "/srv/project/bin:/bin"}}, False),
        ("cat f", {"env": {"PATH": "/srv/project2/bin:/bin"}}, True),
        ("cat f", {"env": {"PATH": "/srv/project/bin:/bin"}, "program": "/bin/cat"}, True),
        ("cat f", {"program": "/srv/project/bin/cat"}, False),
        ("cat f", {"env": {}}, True),
    ],
)
def test_a_namesake_is_not_believed(shell: Shell, line: str, fields: dict[str, object], genuine: bool) -> None:
    """P-AP-18"""
    assert reads(shell, line, **fields) is genuine


@pytest.mark.parametrize(
    ("line", "writes"),
    [
        ("tee /etc/hosts", ("/etc/hosts",)),
        ("tee -a a b", ("a", "b")),
        ("tee --append -- -x", ("-x",)),
        ("tee -", ()),
        ("touch -d yesterday a", ("a",)),
        ("touch --date yesterday a", ("a",)),
        ("rm -rf build", ("build",)),
        ("cp -r a b /data", ("/data",)),
        ("cp a", ()),
        ("mv /etc/x y", ("/etc/x", "y")),
        ("chmod -R 755 a", ("a",)),
        ("dd if=a of=/dev/sda", ("/dev/sda",)),
        ("mkdir a", ("a",)),
        ("mkdir -p /usr/lib", ()),
        ("cp -t /data a", ()),
        ("tee --unheard-of a", ()),
        ("make install", ()),
    ],
)
def test_literal_targets_of_simple_writers(shell: Shell, line: str, writes: tuple[str, ...]) -> None:
    assert knowledge_of(shell(*line.split()), PLANTED).writes == writes


@pytest.mark.parametrize(
    "argv", [("sh", "script.sh"), ("/bin/bash", "-lc", "ls; eval $x"), ("busybox",), ("sh",), ("fish", "-c", "ls")]
)
def test_a_script_that_cannot_be_read_is_not_understood(shell: Shell, argv: tuple[str, ...]) -> None:
    knowledge = knowledge_of(shell(*argv), PLANTED)
    assert not knowledge.understood and not knowledge.read_only and knowledge.writes == ()


def test_what_a_script_writes_is_weighed_and_left_to_the_kernel(shell: Shell) -> None:
    knowledge = knowledge_of(shell("sh", "-c", "tee /etc/hosts < x > y"), PLANTED)
    assert (knowledge.writes, knowledge.targets) == ((), ("/etc/hosts", "y"))


def test_a_wrapped_command_is_one_simple_command_with_its_targets(shell: Shell) -> None:
    assert knowledge_of(shell("env", "A=1", "nice", "tee", "/etc/hosts"), PLANTED).writes == ("/etc/hosts",)


@pytest.mark.parametrize(
    "line",
    [
        "rm x",
        "/bin/rm -rf build",
        "./rm x",
        "git push --force",
        "git push -fu origin x",
        "git push --force-with-lease=a",
        "git push origin +main",
        "git push origin :gone",
        "git -C sub -c a=b reset --hard",
        "git clean -fdx",
        "git commit --amend",
        "git branch -D x",
        "git checkout -- .",
        "sudo ls",
        "mkfs.ext4 /dev/sda",
        "mount /dev/sda /mnt",
        "ssh host uptime",
        "npm publish",
        "npm --registry x publish",
        "kubectl -n prod delete pod x",
        "systemctl stop x",
        "find . -delete",
        "cat /home/me/.ssh/id_ed25519",
        "cat .netrc",
        "cat ../.aws/credentials",
        "cp /etc/shadow x",
    ],
)
def test_risky_commands_are_named_with_a_reason(shell: Shell, line: str) -> None:
    risks = knowledge_of(shell(*line.split()), PLANTED).risks
    assert risks and all(line.split()[0].rpartition("/")[2] in risk for risk in risks)


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git add clean",
        "git log reset",
        "git commit --all",
        "git reset file",
        "git branch",
        "npm run publish",
        "npm test",
        "systemctl status x",
        "dd if=a of=b",
        "find . -name x",
        "make clean",
        "cat credentials.md",
        "ls",
    ],
)
def test_ordinary_commands_are_not_risky(shell: Shell, line: str) -> None:
    assert knowledge_of(shell(*line.split()), PLANTED).risks == ()


def test_an_empty_argv_is_not_understood(shell: Shell) -> None:
    assert knowledge_of(shell(), PLANTED)[:4] == (False, False, (), ())

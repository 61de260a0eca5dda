"""`core.fsmonitor` names a program that `git status` runs, in the repository and in every submodule of it.

A submodule is made by an entry in the index alone, so a command can make one in passing; prompts and editors
then call `git status` by themselves.
"""

import shutil

import pytest

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

SUB = (
    "git init -q sub; git -C sub commit -q --allow-empty -m x; git -C sub config core.fsmonitor $EVIL; "
    "git add sub 2> /dev/null"
)
PLANTS = {
    "the repository": "git config core.fsmonitor $EVIL",
    "a submodule": SUB,
    "a submodule in a folder": f"mkdir -p d/e; cd d/e; {SUB}",
    "a submodule in a split index": f"{SUB}; git update-index --split-index",
    "a submodule in an index of version 4": f"{SUB}; git update-index --index-version 4",
    "a submodule of a submodule": f"git init -q up; cd up; {SUB}; git commit -qm s; cd ..; git add up 2> /dev/null",
    "a submodule whose folder is elsewhere": f"{SUB}; mv sub/.git away; echo 'gitdir: ../away' > sub/.git",
    "a submodule behind a link": f"{SUB}; mv sub/.git away; ln -s ../away sub/.git",
    "a submodule among the modules": f"{SUB}; mkdir .git/modules; mv sub/.git .git/modules/sub; "
    "git -C .git/modules/sub config core.worktree ../../../sub; echo 'gitdir: ../.git/modules/sub' > sub/.git",
    "an old submodule": "git -C old config core.fsmonitor $EVIL",
    "an old submodule's file": "cp -r .git/modules/lib away; git config --file away/config core.fsmonitor $EVIL; "
    "git config --file away/config core.worktree ../lib; echo 'gitdir: ../away' > lib/.git",
    "an old submodule in a folder moved into its place": "cp -r old new; git -C new config core.fsmonitor $EVIL; "
    "mv old gone; mv new old",
    "an old submodule that was empty": "git init -q empty; git -C empty commit -q --allow-empty -m x; "
    "git -C empty config core.fsmonitor $EVIL",
}


@pytest.fixture
def project(caller_sandbox):
    """A repository with submodules of each kind."""
    sandbox = caller_sandbox
    source = sandbox.base / "source"
    source.mkdir()
    sandbox.own(source)
    sandbox.git("init", "-q", cwd=source)
    sandbox.git("commit", "--allow-empty", "-qm", "zero", cwd=source)
    sandbox.git("init", "-q")
    sandbox.git("init", "-q", "old")
    sandbox.git("commit", "--allow-empty", "-qm", "zero", cwd=sandbox.path("old"))
    sandbox.git("clone", "-q", str(source), "empty")
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "lib")
    sandbox.git("-c", "advice.addEmbeddedRepo=false", "add", "-A")
    sandbox.git("commit", "-qm", "one")
    sandbox.outside("rm -rf empty; mkdir empty")
    return sandbox


USER = {f"GIT_{who}_{what}": "t@t.test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.mark.parametrize("form", PLANTS)
def test_status_runs_nothing_that_was_planted(project, witness, form):
    """P-FS-11."""
    config = project.path(".git/config").read_text()
    plant = f"export EVIL='{project.base}/evil'; ({PLANTS[form]}); true"
    answer = project.run(plant, env=USER)
    assert answer["exit_code"] == 0, answer
    project.outside("git status; git diff; git add -A; git status", env=USER)
    assert not witness.exists(), answer
    assert project.path(".git/config").read_text() == config
    project.outside("rm -rf sub d up away new gone .git/modules/sub empty; mkdir empty; git reset -q")
    project.outside(plant, env=USER)
    project.outside("git status", env=USER)
    assert witness.exists()


def test_a_folder_that_becomes_a_repository_itself_runs_nothing(caller_sandbox, witness):
    """git takes a folder with HEAD, objects and refs for one, also where nobody made it that."""
    sandbox = caller_sandbox
    plant = (
        "git init -q x; mv x/.git/* .; rm -rf x; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n' "
        f"> config; printf '\\tworktree = %s\\n\\tfsmonitor = %s\\n' \"$PWD\" '{sandbox.base}/evil' >> config"
    )
    sandbox.run(plant)
    sandbox.outside("git status")
    assert not witness.exists()
    sandbox.outside(plant)
    sandbox.outside("git status")
    assert witness.exists()


def test_submodules_that_were_there_go_on_working(project):
    answer = project.run(
        "git status --porcelain; cd lib && git commit -q --allow-empty -m more && cd ../old && "
        "git commit -q --allow-empty -m more && cd .. && git commit -qam both && git log --oneline | wc -l",
        env=USER,
    )
    assert answer["stdout"].split() == ["2"], answer
    assert answer["undone"] == []

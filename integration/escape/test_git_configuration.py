"""A setting of git can name a program: filters, pagers, ssh, credential helpers, aliases, other files to read."""

import shutil

import pytest

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

SETTINGS = {
    "a filter": "git config filter.x.clean $EVIL; echo '* filter=x' > .gitattributes; date +%N > f",
    "a text conversion": "git config diff.x.textconv $EVIL; echo '* diff=x' > .gitattributes; date +%N > f",
    "an external diff": "git config diff.external $EVIL; date +%N > f",
    "a pager": "git config core.pager $EVIL; git config pager.log $EVIL",
    "a remote": "git config core.sshCommand $EVIL; git config remote.origin.url ssh://host.test/x",
    "an upload program": "git config remote.origin.url ./x; git config remote.origin.uploadpack $EVIL",
    "another file": "printf '[core]\\n\\tfsmonitor = %s\\n' $EVIL > i; git config include.path ../i",
    "signing": "git config gpg.program $EVIL; git config commit.gpgsign true",
    "an editor": "git config core.editor $EVIL; git config commit.verbose true",
}
WAYS = {
    "git config": "true",
    "written over": "cp .git/config c; GIT_CONFIG=c; export GIT_CONFIG",
    "renamed over": "cp .git/config c; GIT_CONFIG=c; export GIT_CONFIG",
    "a hard link": "rm -f c d; ln .git/config c; GIT_CONFIG=d; export GIT_CONFIG",
    "per worktree": "git config extensions.worktreeConfig true; touch .git/config.worktree; "
    "GIT_CONFIG=.git/config.worktree; export GIT_CONFIG",
}
AFTER = {"written over": "cat c > .git/config", "renamed over": "mv c .git/config", "a hard link": "cat d >> c"}


def planted(sandbox, setting, way="git config"):
    return f"export EVIL='{sandbox.base}/evil'; {WAYS[way]}; {SETTINGS[setting]}; {AFTER.get(way, 'true')}; true"


def check(sandbox, witness, user_works, plant):
    sandbox.git("init", "-q")
    sandbox.write("f", "0")
    sandbox.git("add", "f")
    sandbox.git("commit", "-qm", "zero")
    sandbox.run(plant)
    user_works()
    assert not witness.exists()
    sandbox.outside(plant)
    user_works()
    return witness.exists()


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_planted_setting_never_runs_anything(caller_sandbox, witness, user_works, setting):
    """P-FS-11."""
    worked = check(caller_sandbox, witness, user_works, planted(caller_sandbox, setting))
    # git asks for no editor and no pager without a terminal
    assert worked or setting in ("a pager", "an editor")


@pytest.mark.parametrize("way", WAYS)
def test_no_way_of_writing_a_setting_works(caller_sandbox, witness, user_works, way):
    """P-FS-11."""
    assert check(caller_sandbox, witness, user_works, planted(caller_sandbox, "a filter", way))


def test_settings_of_a_repository_that_was_made_inside(caller_sandbox, witness, user_works):
    """P-FS-13."""
    sandbox = caller_sandbox
    plant = f"git init -q; {planted(sandbox, 'a filter')}"
    sandbox.run(plant)
    user_works()
    assert not witness.exists()
    sandbox.outside(plant)
    user_works()
    assert witness.exists()


@pytest.mark.parametrize("where", ["the repository", "the user"])
@pytest.mark.parametrize("there", [True, False])
def test_a_file_that_the_settings_include_is_held(caller_sandbox, witness, user_works, where, there):
    """P-FS-11."""
    sandbox = caller_sandbox
    sandbox.git("init", "-q")
    if there:
        sandbox.write("team.settings", "[alias]\n\tst = status\n")
    if where == "the user":
        (sandbox.base / ".gitconfig").write_text(f"[include]\n\tpath = {sandbox.workspace}/team.settings\n")
    else:
        sandbox.git("config", "include.path", "../team.settings")
    plant = f"git config --file team.settings core.fsmonitor '{sandbox.base}/evil'"
    sandbox.run(plant, outer_env={"HOME": str(sandbox.base)})
    user_works()
    assert not witness.exists()
    sandbox.outside(plant)
    user_works()
    assert witness.exists()

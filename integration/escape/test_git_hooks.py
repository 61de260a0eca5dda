"""A hook planted inside runs outside, at the user's next commit."""

import shutil

import pytest

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

PLANTS = {
    "a file": "cp $EVIL .git/hooks/pre-commit",
    "a link": "ln -s $EVIL .git/hooks/pre-commit",
    "a hooks folder of its own": "mv .git/hooks .git/h; mkdir .git/hooks; cp $EVIL .git/hooks/pre-commit",
    "a hooks folder over it": "mkdir h; cp $EVIL h/pre-commit; rm -rf .git/hooks; mv -T h .git/hooks",
    "a setting": "mkdir h; cp $EVIL h/pre-commit; git config core.hooksPath h",
    "the folder a setting names": "mkdir -p .husky; cp $EVIL .husky/pre-commit; chmod 755 .husky/pre-commit",
    "a repository in its place": "git init -q r; cp $EVIL r/.git/hooks/pre-commit; rm -rf .git; mv r/.git .git",
    "through a common directory": "mkdir -p c/hooks c/objects c/refs; cp $EVIL c/hooks/pre-commit; "
    "echo ../c > .git/commondir",
}


@pytest.mark.parametrize("form", PLANTS)
def test_a_planted_hook_never_runs(caller_sandbox, witness, user_works, form):
    """P-FS-11."""
    sandbox = caller_sandbox
    sandbox.git("init", "-q")
    sandbox.git("commit", "--allow-empty", "-qm", "zero")
    if form == "the folder a setting names":
        sandbox.git("config", "core.hooksPath", ".husky")
    plant = f"export EVIL='{sandbox.base}/evil'; {PLANTS[form]}; true"
    sandbox.run(plant)
    user_works()
    assert not witness.exists()
    sandbox.outside(plant)
    user_works()
    assert witness.exists()


def test_a_hook_in_a_repository_that_was_made_inside_never_runs(caller_sandbox, witness, user_works):
    """P-FS-13."""
    sandbox = caller_sandbox
    plant = f"git init -q; cp '{sandbox.base}/evil' .git/hooks/pre-commit"
    sandbox.run(plant)
    user_works()
    assert not witness.exists()
    sandbox.outside(plant)
    user_works()
    assert witness.exists()

"""What shells, git and agents run at their start stays as it was, and the tree gets no file of ours."""

import os
import signal

import pytest

NAMES = [".codex", ".claude", ".agents", ".vscode", ".doorward", ".bashrc", ".zshrc", ".profile", ".gitconfig"]


@pytest.mark.parametrize("script", ["true", "false", "kill -TERM $$", "kill -KILL $$"])
def test_a_run_leaves_the_tree_as_it_was(sandbox, script):
    """P-FS-01."""
    sandbox.git("init", "-q")
    sandbox.write("file", "x")
    before = sandbox.tree()
    answer = sandbox.run(script, policy={"deny_read": ["absent", "a/b/c"]})
    assert sandbox.tree() == before
    assert answer["undone"] == []
    assert sandbox.git("status", "--porcelain").stdout == "?? file\n"


def test_protected_names_that_exist_cannot_be_changed(sandbox):
    for name in NAMES:
        if name in (".codex", ".claude", ".agents", ".vscode", ".doorward"):
            sandbox.write(f"{name}/settings", "mine")
        else:
            sandbox.write(name, "mine")
    script = "; ".join(
        f"echo theirs > {name} ; echo theirs > {name}/settings; rm -rf {name}; mv {name} moved; "
        f"echo t > n && mv n {name}; mkdir {name}/d; chmod 777 {name}"
        for name in NAMES
    )
    answer = sandbox.run(script)
    for name in NAMES:
        path = sandbox.path(name)
        assert (path / "settings" if path.is_dir() else path).read_text() == "mine"
    assert answer["undone"] == []


@pytest.mark.parametrize("name", NAMES)
def test_protected_names_that_do_not_exist_cannot_be_made(sandbox, name):
    answer = sandbox.run(
        f"mkdir {name} && echo theirs > {name}/settings; echo theirs > {name}; ln -s /etc {name}; true"
    )
    assert answer["undone"] == [[str(sandbox.path(name)), "removed", ""]]
    assert sandbox.tree() == set()


def test_a_protected_name_is_put_back_while_the_command_still_runs(sandbox):
    answer = sandbox.run(
        "mkdir .vscode && echo x > .vscode/tasks.json; for i in $(seq 500); do test -e .vscode || break; sleep 0.01; "
        "done; test -e .vscode && echo stands || echo gone"
    )
    assert answer["stdout"] == "gone\n", answer


def test_trees_made_to_resist_removal_are_removed(sandbox):
    script = (
        "mkdir .codex && cd .codex && mkdir locked && echo x > locked/f && chmod 0 locked && mkdir d && cd d && "
        "for i in $(seq 200); do mkdir d && cd d || exit; done"
    )
    answer = sandbox.run(f"({script}); chmod 500 .codex; true")
    assert sandbox.tree() == set()
    assert answer["undone"][0][:2] == [str(sandbox.path(".codex")), "removed"]


def test_a_grant_by_name_lifts_the_protection(sandbox):
    sandbox.write(".claude/settings", "mine")
    answer = sandbox.run(
        "echo theirs > .claude/settings; mkdir .vscode; echo x > .codex",
        policy={"write": [".claude", ".vscode"]},
    )
    assert sandbox.path(".claude/settings").read_text() == "theirs\n"
    assert sandbox.path(".vscode").is_dir()
    assert [undone[0] for undone in answer["undone"]] == [str(sandbox.path(".codex"))]


def test_what_was_made_is_undone_after_the_supervisor_was_killed(sandbox):
    """P-FS-01, after SIGKILL."""
    sandbox.git("init", "-q")
    before = sandbox.tree()
    # the name is made again and again, so that it stands at whatever moment the kill comes
    script = f"while :; do mkdir -p .codex/x .git/hooks2; echo x > .vscode; done; : {sandbox.marker}"
    driver = sandbox.start(script, steps=[["release"], ["say", "released"], ["hang"]])
    assert driver.stderr.read(8) == b"released"
    driver.send_signal(signal.SIGKILL)
    driver.communicate(timeout=30)
    assert sandbox.gone() == []
    assert sandbox.tree() - {".git/hooks2"} == before


def test_hooks_and_settings_of_git_stay_and_git_goes_on_working(sandbox):
    """P-FS-11."""
    sandbox.git("init", "-q")
    sandbox.write("f", "1")
    config = sandbox.path(".git/config").read_text()
    hooks = sorted(os.listdir(sandbox.path(".git/hooks")))
    answer = sandbox.run(
        "echo x > .git/hooks/pre-commit; git config core.hooksPath .husky/_; mkdir -p .husky/_; "
        "echo x > .husky/_/pre-commit; git config core.fsmonitor ./x; cp .git/config c; mv c .git/config; "
        "ln .git/config hard; mv .git moved; mv .git/hooks .git/h; rm -rf .git/hooks; mkdir .git2; "
        "echo ../.git2 > .git/commondir; "
        "rm -f .git/commondir; git -c user.name=T -c user.email=t@t add f && "
        "git -c user.name=T -c user.email=t@t commit -qm one && git log --oneline | wc -l; git status --porcelain -uno"
    )
    assert answer["stdout"] == "1\n", answer
    assert sandbox.path(".git/config").read_text() == config
    assert sorted(os.listdir(sandbox.path(".git/hooks"))) == hooks
    assert not sandbox.path("hard").exists()
    assert not sandbox.path(".git/commondir").exists()


def test_a_hooks_folder_named_by_the_configuration_is_held_too(sandbox):
    """P-FS-11."""
    sandbox.git("init", "-q")
    sandbox.write(".husky/_/pre-commit", "mine")
    sandbox.git("config", "core.hooksPath", ".husky/_")
    sandbox.run("echo theirs > .husky/_/pre-commit; mv .husky h; rm -rf .husky; mkdir -p .husky/_; echo x > .husky/_/x")
    assert sandbox.path(".husky/_/pre-commit").read_text() == "mine"
    assert os.listdir(sandbox.path(".husky/_")) == ["pre-commit"]


def test_a_new_repository_works_and_keeps_only_harmless_settings(sandbox):
    """P-FS-13."""
    answer = sandbox.run(
        "git init -q . && git config core.fsmonitor ./evil && git config alias.st '!evil' && git config user.name T && "
        "git config user.email t@t.test && git remote add origin https://git.test/a.git && echo x > f && git add f && "
        "git -c core.fsmonitor= commit -qm one && echo evil > .git/hooks/post-checkout && git log --oneline | wc -l"
    )
    assert answer["stdout"] == "1\n", answer
    config = sandbox.path(".git/config").read_text()
    assert "evil" not in config
    assert "https://git.test/a.git" in config
    assert "name = T" in config
    assert all(name.endswith(".sample") for name in os.listdir(sandbox.path(".git/hooks")))
    assert {(os.path.basename(path), how) for path, how, _ in answer["undone"]} == {
        ("config", "settings removed"),
        ("post-checkout", "removed"),
    }
    assert sandbox.git("log", "--oneline").stdout.count("\n") == 1


def test_a_new_repository_in_a_subfolder_works(sandbox):
    """P-FS-13."""
    answer = sandbox.run(
        "mkdir n && cd n && git init -q && echo x > f && git add f && "
        "git -c user.name=T -c user.email=t@t commit -qm one && git log --oneline | wc -l"
    )
    assert answer["stdout"] == "1\n", answer
    assert answer["undone"] == []


@pytest.mark.parametrize("form", ["gitdir: /var/tmp\n", None])
def test_a_new_git_link_is_removed(sandbox, form):
    script = "ln -s /etc .git" if form is None else f"printf '{form}' > .git"
    answer = sandbox.run(script)
    assert not os.path.lexists(sandbox.path(".git"))
    assert answer["undone"][0][:2] == [str(sandbox.path(".git")), "removed"]


def test_a_linked_worktree_can_commit_and_the_main_repository_is_held(sandbox):
    """P-FS-12."""
    main = sandbox.base / "main"
    main.mkdir()
    sandbox.own(main)
    sandbox.git("init", "-q", cwd=main)
    sandbox.git("commit", "--allow-empty", "-qm", "zero", cwd=main)
    os.rmdir(sandbox.workspace)
    sandbox.git("worktree", "add", "-q", "-b", "wt", str(sandbox.workspace), cwd=main)
    sandbox.git("worktree", "add", "-q", str(sandbox.base / "other"), cwd=main)
    before = {name: (main / ".git" / name).read_text() for name in ("config", "worktrees/other/gitdir")}
    link = sandbox.path(".git").read_text()
    answer = sandbox.run(
        "echo x > f && git add f && git -c user.name=T -c user.email=t@t commit -qm one && git log --oneline | wc -l; "
        f"git fetch -q '{main}' HEAD && echo fetched; "
        f"M='{main}/.git'; echo x >> $M/config; echo x > $M/hooks/pre-commit; echo x > $M/worktrees/other/gitdir; "
        "echo ../evil > $M/worktrees/'work space'/commondir; echo 'gitdir: /evil' > .git; rm .git; mv .git g; "
        f"mv $M/hooks $M/h; python3 -c \"import os; os.rename('{main}/.git', '{main}/m')\"; echo evil > $M/commondir"
    )
    assert answer["stdout"] == "2\nfetched\n", answer
    assert {name: (main / ".git" / name).read_text() for name in before} == before
    assert sandbox.path(".git").read_text() == link
    assert not (main / ".git/hooks/pre-commit").exists()
    assert not (main / ".git/commondir").exists()
    assert sandbox.git("status", "--porcelain").stdout == ""


def test_a_forged_git_link_grants_nothing(sandbox):
    victim = sandbox.base / "victim"
    victim.mkdir()
    (victim / "file").write_text("mine")
    sandbox.own(victim)
    sandbox.write(".git", f"gitdir: {victim}\n")
    sandbox.run(f"echo theirs > '{victim}/file'; echo x > '{victim}/new'")
    assert (victim / "file").read_text() == "mine"
    assert os.listdir(victim) == ["file"]


def test_a_submodule_can_commit_and_its_real_directory_is_held(sandbox):
    source = sandbox.base / "source"
    upper = sandbox.base / "upper"
    for path in (source, upper):
        path.mkdir()
        sandbox.own(path)
        sandbox.git("init", "-q", cwd=path)
        sandbox.git("commit", "--allow-empty", "-qm", "zero", cwd=path)
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "sub", cwd=upper)
    real = upper / ".git/modules/sub"
    config = (real / "config").read_text()
    answer = sandbox.run(
        "echo x > f && git add f && git -c user.name=T -c user.email=t@t commit -qm one && git log --oneline | wc -l; "
        f"echo x >> '{real}/config'; echo x > '{real}/hooks/pre-commit'; echo x > '{upper}/.git/HEAD'",
        cwd=str(upper / "sub"),
        policy={"workspace": str(upper / "sub")},
    )
    assert answer["stdout"] == "2\n", answer
    assert (real / "config").read_text() == config
    assert not (real / "hooks/pre-commit").exists()
    # and from above: the modules of the upper repository are held
    sandbox.run(
        "echo x >> .git/modules/sub/config; echo x > .git/modules/sub/hooks/pre-commit; mv .git/modules .git/m",
        cwd=str(upper),
        policy={"workspace": str(upper)},
    )
    assert (real / "config").read_text() == config
    assert not (real / "hooks/pre-commit").exists()


def test_other_worktrees_are_held_from_the_main_repository(sandbox):
    sandbox.git("init", "-q")
    sandbox.git("commit", "--allow-empty", "-qm", "zero")
    other = sandbox.base / "other"
    sandbox.git("worktree", "add", "-q", str(other))
    before = sandbox.path(".git/worktrees/other/commondir").read_text()
    answer = sandbox.run(
        "echo ../../evil > .git/worktrees/other/commondir; mv .git/worktrees/other x; mv .git/worktrees y; "
        "git worktree add -q inner && echo added"
    )
    assert sandbox.path(".git/worktrees/other/commondir").read_text() == before
    assert "added" in answer["stdout"], answer


def test_many_worktrees_do_not_keep_a_command_from_starting(caller_sandbox):
    """P-PF-04."""
    sandbox = caller_sandbox
    sandbox.git("init", "-q")
    for number in range(500):
        directory = sandbox.path(f".git/worktrees/w{number}")
        directory.mkdir(parents=True)
        (directory / "commondir").write_text("../..\n")
        tree = sandbox.base / f"tree{number}"
        (directory / "gitdir").write_text(f"{tree}/.git\n")
        if number % 2:  # the others are gone
            tree.mkdir()
            (tree / ".git").write_text(f"gitdir: {directory}\n")
    # neighbours' sockets are covered too, each by a mount
    count = f"grep -cF {sandbox.base.name}/work /proc/self/mountinfo"
    answer = sandbox.run(f"echo x > .git/worktrees/w7/commondir; {count}")
    # held as a whole: the number of mounts does not grow with them
    assert 0 < int(answer["stdout"]) < 50, answer
    assert sandbox.path(".git/worktrees/w7/commondir").read_text() == "../..\n"


def test_a_projects_own_config_and_objects_are_its_own(sandbox):
    """P-FS-14."""
    sandbox.git("init", "-q")
    for name in ("config", "objects", "refs", "hooks"):
        sandbox.mkdir(name)
    answer = sandbox.run(
        "for d in config objects refs hooks; do echo x > $d/f; done; echo x > HEAD; echo x >> .git/config; ls"
    )
    assert answer["stdout"].split() == ["HEAD", "config", "hooks", "objects", "refs"]
    assert all(sandbox.path(name, "f").exists() for name in ("config", "objects", "refs", "hooks"))
    assert "x\n" not in sandbox.path(".git/config").read_text()


@pytest.mark.parametrize("form", ["absolute", "relative", "inside", "broken", "chain"])
def test_a_protected_link_and_what_it_leads_to_stay(sandbox, form):
    """P-FS-05."""
    store = sandbox.base / "store"
    store.mkdir()
    (store / "bashrc").write_text("mine")
    sandbox.own(store)
    sandbox.write("kept/bashrc", "mine")
    link = sandbox.path(".bashrc")
    target = {
        "absolute": str(store / "bashrc"),
        "relative": "../store/bashrc",
        "inside": "kept/bashrc",
        "broken": "kept/missing",
        "chain": "middle",
    }[form]
    link.symlink_to(target)
    if form == "chain":
        sandbox.path("middle").symlink_to("kept/bashrc")
    answer = sandbox.run(
        "echo ran; echo theirs > .bashrc; rm -f .bashrc; echo theirs > .bashrc; echo theirs > kept/bashrc; "
        "mv kept k; rm -f middle; echo theirs > middle; true"
    )
    assert answer["stdout"] == "ran\n"
    assert os.readlink(link) == target
    if form == "chain":
        assert os.readlink(sandbox.path("middle")) == "kept/bashrc"
    assert (store / "bashrc").read_text() == "mine"
    if form in ("inside", "chain"):
        assert sandbox.path("kept/bashrc").read_text() == "mine"
    assert not sandbox.path("kept/missing").exists()
    assert "link restored" in {how for _, how, _ in answer["undone"]}


def test_a_protected_name_that_links_to_a_directory(sandbox):
    """P-FS-07."""
    sandbox.write("real/.agents/a", "mine")
    sandbox.path(".agents").symlink_to("real/.agents")
    meta = sandbox.base / "meta"
    meta.mkdir()
    sandbox.own(meta)
    sandbox.git("init", "-q", "--bare", "p.git", cwd=meta)
    sandbox.path(".git").symlink_to("../meta/p.git")
    config = (meta / "p.git/config").read_text()
    answer = sandbox.run(
        "echo ran; echo theirs > .agents/a; echo theirs > real/.agents/a; echo x > .git/config; rm .git; mkdir .git; "
        "mv real r; rm .agents; mkdir .agents"
    )
    assert answer["stdout"] == "ran\n"
    assert sandbox.path("real/.agents/a").read_text() == "mine"
    assert (meta / "p.git/config").read_text() == config
    assert os.readlink(sandbox.path(".git")) == "../meta/p.git"
    assert os.readlink(sandbox.path(".agents")) == "real/.agents"


def test_added_directories_are_protected_as_well(sandbox):
    added = sandbox.base / "added"
    added.mkdir()
    (added / ".bashrc").write_text("mine")
    sandbox.own(added / ".bashrc")
    answer = sandbox.run(
        f"cd '{added}'; echo theirs > .bashrc; mkdir .codex; git init -q; echo x > .git/hooks/x; true",
        policy={"write": [str(added)]},
    )
    assert (added / ".bashrc").read_text() == "mine"
    assert not (added / ".codex").exists()
    assert not (added / ".git/hooks/x").exists()
    assert len(answer["undone"]) == 2


def test_read_only_mode_watches_nothing(sandbox):
    answer = sandbox.run("mkdir .codex; echo done", policy={"mode": "read-only"})
    assert answer["stdout"] == "done\n"
    assert answer["undone"] == []


def test_files_of_others_survive_an_undo_by_root(caller_sandbox):
    """Root inside has no capabilities, so moving another user's folder into a doomed name must not delete it."""
    sandbox = caller_sandbox
    if not sandbox.is_root:
        pytest.skip("root only")
    sandbox.write("outer/theirs/precious", "x")
    os.chown(sandbox.path("outer/theirs"), 64242, 64242)
    sandbox.path("outer/theirs").chmod(0o755)
    answer = sandbox.run("mv outer .codex; sleep 0.3; true")
    assert list(sandbox.workspace.rglob("precious")), answer
    assert "could not be undone" in {how for _, how, _ in answer["undone"]}


def test_two_runs_cannot_keep_a_name_between_them(sandbox):
    """One makes the name while the other starts; the other must not take it for the user's own."""
    stop, go = sandbox.path("stop"), sandbox.path("go")
    # so many files that it stands until the end of the run
    maker = sandbox.start(
        "mkdir big; (cd big; seq 15000 | xargs touch); mv big .codex; echo made; "
        "while test ! -e stop; do sleep 0.01; done",
        steps=[["release"], ["await", "made"], ["say", "x"]],
    )
    assert maker.stderr.read(1) == b"x"
    other = sandbox.start(
        "echo started; while test ! -e go; do sleep 0.01; done; mkdir -p .codex/y && echo kept",
        steps=[["release"], ["await", "started"], ["say", "x"]],
    )
    assert other.stderr.read(1) == b"x"
    assert sandbox.path(".codex").exists()
    stop.touch()
    maker.communicate(timeout=30)
    assert not sandbox.path(".codex").exists()
    go.touch()
    other.communicate(timeout=30)
    assert sandbox.tree() == {"stop", "go"}
    assert os.listdir(sandbox.home / "cache" / "guards") == []


def test_everyday_git_works(sandbox):
    source = sandbox.base / "source"
    source.mkdir()
    sandbox.own(source)
    sandbox.git("init", "-q", cwd=source)
    (source / "f").write_text("1\n")
    sandbox.own(source / "f")
    sandbox.git("add", "f", cwd=source)
    sandbox.git("commit", "-qm", "one", cwd=source)
    sandbox.git("init", "-q")
    sandbox.git("pull", "-q", str(source), "main")
    script = """
    set -e
    export GIT_AUTHOR_NAME=T GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=T GIT_COMMITTER_EMAIL=t@t
    git checkout -q -b topic
    echo 2 > g; git add g; git commit -qm two
    git checkout -q main; echo 3 > h; git add h; git commit -qm three
    git checkout -q topic; git rebase -q main
    git stash list; echo x >> f; git stash -q; git stash pop -q; git checkout -q f
    git worktree add -q inner main; (cd inner; echo 4 > i; git add i; git commit -qm four)
    git worktree remove inner
    git tag v1; git merge -q --no-ff -m merge main; git gc -q
    git clone -q . copy; rm -rf copy
    git log --oneline topic | wc -l
    git status --porcelain
    """
    answer = sandbox.run(script)
    assert answer["stdout"].split() == ["5"], answer
    assert answer["undone"] == []

"""What is taken out of a git configuration that was made inside a run."""

import pytest

from doorward.launcher.git_settings import sift

FRESH = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
"""


def test_what_git_init_writes_stays():
    assert sift(FRESH) == (FRESH, ())


def test_ordinary_remotes_and_branches_stay():
    text = (
        '[remote "origin"]\n\turl = https://git.test/a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
        '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A B\n\temail = "a@b.test"\n'
        '[remote "mine"]\n\turl = git@git.test:a/b.git\n\turl = ../other\n'
    )
    assert sift(text) == (text, ())


DANGEROUS = [
    ("[core]\n\tfsmonitor = ./evil\n", "core.fsmonitor"),
    ("[core]\n\thooksPath = .husky\n", "core.hookspath"),
    ("[core]\n\tsshCommand = evil\n", "core.sshcommand"),
    ("[core]\n\tworktree = /elsewhere\n", "core.worktree"),
    ("[CORE]\n\tFsMonitor=./evil\n", "core.fsmonitor"),
    ("[alias]\n\tst = !evil\n", "alias.st"),
    ('[filter "x"]\n\tclean = evil\n', "filter.clean"),
    ("[include]\n\tpath = ../evil\n", "include.path"),
    ('[includeIf "gitdir:/"]\n\tpath = ../evil\n', "includeif.path"),
    ('[url "ext::evil"]\n\tinsteadOf = https://\n', "url.insteadof"),
    ("[credential]\n\thelper = !evil\n", "credential.helper"),
    ('[remote "o"]\n\turl = ext::evil\n', "remote.url"),
    ('[remote "o"]\n\turl = --upload-pack=evil\n', "remote.url"),
    ('[remote "o"]\n\tuploadpack = evil\n', "remote.uploadpack"),
    ("[extensions]\n\tworktreeConfig = true\n", "extensions.worktreeconfig"),
    ("[core] fsmonitor = evil\n", "core.?"),
    ("[a.b]\n\tfsmonitor = evil\n", "?.?"),
    ("fsmonitor = evil\n", "?.fsmonitor"),
    ("[core]\n\tfilemode = true \\\n\tfsmonitor = evil\n", "core.filemode"),
    ("[user]\n\tname = a; evil\n", "user.name"),
    ("[core]\n\tno such syntax !!\n", "core.?"),
]


@pytest.mark.parametrize(("text", "name"), DANGEROUS)
def test_what_could_run_or_read_something_is_removed_and_named(text, name):
    sifted = sift(FRESH + text)
    assert sifted.removed[0].split(".")[-1] == name.split(".")[-1]
    assert "evil" not in sifted.text
    assert sifted.text.startswith(FRESH)


def test_a_continued_line_goes_as_a_whole():
    sifted = sift("[alias]\n\ta = !x \\\n\ty \\\n\tz\n[user]\n\tname = n\n")
    assert sifted.text == "[user]\n\tname = n\n"


def test_only_a_line_feed_ends_a_line():
    """A form feed inside a value must not let a line of ours start where git sees none."""
    text = "[alias]\n\tst = a\x0c[user]\x0c\tname = !evil\u2028\n[user]\n\tname = x\n"
    assert "evil" not in sift(text).text


def test_carriage_returns_and_comments_are_kept():
    text = "# about\n[user]\r\n\tname = x\r\n; more \\\n\temail = y\n"
    assert sift(text) == (text, ())


def test_what_was_sifted_needs_no_second_sifting():
    text = "".join(text for text, _ in DANGEROUS)
    once = sift(text)
    assert sift(once.text).removed == ()

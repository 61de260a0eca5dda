"""What a run made under protected names on Windows is removed; done here on this system's own files."""

import os

from doorward.launcher.windows_repository import put_back


def test_what_was_absent_is_removed_and_links_are_not_followed(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    agents = tmp_path / ".agents"
    (agents / "deep").mkdir(parents=True)
    (agents / "deep" / "file").write_text("x")
    os.symlink(kept, agents / "link")
    rc = tmp_path / ".bashrc"
    os.symlink(kept / "file", rc)
    seen = put_back((str(agents), str(rc), str(tmp_path / ".zshrc")))
    assert [(undone.path, undone.what) for undone in seen] == [(str(agents), "removed"), (str(rc), "removed")]
    assert not agents.exists() and not rc.is_symlink()
    assert (kept / "file").read_text() == "x"


def test_a_new_repository_is_sifted(tmp_path):
    git = tmp_path / ".git"
    (git / "hooks").mkdir(parents=True)
    (git / "hooks" / "pre-commit").write_text("evil")
    (git / "hooks" / "pre-commit.sample").write_text("harmless")
    (git / "config").write_text("[core]\n\tbare = false\n\tfsmonitor = evil\n")
    (git / "commondir").write_text("/elsewhere")
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    seen = {os.path.basename(undone.path): undone for undone in put_back((str(git),))}
    assert seen.keys() == {"pre-commit", "config", "commondir"}
    assert seen["config"].detail == "core.fsmonitor"
    assert (git / "config").read_text() == "[core]\n\tbare = false\n"
    assert sorted(os.listdir(git / "hooks")) == ["pre-commit.sample"]
    assert (git / "HEAD").exists()


def test_hooks_that_lead_elsewhere_are_cut_off(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "pre-commit").write_text("the user's own")
    git = tmp_path / ".git"
    git.mkdir()
    os.symlink(elsewhere, git / "hooks")
    put_back((str(git),))
    assert not (git / "hooks").is_symlink()
    assert (elsewhere / "pre-commit").exists()

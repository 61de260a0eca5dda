"""One sentence and one remedy for each way a machine can refuse."""

import errno

import pytest

from doorward.launcher.diagnosis import Facts, explain_step, explain_text, read_facts, went_away
from doorward.launcher.mounts import Mount, MountPlan

PLAIN = Facts()
APPARMOR = Facts(apparmor_restricts=True)
NESTED = Facts(sandboxed=True)
NONE_LEFT = Facts(max_user_namespaces=0)
DEBIAN = Facts(userns_clone=False)
CONTAINER = Facts(container=True)

NO_NAMESPACE = (
    "bwrap: No permissions to creating new namespace, likely because the kernel does not allow non-privileged user "
    "namespaces. On e.g. debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'."
)
TEXTS = [
    (NO_NAMESPACE, APPARMOR, "AppArmor", "apparmor_restrict_unprivileged_userns=0"),
    (NO_NAMESPACE, DEBIAN, "unprivileged_userns_clone", "unprivileged_userns_clone=1"),
    (NO_NAMESPACE, NONE_LEFT, "switched off", "max_user_namespaces=15000"),
    (NO_NAMESPACE, NESTED, "already runs inside one", "outside"),
    (NO_NAMESPACE, CONTAINER, "container", "seccomp"),
    (NO_NAMESPACE, PLAIN, "refuses a new user namespace", "dmesg"),
    ("bwrap: Creating new namespace failed: Operation not permitted", APPARMOR, "AppArmor", "sysctl"),
    ("bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
     NONE_LEFT, "switched off", "15000"),
    ("bwrap: setting up uid map: Permission denied", APPARMOR, "AppArmor", "sysctl"),
    ("bwrap: setting up uid map: Permission denied", PLAIN, "uid map", "seccomp"),
    ("bwrap: Failed to make / slave: Permission denied", PLAIN, "propagation", "apparmor=unconfined"),
    ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", APPARMOR, "AppArmor", "sysctl"),
    ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", PLAIN, "RTM_NEWADDR", "dmesg"),
    ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", CONTAINER, "/proc", "systempaths=unconfined"),
    ("bwrap: Unexpected setuid user 7, should be 0", PLAIN, "setuid", "chmod u-s"),
    ("bwrap: Exceeded maximum number of arguments 9000", PLAIN, "9000", "directories"),
    ("bwrap: Unknown option --disable-userns", PLAIN, "--disable-userns", "apt install"),
    ("bwrap: Can't find source path /a b/c: No such file or directory", PLAIN, "/a b/c went away", "again"),
    ("bwrap: Can't get type of source /x: No such file or directory", PLAIN, "/x went away", "again"),
    ("bwrap: Can't create file at /w/y: Read-only file system", PLAIN, "/w/y", "again"),
    ("bwrap: prctl(PR_SET_SECCOMP): Invalid argument", PLAIN, "filter", "CONFIG_SECCOMP_FILTER"),
    ("bwrap: Creating new namespace failed: Resource temporarily unavailable", PLAIN, "namespace", "dmesg"),
    ("bwrap: Can't fork for pid 1: Resource temporarily unavailable", PLAIN, "out of processes", "ulimit"),
    ("bwrap: never seen", PLAIN, "never seen", "doctor"),
    ("", PLAIN, "without a word", "doctor"),
    ("\n\nbwrap: setting up gid map: x\nmore\n", PLAIN, "uid map", "seccomp"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "facts", "sentence", "remedy"), TEXTS)
def test_bubblewraps_words(text, facts, sentence, remedy):
    """P-NS-01, P-NS-02."""
    failure = explain_text(text, facts)
    assert failure.kind == "sandbox"
    assert sentence in failure.sentence
    assert remedy in failure.remedy


def test_an_exec_that_failed_means_that_the_sandbox_stands():
    assert explain_text("bwrap: execvp /: Permission denied\n", PLAIN) is None


def test_a_directory_that_is_gone():
    failure = explain_text("bwrap: Can't chdir to /gone: No such file or directory", PLAIN)
    assert (failure.kind, failure.sentence) == ("directory", "The working directory /gone: No such file or directory.")


STEPS = [
    ("proc", errno.EPERM, "sandbox", "/proc"),
    ("identity", errno.EPERM, "sandbox", "uid map"),
    ("scope", errno.EPERM, "sandbox", "landlock"),
    ("stream", errno.ESTALE, "sandbox", "standard input"),
    ("exec", errno.ENOENT, "not-found", "tool"),
    ("exec", errno.EACCES, "not-executable", "Permission denied"),
    ("exec", errno.E2BIG, "too-large", "more than the kernel takes"),
    ("directory", errno.ENOENT, "directory", "No such file"),
    ("silent", errno.ETIMEDOUT, "sandbox", "within 3 s"),
    ("exec bwrap", errno.E2BIG, "too-large", "more than the kernel takes"),
    ("exec bwrap", errno.EACCES, "sandbox", "/usr/bin/bwrap"),
    ("hide", errno.ENOENT, "sandbox", "went away"),
    ("guard", errno.EROFS, "sandbox", "Read-only"),
    ("network", errno.EADDRINUSE, "sandbox", "listeners"),
    ("join", errno.EPERM, "sandbox", "listeners"),
    ("mounts", errno.EPERM, "sandbox", "mounts"),
    ("start", errno.ENOMEM, "sandbox", "start"),
]


@pytest.mark.parametrize(("step", "number", "kind", "word"), STEPS)
def test_steps_of_ours(step, number, kind, word):
    """P-NS-03: no step that fails is passed over."""
    failure = explain_step(step, number, "", PLAIN, name="tool", path="/usr/bin/bwrap", deadline_s=3)
    assert failure.kind == kind
    assert word in failure.sentence


def test_a_path_of_the_plan_that_went_away_is_named(tmp_path):
    there, gone, socket = tmp_path / "there", tmp_path / "gone", str(tmp_path / "socket")
    there.touch()
    places = [Mount("ro-bind", "/"), Mount("tmpfs", "/not/on/the/host")]
    places += [Mount("hide-file", str(there)), Mount("hide-file", socket)]
    failure = went_away(MountPlan((*places, Mount("hide-file", str(gone))), {}), {socket})
    assert failure == ("sandbox", f"{gone} went away while the sandbox was being set up.", "Try again.")
    # or it has come back, and nothing is known but that
    failure = went_away(MountPlan(tuple(places), {}), {socket})
    assert (failure.kind, failure.remedy) == ("sandbox", "Try again.")
    assert "gone for a moment" in failure.sentence


def test_an_error_nobody_foresaw_is_shown():
    failure = explain_step("shim", 0, "KeyError('x')", PLAIN, name="t", path="b", deadline_s=1)
    assert "KeyError('x')" in failure.sentence


def test_facts_are_read_from_this_machine():
    assert isinstance(read_facts().container, bool)

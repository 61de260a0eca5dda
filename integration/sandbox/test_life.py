"""Starting held, signals, and that nothing outlives a run, whoever is killed at whatever moment."""

import os
import signal
import subprocess
import time

import pytest


def test_nothing_runs_before_the_release(sandbox):
    witness = sandbox.path("ran")
    answer = sandbox.run("echo x > ran", steps=[["kill"]])
    assert not witness.exists()
    assert (answer["exit_code"], answer["signal"]) == (137, 9)


def test_closing_a_held_command_ends_it(sandbox):
    driver = sandbox.start(f"echo x > ran; : {sandbox.marker}", steps=[["close"], ["say", "closed"], ["hang"]])
    assert driver.stderr.read(6) == b"closed"
    assert sandbox.gone(driver.pid) == []
    assert not sandbox.path("ran").exists()
    driver.kill()
    driver.communicate(timeout=20)


def test_what_the_first_process_leaves_is_killed_at_once(sandbox):
    """P-TT-06, P-TT-08: in the background, in a session of its own, forked twice."""
    marker = sandbox.marker
    answer = sandbox.run(
        f"sleep {marker} & setsid sleep {marker} & (setsid sh -c 'sleep {marker} & sleep {marker}' &) ; "
        f"trap '' TERM HUP; echo done; exit 4"
    )
    assert (answer["exit_code"], answer["stdout"]) == (4, "done\n")
    assert "<open>" not in answer["stderr"]
    assert answer["took"] < 15  # at 40 s the driver gives up
    assert sandbox.gone() == []


def test_output_through_a_substitution(sandbox):
    """P-TT-07."""
    answer = sandbox.run(["bash", "-c", "exec > >(tee -a log) 2>&1; echo a; sleep 0.3; exit 3"])
    assert answer["exit_code"] == 3
    assert answer["stdout"] == "a\n"
    assert "<open>" not in answer["stderr"]


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "USR1"])
def test_signals_reach_the_first_process(sandbox, name):
    number = int(getattr(signal, f"SIG{name}"))
    answer = sandbox.run(
        f"trap 'echo caught; exit 5' {name}; echo ready; while :; do sleep 0.05; done",
        steps=[["release"], ["await", "ready"], ["signal", number]],
    )
    assert (answer["exit_code"], answer["stdout"]) == (5, "ready\ncaught\n"), answer
    answer = sandbox.run(
        ["sh", "-c", "echo ready; exec sleep 60"], steps=[["release"], ["await", "ready"], ["signal", number]]
    )
    assert (answer["exit_code"], answer["signal"]) == (128 + number, number)


def test_a_signal_right_after_the_release_is_not_lost(sandbox):
    answer = sandbox.run(["sleep", "60"], steps=[["release"], ["signal", int(signal.SIGTERM)]])
    assert (answer["exit_code"], answer["failure"]) == (143, None), answer


def test_killing_takes_the_whole_tree(sandbox):
    marker = sandbox.marker
    answer = sandbox.run(
        f"trap '' TERM INT; setsid sleep {marker} & echo ready; while :; do sleep 1; done",
        steps=[["release"], ["await", "ready"], ["kill"]],
    )
    assert (answer["exit_code"], answer["signal"]) == (137, 9)
    assert sandbox.gone() == []


def test_a_command_that_signals_its_group_ends_only_itself(sandbox):
    answer = sandbox.run("trap 'exit 6' TERM; kill -TERM 0; sleep 5")
    assert answer["exit_code"] == 6


def test_the_command_is_in_no_group_or_session_of_the_caller(sandbox):
    answer = sandbox.run("cat /proc/self/stat")
    fields = answer["stdout"].rpartition(")")[2].split()
    # numbers of this pid namespace: a group or session of the outside would read as 0
    assert int(fields[2]) != 0
    assert int(fields[3]) != 0


@pytest.mark.parametrize("stdin", [None, "", "open", "text\n"])
def test_standard_input_of_every_kind(sandbox, stdin):
    """P-TT-09: descriptor 0 is open, and a command that does not read ends."""
    answer = sandbox.run("readlink /proc/self/fd/0; true", stdin=stdin)
    assert answer["exit_code"] == 0
    assert answer["stdout"].startswith("/dev/null" if stdin is None else "pipe:")
    if stdin == "text\n":
        assert sandbox.run(["cat"], stdin=stdin)["stdout"] == stdin


def test_inherited_descriptors_do_not_reach_the_command(sandbox):
    secret = sandbox.base / "secret"
    secret.write_text("TOP-SECRET")
    descriptor = os.open(secret, os.O_RDONLY)
    listing = "ls -l /proc/self/fd | sed 1d | wc -l; ls -l /proc/1/fd /proc/self/fd | grep -c secret"
    try:
        os.set_inheritable(descriptor, True)
        answer = sandbox.run(listing, pass_fds=(descriptor,), stdin="")
    finally:
        os.close(descriptor)
    # 0, 1, 2 and the one ls reads the directory through
    assert answer["stdout"].split() == ["4", "0"], answer


def test_ignored_signals_are_not_inherited_from_python_but_from_the_caller(sandbox):
    script = "grep SigIgn /proc/self/status | cut -f2"

    def ignored(**more):
        """As a mask; without the two signals that are the C library's own (nptl(7)), which posix_spawn(3) ignores."""
        return int(sandbox.run(script, **more)["stdout"], 16) & ~(0b11 << 31)

    assert ignored() == 0
    assert ignored(prefix=["nohup"]) == 1  # SIGHUP alone


def test_withheld_values_appear_nowhere_inside(sandbox):
    """The supervisor's environment, bubblewrap's environment and every argv inside."""
    script = "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; wc -c < /proc/1/environ"
    answer = sandbox.run(script, outer_env={"SECRET_TOKEN": "TOP-SECRET"}, env={"GIVEN": "given"})
    assert "TOP-SECRET" not in answer["stdout"]
    assert "GIVEN=given" in answer["stdout"]
    assert answer["stdout"].split()[-1] == "0"


def test_the_environment_is_exactly_what_was_given(sandbox):
    env = {"A": "1", "odd-name.x": "2", "EMPTY": "", "LD_LIBRARY_PATH": "/nowhere"}
    answer = sandbox.run(["env"], env=env)
    seen = dict(line.split("=", 1) for line in answer["stdout"].splitlines())
    assert {name: seen.pop(name) for name in env} == env
    assert set(seen) <= {"PATH", "HOME", "LANG", "PWD", "TMPDIR", "TMPPREFIX"}


@pytest.mark.parametrize("steps", [[["say", "x"], ["hang"]], [["release"], ["say", "x"], ["hang"]]])
@pytest.mark.parametrize("bubblewrap_first", [False, True])
def test_a_killed_supervisor_takes_everything_with_it(sandbox, steps, bubblewrap_first):
    """P-TT-08."""
    marker = sandbox.marker
    driver = sandbox.start(f"setsid sleep {marker} & sleep {marker}", steps=steps, bubblewrap_first=bubblewrap_first)
    assert driver.stderr.read(1) == b"x"
    driver.send_signal(signal.SIGKILL)
    driver.communicate(timeout=30)
    assert sandbox.gone() == []


def test_descriptors_that_live_on_in_another_process_do_not_keep_a_run_alive(sandbox):
    """A killed supervisor whose forked child still holds every pipe: only its pidfd tells."""
    steps = [["release"], ["fork_holder", 60], ["say", "x"], ["hang"]]
    driver = sandbox.start(f"sleep {sandbox.marker}", steps=steps)
    holder = int(driver.stderr.readline())
    assert driver.stderr.read(1) == b"x"
    driver.send_signal(signal.SIGKILL)
    assert sandbox.gone(holder, deadline=20) == []
    os.kill(holder, signal.SIGKILL)
    driver.communicate(timeout=30)


def test_a_bubblewrap_that_binds_itself_to_nobody_dies_with_the_shim(sandbox):
    """The moments before bubblewrap has asked for its own death signal."""
    folder = sandbox.base / "bin"
    folder.mkdir()
    (folder / "bwrap").write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit 0\n'
        f"printf '{{ \"child-pid\": 1 }}\\n' >&4\nexec sleep {sandbox.marker}\n"
    )
    (folder / "bwrap").chmod(0o755)
    sandbox.own(folder / "bwrap")
    driver = sandbox.start("true", search_path=str(folder), steps=[["say", "x"], ["hang"]])
    assert driver.stderr.read(1) == b"x"
    (shim,) = shims_of(driver)
    while not sandbox.survivors(driver.pid, shim):
        assert driver.poll() is None
    os.kill(shim, signal.SIGKILL)
    assert sandbox.gone(driver.pid) == []
    driver.kill()
    driver.communicate(timeout=30)


def shims_of(driver):
    with open(f"/proc/{driver.pid}/task/{driver.pid}/children") as file:
        return [int(pid) for pid in file.read().split()]


@pytest.mark.parametrize("released", [False, True])
def test_a_killed_shim_takes_everything_with_it_and_is_told(sandbox, released):
    steps = [["release"]] * released + [["say", "x"]]
    driver = sandbox.start(f"sleep {sandbox.marker}", steps=steps)
    assert driver.stderr.read(1) == b"x"
    (shim,) = shims_of(driver)
    os.kill(shim, signal.SIGKILL)
    out, _ = driver.communicate(timeout=30)
    assert b'"sandbox", "The process that held the sandbox was killed' in out
    assert sandbox.gone() == []


def test_supervisor_and_shim_killed_together_leave_nothing(sandbox):
    """As `pkill -9 doorward` does, before the command was released."""
    driver = sandbox.start(f"echo x > ran; sleep {sandbox.marker}", steps=[["say", "x"], ["hang"]])
    assert driver.stderr.read(1) == b"x"
    for pid in (driver.pid, *shims_of(driver)):
        os.kill(pid, signal.SIGSTOP)
    for pid in (*shims_of(driver), driver.pid):
        os.kill(pid, signal.SIGKILL)
    driver.communicate(timeout=30)
    assert sandbox.gone() == []
    assert not sandbox.path("ran").exists()


def test_supervisors_killed_at_any_moment_leave_nothing(sandbox):
    """Fifty starts, each killed a little later than the one before."""
    marker = sandbox.marker
    drivers = []
    began = time.monotonic()
    sandbox.run("true")
    one = min(time.monotonic() - began, 0.5)  # what more it takes on a loaded machine would come fifty times
    for number in range(50):
        driver = sandbox.start(f"mkdir .codex; sleep {marker}", steps=[["release"], ["hang"]])
        # the moment of the kill is the point of this test; it comes from a deadline, not from a guess at readiness
        try:
            driver.wait(timeout=one * 2 * number / 50)
        except subprocess.TimeoutExpired:
            pass
        driver.kill()
        drivers.append(driver)
    for driver in drivers:
        driver.communicate(timeout=30)
    assert sandbox.gone() == []
    assert sandbox.tree() == set()
    with open("/proc/self/mountinfo") as file:
        mounts = file.read()
    assert str(sandbox.base) not in mounts


def test_many_runs_at_once_in_one_workspace(sandbox):
    drivers = [sandbox.start(f"echo {number} > f{number}; mkdir -p .codex; exit {number}") for number in range(12)]
    for number, driver in enumerate(drivers):
        out, _ = driver.communicate(timeout=60)
        assert f'"exit_code": {number},'.encode() in out
    assert sandbox.tree() == {f"f{number}" for number in range(12)}


def test_a_session_starts_many_commands_one_after_the_other(sandbox):
    answer = sandbox.run("exit 2", repeat=10)
    assert (answer["exit_code"], answer["children"]) == (2, [])


@pytest.mark.parametrize("mode", ["workspace-write", "read-only", "danger-full-access", "unconfined"])
@pytest.mark.parametrize("network", ["proxied", "full"])
def test_a_shim_started_ahead_serves_where_it_fits_and_is_never_left(sandbox, mode, network):
    policy = {"mode": mode, "network": network}
    answer = sandbox.run("exit 8", ahead=True, repeat=2, policy=policy)
    assert (answer["exit_code"], answer["left"]) == (8, [])
    assert answer["enforcement"] == sandbox.run("exit 8", policy=policy)["enforcement"]


def test_a_shim_started_ahead_ends_with_a_policy_that_is_refused(sandbox):
    driver = sandbox.start("true", ahead=True, policy={"write": ["/etc"]})
    out, _ = driver.communicate(timeout=30)
    assert b"unenforceable" in out
    assert sandbox.gone() == []


def test_a_supervisor_with_other_children_keeps_the_right_status(sandbox):
    """P-TT-10: exec from a shell that already has a child, which ends early."""
    driver = sandbox.start("exit 9", prefix=["sh", "-c", 'sleep 0.05 & exec "$@"', "sh"])
    out, _ = driver.communicate(timeout=30)
    assert b'"exit_code": 9,' in out


def test_ignored_child_signals_do_not_lose_the_status(sandbox):
    driver = sandbox.start(
        "exit 9",
        prefix=["/usr/bin/python3", "-c", "import os,signal,sys; signal.signal(17, signal.SIG_IGN); "
                "os.execvp(sys.argv[1], sys.argv[1:])"],
    )  # fmt: skip
    out, _ = driver.communicate(timeout=30)
    assert b'"exit_code": 9,' in out


def test_mounts_the_host_makes_later_do_not_come_in(caller_sandbox):
    """bubblewrap leaves its mounts slaves of the host's, and a mount that propagates is not read-only."""
    sandbox = caller_sandbox
    if not sandbox.is_root:
        pytest.skip("root only: the test mounts in a namespace of its own")
    outer = sandbox.base / "mnt"
    outer.mkdir()
    script = f"mount -t tmpfs outer '{outer}' && mount --make-rshared '{outer}' && mkdir '{outer}/late' && exec \"$@\""
    driver = sandbox.start(
        f"echo ready; read line; ls -A '{outer}/late'; echo x > '{outer}/late/f' && echo WROTE",
        prefix=["unshare", "-m", "sh", "-c", script, "sh"],
        stdin="open",
        steps=[["release"], ["await", "ready"], ["mount", f"{outer}/late"], ["answer"]],
    )
    out, err = driver.communicate(timeout=30)
    assert b'"stdout": "ready\\n"' in out, (out, err)

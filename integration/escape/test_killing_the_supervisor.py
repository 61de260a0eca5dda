"""Ending, stopping or outliving what keeps the command in: the supervisor, its shim, and bubblewrap."""

import os
import subprocess

CODE = """
import signal
for target in sys.argv[1:]:
    if target == 'above': target = os.getppid()
    attempt(f'kill {target}', os.kill, int(target), 9)
    attempt(f'stop {target}', os.kill, int(target), signal.SIGSTOP)
    attempt(f'group {target}', os.killpg, int(target), 9)
    attempt(f'handle {target}', lambda: signal.pidfd_send_signal(os.pidfd_open(int(target)), 9))
"""


def scratch():
    return subprocess.Popen(["sleep", "600"], start_new_session=True)


def test_processes_outside_cannot_be_signalled(caller_way):
    """Their numbers mean nothing inside, and what stands above the command takes no signal from it."""
    probe = caller_way(CODE)
    victim = scratch()
    try:
        for first in (False, True):
            inside = probe.inside(victim.pid, os.getpid(), bubblewrap_first=first)
            assert set(inside.values()) == {"ESRCH"}, inside
        assert victim.poll() is None
        assert probe.outside(victim.pid)[f"kill {victim.pid}"] is None
        assert victim.wait(10) == -9
    finally:
        victim.kill()
        victim.wait()


def test_process_one_takes_no_signal_from_inside(sandbox):
    """And the command goes on, with its status its own."""
    answer = sandbox.run("kill -9 1; kill -STOP 1; kill -TERM 1; sleep 0.1; echo still; exit 7")
    assert (answer["exit_code"], answer["stdout"]) == (7, "still\n"), answer


def test_killing_everything_in_sight_kills_only_what_is_inside(sandbox):
    witness = scratch()
    try:
        answer = sandbox.run("trap '' TERM HUP; sleep 600 & kill -TERM -1; kill -HUP 0; kill -9 $!; echo on; exit 6")
        assert (answer["exit_code"], answer["stdout"]) == (6, "on\n"), answer
        answer = sandbox.run("sleep 600 & kill -9 -1; wait $!; exit 8")
        assert answer["exit_code"] == 8, answer
        assert witness.poll() is None
    finally:
        witness.kill()
        witness.wait()


def test_nothing_outlives_the_run_by_stopping_or_leaving_it(sandbox):
    marker = sandbox.marker
    answer = sandbox.run(
        f"(setsid setsid sh -c 'trap \"\" TERM HUP INT; kill -STOP $$; sleep {marker}' &); "
        f"setsid sleep {marker} & exit 5"
    )
    assert answer["exit_code"] == 5
    assert sandbox.gone() == []

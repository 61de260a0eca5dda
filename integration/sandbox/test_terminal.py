"""A pseudo-terminal as the command's controlling terminal."""

import shutil
import signal

import pytest


def test_the_command_has_a_controlling_terminal_of_its_own(sandbox):
    script = "test -t 0 && test -t 1 && echo tty; echo through > /dev/tty; cat /proc/self/stat"
    answer = sandbox.run(script, terminal=True)
    lines = answer["stdout"].split()
    assert lines[:2] == ["tty", "through"], answer
    # tty_nr, proc_pid_stat(5)
    assert int(answer["stdout"].rpartition(")")[2].split()[4]) != 0


def test_the_interrupt_key_reaches_the_command(sandbox):
    """P-TT-03."""
    answer = sandbox.run(
        ["sh", "-c", "echo ready; exec sleep 600"],
        terminal=True,
        steps=[["release"], ["await", "ready"], ["type", "\x03"]],
    )
    assert (answer["exit_code"], answer["signal"]) == (130, 2), answer
    assert answer["took"] < 15  # at 40 s the driver gives up


def test_window_size_changes_arrive(sandbox):
    """P-TT-04."""
    code = (
        "import os, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})\n"
        "print('ready', flush=True)\n"
        "signal.sigwait({signal.SIGWINCH})\n"
        "print('size', *os.get_terminal_size(0))\n"
    )
    answer = sandbox.run(
        ["/usr/bin/python3", "-c", code],
        terminal=True,
        steps=[["release"], ["await", "ready"], ["resize", 40, 123]],
    )
    assert "size 123 40" in answer["stdout"], answer
    assert answer["exit_code"] == 0


def test_an_interactive_shell_has_job_control(sandbox):
    """P-TT-05, P-SC-04."""
    answer = sandbox.run(
        ["bash", "--norc", "-i"],
        terminal=True,
        env={"PS1": "prompt> ", "TERM": "dumb"},
        steps=[
            ["release"],
            ["await", "prompt> "],
            ["type", "sh -c 'echo go; exec sleep 100'\n"],
            ["await", "\ngo"],
            ["type", "\x1a"],
            ["await", "Stopped"],
            ["type", "jobs; kill %1; fg; echo finished\n"],
            ["await", "\nfinished"],
            ["type", "exit 3\n"],
        ],
    )
    assert "no job control" not in answer["stdout"]
    assert answer["exit_code"] == 3, answer


def test_the_suspend_key_stops_a_plain_command_and_a_signal_resumes_it(sandbox):
    """Its process group has a parent outside it in the same session, so the kernel does stop it."""
    code = (
        "import signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})\n"
        "print('ready', flush=True)\n"
        "signal.sigwait({signal.SIGCONT})\n"
        "sys.exit(4)\n"
    )
    answer = sandbox.run(
        ["/usr/bin/python3", "-c", code],
        terminal=True,
        steps=[
            ["release"],
            ["await", "ready"],
            ["type", "\x1a"],
            ["await_stopped"],
            ["signal", int(signal.SIGCONT)],
        ],
    )
    assert answer["exit_code"] == 4, answer


def test_nothing_can_be_typed_into_the_callers_terminal(sandbox):
    """P-SC-04."""
    code = (
        "import fcntl, sys\n"
        "for request in (0x5412, 0x541C):\n"
        "    try: fcntl.ioctl(0, request, b'x'); print('typed')\n"
        "    except OSError as error: print(error.errno)\n"
    )
    answer = sandbox.run(["/usr/bin/python3", "-c", code], terminal=True)
    assert answer["stdout"].split() == ["1", "1"], answer


def test_leftovers_on_the_terminal_are_killed(sandbox):
    answer = sandbox.run(f"setsid sleep {sandbox.marker} & sleep {sandbox.marker} & echo done", terminal=True)
    assert answer["stdout"].split() == ["done"]
    assert sandbox.gone() == []


@pytest.mark.skipif(not (shutil.which("tmux") and shutil.which("vim")), reason="no tmux or no vim")
def test_a_full_screen_program_in_a_multiplexer(sandbox):
    sandbox.write("text", "a line to be seen\n")
    answer = sandbox.run(
        "tmux -f /dev/null new-session -d -x 80 -y 24 'vim -u NONE text'; for i in $(seq 100); do "
        "tmux capture-pane -p | grep -q 'a line to be seen' && break; sleep 0.05; done; "
        "tmux capture-pane -p | head -1; "
        "tmux send-keys :q Enter; for i in $(seq 100); do tmux has-session 2>/dev/null || break; sleep 0.05; done; "
        "tmux has-session 2>/dev/null || echo ended",
        env={"TERM": "xterm", "SHELL": "/bin/sh"},
    )
    assert answer["stdout"].split("\n")[0].strip() == "a line to be seen", answer
    assert "ended" in answer["stdout"]

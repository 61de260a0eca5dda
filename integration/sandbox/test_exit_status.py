"""How a run ends, as the caller sees it: exit codes, signals, failures before the start."""

import signal

import pytest


@pytest.mark.parametrize(("script", "code"), [("true", 0), ("false", 1), ("exit 7", 7), ("exit 255", 255)])
def test_the_commands_own_status_comes_back(sandbox, script, code):
    """P-TT-01."""
    answer = sandbox.run(script)
    assert (answer["exit_code"], answer["signal"], answer["failure"]) == (code, None, None)
    assert answer["children"] == []


def test_a_missing_program_is_127_and_says_so(sandbox):
    """P-TT-01: bubblewrap itself would say 1."""
    answer = sandbox.run(["no-such-program-anywhere"])
    assert answer["exit_code"] == 127
    assert answer["failure"][0] == "not-found"
    assert "no-such-program-anywhere" in answer["failure"][1]
    assert answer["stderr"] == ""


def test_a_file_that_may_not_be_executed_is_126(sandbox):
    """P-TT-01."""
    sandbox.write("script", "#!/bin/sh\n")
    answer = sandbox.run(["./script"])
    assert (answer["exit_code"], answer["failure"][0]) == (126, "not-executable")


def test_a_missing_interpreter_is_named(sandbox):
    sandbox.write("script", "#!/no/such/interpreter\n").chmod(0o755)
    answer = sandbox.run(["./script"])
    assert answer["exit_code"] == 127
    assert "/no/such/interpreter" in answer["failure"][1]


def test_a_script_without_a_first_line_runs_as_execvp_runs_it(sandbox):
    sandbox.write("script", "exit 9\n").chmod(0o755)
    assert sandbox.run(["./script"])["exit_code"] == 9


@pytest.mark.parametrize("name", ["TERM", "KILL", "ABRT", "SEGV", "INT", "PIPE"])
def test_death_by_signal_is_128_and_the_signal(sandbox, name):
    """P-TT-02."""
    number = int(getattr(signal, f"SIG{name}"))
    answer = sandbox.run(["sh", "-c", f"ulimit -c 0; kill -{name} $$"])
    assert (answer["exit_code"], answer["signal"], answer["failure"]) == (128 + number, number, None)


def test_a_working_directory_that_is_gone_is_named(sandbox):
    answer = sandbox.run(["true"], cwd=str(sandbox.base / "gone"))
    assert answer["exit_code"] == 125
    assert answer["failure"][0] == "directory"


def test_sizes_below_the_kernels_limits_pass_intact(sandbox):
    """P-EV-16."""
    env = {f"VARIABLE_{n}": str(n) for n in range(500)} | {"LONG": "x" * 100_000}
    code = "import os, sys; print(len(sys.argv), len(sys.argv[1]), len(os.environ['LONG']), os.environ['VARIABLE_499'])"
    answer = sandbox.run(["/usr/bin/python3", "-c", code, "y" * 100_000, *["a"] * 2000], env=env)
    assert answer["stdout"].split() == ["2002", "100000", "100000", "499"], answer


@pytest.mark.parametrize("count", [9_000, 40_000])
def test_more_arguments_than_bubblewrap_takes_pass_intact(sandbox, count):
    """P-EV-16, P-PF-02: bubblewrap stops at 9000 arguments, its own options included."""
    code = "import os, signal, sys; print(len(sys.argv), sys.argv[-1], signal.getsignal(13), os.environ['LAST'])"
    argv = ["/usr/bin/python3", "-c", code, *[""] * count, "end"]
    answer = sandbox.run(argv, env={"LAST": "v"})
    # Python itself ignores SIGPIPE; what matters is that it says so of its own doing
    assert answer["stdout"].split()[:2] == [str(count + 2), "end"], answer
    assert answer["stdout"].split()[-1] == "v"


def test_a_carried_command_keeps_status_and_signals(sandbox):
    argv = ["sh", "-c", "trap - PIPE; kill -PIPE $$", *["x"] * 9000]
    assert sandbox.run(argv)["exit_code"] == 141
    assert sandbox.run(["sh", "-c", "exit 5", *["x"] * 9000])["exit_code"] == 5


def test_a_size_above_the_kernels_limit_is_126_with_the_sizes(sandbox):
    """P-EV-16."""
    answer = sandbox.run(["true", "x" * 131_072])
    assert answer["exit_code"] == 126
    assert "131072" in answer["failure"][1]
    assert "131071" in answer["failure"][1]


@pytest.mark.parametrize("language", ["C", "C.UTF-8"])
def test_bytes_that_are_no_text_arrive_as_they_are(sandbox, language):
    """P-TT-11."""
    name = "a\udcff"
    directory = sandbox.mkdir(name)
    code = "import os, sys; sys.stdout.buffer.write(os.fsencode(sys.argv[1] + os.environ['V'] + os.getcwd()))"
    answer = sandbox.run(
        ["/usr/bin/python3", "-c", code, "\udcff\udcfe"],
        env={"V": "\udcfd", "LC_ALL": language},
        cwd=str(directory),
        outer_env={"LC_ALL": language},
    )
    assert answer["stdout"] == f"\udcff\udcfe\udcfd{directory}", answer


def test_a_nul_byte_is_refused_in_words(sandbox):
    """P-TT-11."""
    answer = sandbox.run(["echo", "a\0b"])
    assert answer["exit_code"] == 126
    assert "NUL" in answer["failure"][1]

"""What the sandbox refused is told from what happened, and nothing is told that it did not refuse."""

import os
import socket
import tempfile

import pytest

PYTHON = "/usr/bin/python3"


def denied(sandbox, script, **policy):
    answer = sandbox.run(script, policy={"explain": True, **policy})
    assert answer["failure"] is None, answer
    return [tuple(each) for each in answer["denied"]], answer


@pytest.fixture
def outside(sandbox):
    """A folder of the same user's outside the workspace."""
    folder = sandbox.base / "outside"
    folder.mkdir()
    (folder / "there").write_text("x")
    (folder / "folder").mkdir()
    for path in (folder, folder / "there", folder / "folder"):
        sandbox.own(path)
    return folder


@pytest.mark.parametrize(
    ("script", "name", "operation"),
    [
        ("echo x > {o}/new", "new", "write"),
        ("echo x >> {o}/there", "there", "write"),
        (f"exec {PYTHON} -c \"import os; os.open('{{o}}/there', os.O_RDWR)\"", "there", "write"),
        ("mkdir {o}/new", "new", "mkdir"),
        ("rm -f {o}/there", "there", "remove"),
        ("rmdir {o}/folder", "folder", "remove"),
        ("mv {o}/there {o}/other", "other", "replace"),
        ("ln -s a {o}/new", "new", "link"),
        ("mkfifo {o}/new", "new", "mknod"),
        ("chmod 700 {o}/there", "there", "chmod"),
        (f"{PYTHON} -c \"import os; os.truncate('{{o}}/there', 0)\"", "there", "write"),
        # relative to the folder, and to an open folder
        ("cd {o}; echo x > new", "new", "write"),
        (
            f"{PYTHON} -c \"import os; d = os.open('{{o}}', os.O_RDONLY); os.mkdir('new', dir_fd=d)\"",
            "new", "mkdir",
        ),
        ("ln -s {o} link; echo x > link/new", None, "write"),
    ],
)  # fmt: skip
def test_each_operation_outside(sandbox, outside, script, name, operation):
    found, answer = denied(sandbox, script.format(o=f"'{outside}'" if "python" not in script else outside))
    path = str(outside / name) if name else str(sandbox.path("link", "new"))
    assert (path, operation, "outside", str(outside)) in found, (found, answer["stderr"])
    assert sorted(os.listdir(outside)) == ["folder", "there"]


def test_what_works_and_what_would_fail_anywhere_is_not_told(sandbox, outside):
    """Also what the user may not do outside either: that is not the sandbox's refusal."""
    closed = sandbox.base / "closed"
    closed.mkdir()
    sandbox.own(closed)
    if not sandbox.is_root:
        closed.chmod(0o555)
    script = f"""
echo x > made; mkdir -p '{outside}' a/b; mv made moved; rm moved; touch /tmp/x /dev/shm/x; : > /dev/null
mkdir '{outside}'; rm -f '{outside}/absent'; echo x > '{outside}/absent/x'; cat '{outside}/there' > /dev/null
rm /no/such/place; {PYTHON} -c 'import json'; echo x > a
""" + ("" if sandbox.is_root else f"touch '{closed}/x'; chmod 700 /usr\n")
    found, _ = denied(sandbox, script)
    assert found == []


def test_protected_and_read_only_islands(sandbox):
    sandbox.git("init", "-q")
    sandbox.write("kept/file", "x")
    found, _ = denied(
        sandbox,
        "echo x > .git/hooks/post-commit; mv .git/hooks .git/h; git config a.b c; rm kept/file; echo x > .git/d",
        read_only=["kept"],
    )
    at = {path: (why, grant) for path, _, why, grant in found}
    hooks, config = str(sandbox.path(".git", "hooks")), str(sandbox.path(".git", "config"))
    assert at[f"{hooks}/post-commit"] == ("protected", hooks)
    assert at[hooks] == ("protected", hooks)
    assert at[config] == ("protected", config)
    assert at[str(sandbox.path("kept", "file"))] == ("protected", str(sandbox.path("kept")))
    assert str(sandbox.path(".git", "d")) not in at


def test_hidden_paths_and_reading_them(sandbox):
    sandbox.write(".env", "x")
    sandbox.write("secret/inner", "x")
    found, _ = denied(
        sandbox, "cat .env; cat secret/inner; echo x > .env; cat /etc/hostname", deny_read=[".env", "secret"]
    )
    assert [(path, operation, why) for path, operation, why, _ in found] == [
        (str(sandbox.path("secret", "inner")), "read", "hidden"),
        (str(sandbox.path(".env")), "write", "hidden"),
    ]


def test_places_the_sandbox_has_of_its_own(caller_sandbox):
    if not caller_sandbox.is_root:
        pytest.skip("root only: below /run an ordinary user has no folder that is always there")
    with tempfile.TemporaryDirectory(prefix="tested-", dir="/run") as folder:
        found, _ = denied(caller_sandbox, f"echo x > {folder}/new")
        assert found == [(f"{folder}/new", "write", "private", folder)]
        assert os.listdir(folder) == []


def test_sockets_of_the_host(sandbox):
    path = sandbox.path("service.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        os.chmod(path, 0o777)
        sandbox.own(path)
        script = f"import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r})"
        found, answer = denied(sandbox, [PYTHON, "-c", script])
        assert answer["exit_code"] == 1
        assert found == [(str(path), "connect", "socket", str(path))]


def test_a_read_only_workspace(sandbox):
    found, _ = denied(sandbox, "touch x", mode="read-only")
    assert found == [(str(sandbox.path("x")), "write", "outside", str(sandbox.workspace))]


def test_threads_and_processes_at_once(sandbox, outside):
    """Every one is answered, and the run ends when the command does."""
    script = (
        "import os, threading\n"
        "def work(n):\n"
        "    for i in range(40):\n"
        "        os.mkdir(f'd{n}-{i}'); os.rmdir(f'd{n}-{i}')\n"
        "for n in range(3):\n"
        "    if os.fork() == 0:\n"
        "        threads = [threading.Thread(target=work, args=(f'{n}-{t}',)) for t in range(4)]\n"
        "        [t.start() for t in threads]; [t.join() for t in threads]\n"
        "        os._exit(0)\n"
        "print([os.wait()[1] for _ in range(3)])\n"
        f"open({str(outside / 'new')!r}, 'w')\n"
    )
    found, answer = denied(sandbox, [PYTHON, "-c", script])
    assert answer["stdout"] == "[0, 0, 0]\n"
    assert [path for path, *_ in found] == [str(outside / "new")]


def test_many_refusals_keep_the_last(sandbox, outside):
    found, _ = denied(sandbox, f"i=0; while [ $i -lt 300 ]; do echo > '{outside}'/$i; i=$((i+1)); done 2>/dev/null")
    assert 20 <= len(found) <= 100
    assert found[-1][0] == str(outside / "299")


def test_signals_and_the_end_of_the_run(sandbox):
    """A command that is stopped in the midst of watched calls leaves nothing behind."""
    loop = f"import os\nprint('up', flush=True)\nwhile True: os.mkdir('d'); os.rmdir('d')  # {sandbox.marker}"
    answer = sandbox.run(
        [PYTHON, "-c", loop], policy={"explain": True}, steps=[["release"], ["await", "up"], ["signal", 15]]
    )
    assert answer["exit_code"] == 128 + 15
    driver = sandbox.start([PYTHON, "-c", loop], policy={"explain": True}, steps=[["release"], ["say", "x"], ["hang"]])
    assert driver.stderr.read(1) == b"x"
    driver.kill()
    driver.communicate(timeout=20)
    assert sandbox.gone() == []


def test_without_it_no_filter_is_added(sandbox):
    count = "grep -h Seccomp_filters /proc/self/status"
    with_it, without = (sandbox.run(count, policy={"explain": on})["stdout"].split() for on in (True, False))
    if without:  # Linux 5.9 and later
        assert int(with_it[1]) == int(without[1]) + 1

"""What is to be hidden is covered in either way of making namespaces, however many sockets come and go meanwhile."""

import contextlib
import os
import socket
import threading

import pytest
from unix_service import Service

WAYS = [False, True]


@contextlib.contextmanager
def coming_and_going(folder):
    """Sockets in `folder`, of which none lives longer than a start takes."""
    ended = threading.Event()

    def make():
        living = []
        while not ended.wait(0.0003):
            made = socket.socket(socket.AF_UNIX)
            made.bind(f"{folder}/{os.urandom(4).hex()}")
            living.append(made)
            if len(living) > 50:
                remove(living.pop(0))
        for made in living:
            remove(made)

    def remove(made):
        os.unlink(made.getsockname())
        made.close()

    maker = threading.Thread(target=make)
    maker.start()
    try:
        yield
    finally:
        ended.set()
        maker.join()


@pytest.mark.parametrize("bubblewrap_first", WAYS)
def test_sockets_that_go_away_meanwhile_cost_no_start_and_those_that_stay_are_covered(sandbox, bubblewrap_first):
    """Those in the workspace too, where nothing must be left in their place."""
    folder = sandbox.base / "sockets"
    folder.mkdir()
    steady = [str(folder / "steady.sock"), str(sandbox.path("steady.sock"))]
    code = (
        "import os, socket\n"
        f"for path in {steady!r}:\n"
        "    with socket.socket(socket.AF_UNIX) as s:\n"
        "        try: s.connect(path); print('connected', path)\n"
        "        except OSError as error: pass\n"
        "with open('started', 'a') as file: file.write('x')\n"
    )
    with contextlib.ExitStack() as stack:
        services = [stack.enter_context(Service(path)) for path in steady]
        for place in (folder, sandbox.workspace):
            stack.enter_context(coming_and_going(place))
        answer = sandbox.run(
            ["/usr/bin/python3", "-c", code],
            policy={"network": "proxied"},
            bubblewrap_first=bubblewrap_first,
            repeat=3,
        )
        assert (answer["exit_code"], answer["failure"], answer["stdout"]) == (0, None, ""), answer
        assert answer["stderr"] == ""
        assert [service.visitors for service in services] == [0, 0]
    assert sandbox.path("started").read_text() == "xxx"
    assert sorted(os.listdir(sandbox.workspace)) == ["started", "steady.sock"]


def test_bubblewraps_own_namespaces_hide_files_and_folders_and_are_the_last(sandbox):
    sandbox.write("secret.env", "file secret")
    sandbox.write("secrets/inner/shown.txt", "shown")
    sandbox.write("secrets/hidden.txt", "folder secret")
    script = (
        "cat secret.env secrets/hidden.txt; cat secrets/inner/shown.txt; touch secrets/x; rm secret.env;"
        " echo made > made; unshare -U true; echo $?"
    )
    hidden = [str(sandbox.path(name)) for name in ("secret.env", "secrets")]
    answer = sandbox.run(
        script,
        policy={"deny_read": hidden, "read_only": [str(sandbox.path("secrets/inner"))], "network": "proxied"},
        bubblewrap_first=True,
        without_filter=True,
    )
    assert answer["stdout"] == "shown1\n", answer
    assert "secret" not in answer["stdout"]
    assert "secret.env: Permission denied" in answer["stderr"], answer
    assert sandbox.path("secret.env").read_text() == "file secret"
    assert sandbox.path("made").read_text() == "made\n"
    assert not sandbox.path("secrets/x").exists()


@pytest.mark.parametrize("bubblewrap_first", WAYS)
def test_another_path_that_goes_away_meanwhile_is_named(sandbox, bubblewrap_first):
    path = sandbox.write("shown.txt", "x")
    answer = sandbox.run(
        "echo started",
        policy={"read_only": [str(path)], "network": "proxied"},
        bubblewrap_first=bubblewrap_first,
        vanishing=str(path),
    )
    sentence = f"{path} went away while the sandbox was being set up."
    assert answer["failure"] == ["sandbox", sentence, "Try again."], answer
    assert answer["exit_code"] == 125
    assert answer["stdout"] == ""

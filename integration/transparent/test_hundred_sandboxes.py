"""A hundred sandboxes open at once in one program: each with its own rules, names and listeners."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from doorward import open_session

SANDBOXES = 100
AT_ONCE = 4  # that start at the same moment; all of them are open together

ASK = """
import socket, sys
for name in sys.argv[1:]:
    try: print(socket.gethostbyname(name))
    except OSError: print('refused')
"""


def test_a_hundred_at_once_know_nothing_of_each_other(folder: Path) -> None:
    home = folder / "session-home"
    home.mkdir()
    sessions: list[Any] = [None] * SANDBOXES
    outputs: list[str] = [""] * SANDBOXES
    errors: list[BaseException] = []

    def each(work: Any) -> None:
        def worker(first: int) -> None:
            for number in range(first, SANDBOXES, AT_ONCE):
                try:
                    work(number)
                except BaseException as error:
                    errors.append(error)

        threads = [threading.Thread(target=worker, args=(first,)) for first in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(240)
        assert not errors, errors[0]

    def open_one(number: int) -> None:
        workspace = folder / f"work-{number}"
        workspace.mkdir()
        sessions[number] = open_session(allow=[f"n{number}.test"], cwd=workspace, home=home)

    def ask_one(number: int) -> None:
        other = (number + 1) % SANDBOXES
        words = [f"n{number}.test", f"n{other}.test"]
        outputs[number] = sessions[number].exec(["/usr/bin/python3", "-c", ASK, *words]).output

    try:
        each(open_one)
        each(ask_one)
        assert len(set(sessions)) == SANDBOXES
        # the same address in each: tables are their own
        assert set(outputs) == {"198.18.0.1\nrefused\n"}, set(outputs)
    finally:
        each(lambda number: sessions[number] and sessions[number].close())

"""A service of the host that ends while a sandbox is being set up is no reason to refuse a run."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from typing import Any


def test_sockets_that_vanish_stop_no_run(doorward: Any) -> None:
    # in the workspace, which is below /tmp: this sandbox sees them, and no neighbour's
    with tempfile.TemporaryDirectory(dir=doorward.workspace) as folder:
        over = threading.Event()
        made = 0

        def churn() -> None:
            nonlocal made
            while not over.is_set():
                made += 1
                paths = [f"{folder}/{made}-{number}" for number in range(8)]
                with contextlib.ExitStack() as stack:
                    for path in paths:
                        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
                        listener.bind(path)
                        listener.listen(1)
                    over.wait(0.002)
                for path in paths:
                    os.unlink(path)

        thread = threading.Thread(target=churn)
        thread.start()
        try:
            seen = [doorward("run", "--no-record-output", "--", "true") for _ in range(8)]
        finally:
            over.set()
            thread.join()
        assert [(ran.status, ran.err) for ran in seen] == [(0, "")] * 8
        assert made > 1

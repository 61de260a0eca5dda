"""An inspection worker that ends before it was told everything: no error of its own, it is not ready."""

from __future__ import annotations

import socket

import pytest

from doorward.errors import EngineError
from doorward.inspection_process import InspectionProcess


def test_it_is_not_ready_and_no_more() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        # more than the channel holds: what is sent last finds nobody
        worker = InspectionProcess("/bin/true", {"text": "x" * 10_000_000}, theirs)
        try:
            with pytest.raises(EngineError, match="did not become ready"):
                worker.await_ready()
        finally:
            worker.close()

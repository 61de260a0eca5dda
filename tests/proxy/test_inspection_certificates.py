"""What a home's authority and a run's issuer are, where nothing is started."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

pytest.importorskip("OpenSSL", reason="pyOpenSSL comes with doorward[inspect], from Python 3.12 on")

from doorward.proxy.inspection.certificates import ISSUER_DAYS, Issuer, alone_in, authority
from doorward.proxy.inspection.upstream import ClientSide


def test_first_runs_at_once_make_one_authority(tmp_path: Path) -> None:
    folder = str(tmp_path / "inspect")
    found: list[bytes] = []
    begin = threading.Barrier(4)

    def make() -> None:
        begin.wait(10)
        with alone_in(folder):
            found.append(authority(folder).pem)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 4 and len(set(found)) == 1


def test_an_issuer_does_not_run_out(tmp_path: Path) -> None:
    """A door alone may run for months."""
    home = authority(str(tmp_path / "inspect"))
    made: list[Issuer] = []
    now = [0.0]

    def issuer() -> Issuer:
        made.append(home.issuer(["a.test"]))
        return made[-1]

    side = ClientSide(issuer, clock=lambda: now[0])
    side.accept("a.test", b"")
    now[0] += (ISSUER_DAYS / 2 - 1) * 86400
    side.accept("a.test", b"")
    assert len(made) == 1
    now[0] += 2 * 86400
    side.accept("a.test", b"")
    side.accept("a.test", b"")
    assert len(made) == 2

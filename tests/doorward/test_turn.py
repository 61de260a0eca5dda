"""Records of the proxy in the supervisor's loop: kept first, then acknowledged, then whatever else there is to do."""

from __future__ import annotations

from typing import Any

import pytest

from doorward.errors import EngineError
from doorward.turn import TurnLoop


class Proxy:
    """One that has sent something."""

    def __init__(self, did: list[str], receipts: bytes, finished: list[str]) -> None:
        self.did = did
        self.questions: list[Any] = []
        self._arrived = [("network", {"port": 1}, '{"port":1}')], receipts, finished

    def records(self) -> Any:
        return self._arrived

    def acknowledge(self, receipts: bytes) -> None:
        self.did.append(f"acknowledged {receipts.decode().split()}")


def loop(proxy: Any, append: Any) -> TurnLoop:
    nothing: Any = None
    return TurnLoop(
        nothing, nothing, proxy, "1", append,
        kept=lambda items: proxy.did.append(f"heard of {len(items)}"),
        between=lambda: proxy.did.append("between"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("receipts", "finished", "then"),
    [
        (b"1\n2\n", [], ["acknowledged ['1', '2']", "heard of 1", "between"]),
        (b"", [], ["heard of 1", "between"]),
        (b"1\n", ["1"], ["acknowledged ['1']", "heard of 1"]),
    ],
)
def test_records_are_kept_before_anybody_hears_of_them(receipts: bytes, finished: list[str], then: list[str]) -> None:
    did: list[str] = []
    loop(Proxy(did, receipts, finished), lambda items: did.append("kept"))._proxy_records()
    assert did == ["kept", *then]


def test_what_is_not_kept_is_not_acknowledged() -> None:
    did: list[str] = []

    def full(items: object) -> None:
        raise EngineError("the disk is full")

    with pytest.raises(EngineError):
        loop(Proxy(did, b"1\n", []), full)._proxy_records()
    assert did == []

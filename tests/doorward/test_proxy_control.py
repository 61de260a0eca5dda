"""Which Host headers a control listener on loopback serves."""

from __future__ import annotations

import pytest

pytest.importorskip("aiohttp")

from doorward.listen_address import ListenAddress
from doorward.proxy_control import names_this

V4, V6, HTTP = ListenAddress("127.0.0.1", 9090), ListenAddress("::1", 9090), ListenAddress("127.0.0.1", 80)


@pytest.mark.parametrize(
    ("host", "bound", "served"),
    [
        ("127.0.0.1:9090", V4, True),
        ("localhost:9090", V4, True),
        ("LocalHost:9090", V4, True),
        ("[::1]:9090", V6, True),
        ("localhost:9090", V6, True),
        ("127.0.0.1", HTTP, True),
        ("localhost", HTTP, True),
        ("", V4, False),
        ("127.0.0.1", V4, False),
        ("127.0.0.1:9091", V4, False),
        ("127.0.0.2:9090", V4, False),
        ("[::1]:9090", V4, False),
        ("rebound.test:9090", V4, False),
        ("127.0.0.1.rebound.test:9090", V4, False),
        ("localhost.rebound.test:9090", V4, False),
        ("localhost.:9090", V4, False),
        ("a@127.0.0.1:9090", V4, False),
        ("127.0.0.1:09090", V4, False),
        ("anything", None, True),
    ],
)
def test_only_its_own(host: str, bound: ListenAddress | None, served: bool) -> None:
    assert names_this(host, bound) is served

"""When a run is inspected, and what it is told; nothing is started here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from doorward import inspection_process, inspection_settings
from doorward.configuration import Configuration, load
from doorward.errors import UsageError
from doorward.inspection_settings import Inspection, inspection_for
from doorward.network_settings import asks_for_inspection, network_settings
from doorward.sessions.home import Home
from doorward.trust_environment import BUNDLE_VARIABLES, trusting


def configured(tmp_path: Path, **flags: Any) -> Configuration:
    return load(str(tmp_path / "home"), str(tmp_path), {}, flags={k.replace("__", "."): v for k, v in flags.items()})


def asked(tmp_path: Path, **flags: Any) -> Inspection | None:
    home = Home(str(tmp_path / "home"))
    configuration = configured(tmp_path, **flags)
    settings, _ = network_settings(configuration, home, {})
    if not asks_for_inspection(configuration, settings):
        return None
    return inspection_for(configuration, settings, home, {})


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection_settings, "interpreter", lambda named: named or "/python")


@pytest.fixture
def unable(monkeypatch: pytest.MonkeyPatch) -> None:
    def interpreter(named: str | None) -> str:
        raise UsageError("doorward: inspection needs mitmproxy; install it")

    monkeypatch.setattr(inspection_settings, "interpreter", interpreter)


@pytest.mark.usefixtures("able")
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, False),
        ({"network__allow": ["a.test"]}, False),
        ({"network__allow": [{"host": "a.test", "tls": "any"}]}, False),
        ({"network__allow": [{"host": "a.test:80", "methods": ["GET"]}]}, False),
        ({"network__allow": [{"host": "a.test", "methods": ["GET"]}]}, True),
        ({"network__allow": ['{host = "a.test", paths = ["/x"]}']}, True),
        ({"network__allow": [{"host": "a.test:8443", "query": {"a": "b"}}]}, True),
        ({"network__allow": ["@git-fetch:a.test/x/y"]}, True),
        ({"network__allow": ["a.test"], "network__mode": "limited"}, True),
        ({"network__allow": ["a.test"], "inspect__all": True}, True),
    ],
)
def test_what_asks_for_it(tmp_path: Path, flags: dict[str, Any], expected: bool) -> None:
    assert (asked(tmp_path, **flags) is not None) is expected


@pytest.mark.usefixtures("able")
def test_an_issuer_is_for_the_names_that_are_inspected(tmp_path: Path) -> None:
    rules = [{"host": "*.a.test", "methods": ["GET"]}, {"host": "192.0.2.7", "paths": ["/x"]}, "b.test"]
    found = asked(tmp_path, network__allow=rules)
    assert found is not None and found.work["names"] == ["a.test", "192.0.2.7/32"]
    assert asked(tmp_path, network__allow=["a.test"], inspect__all=True).work["names"] is None  # type: ignore[union-attr]
    star = asked(tmp_path, network__allow=[{"host": "*", "methods": ["GET"]}])
    assert star is not None and star.work["names"] is None


@pytest.mark.usefixtures("unable")
def test_a_rule_that_cannot_hold_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\.test.*needs inspection.*install it"):
        asked(tmp_path, network__allow=[{"host": "a.test", "methods": ["GET"]}])
    with pytest.raises(UsageError, match="--inspect"):
        asked(tmp_path, network__allow=["a.test"], inspect__all=True)


@pytest.mark.usefixtures("unable")
def test_plain_http_on_another_port_needs_none(tmp_path: Path) -> None:
    """The door reads it; TLS there is refused."""
    assert asked(tmp_path, network__allow=[{"host": "a.test:8080", "methods": ["GET"]}]) is None


def test_the_interpreter_is_named_or_this_one_or_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert inspection_process.interpreter(sys.executable) == sys.executable
    with pytest.raises(UsageError, match="no program"):
        inspection_process.interpreter(str(tmp_path / "python"))
    monkeypatch.setattr(sys, "version_info", (3, 11, 9))
    with pytest.raises(UsageError, match=r"Python 3\.12.*inspect\.python"):
        inspection_process.interpreter(None)


def test_variables_for_every_client() -> None:
    """EV: what the caller had is replaced, what would lead past it is gone."""
    outer = {"SSL_CERT_FILE": "/x", "NODE_TLS_REJECT_UNAUTHORIZED": "0", "JAVA_TOOL_OPTIONS": "-Da=b", "HOME": "/h"}
    inside = trusting(outer, "/home/inspect/bundle.pem", "/home/inspect/trust.p12")
    assert len({inside[name] for name in BUNDLE_VARIABLES}) == 1 and inside["SSL_CERT_FILE"] != "/x"
    assert "NODE_TLS_REJECT_UNAUTHORIZED" not in inside and inside["HOME"] == "/h"
    assert inside["JAVA_TOOL_OPTIONS"].startswith("-Da=b -Djavax.net.ssl.trustStore=/home/inspect/trust.p12 ")
    assert "trustStore" not in trusting({}, "/b", "").get("JAVA_TOOL_OPTIONS", "")

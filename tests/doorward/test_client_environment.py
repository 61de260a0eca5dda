"""`doorward proxy --client-env`: what a shell reads of it."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from doorward.client_environment import ClientEnvironment
from doorward.errors import UsageError
from doorward.trust_environment import BUNDLE_VARIABLES


def read(path: Path, *names: str) -> list[str]:
    script = f". {path}; " + "; ".join(f'echo "${name}"' for name in names)
    done = subprocess.run(["sh", "-c", script], env={}, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.splitlines()


def test_what_a_shell_reads(tmp_path: Path) -> None:
    path = tmp_path / "client.env"
    environment = ClientEnvironment(str(path), "http://127.0.0.1:3128")
    assert read(path, "https_proxy", "SSL_CERT_FILE") == ["http://127.0.0.1:3128", ""]
    files = {"bundle": "/a home/bundle.pem", "java": "/a home/trust.p12"}
    assert environment.write(files, {"TOKEN": "it's $HOME"}) == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read(path, *BUNDLE_VARIABLES) == ["/a home/bundle.pem"] * len(BUNDLE_VARIABLES)
    assert read(path, "TOKEN") == ["it's $HOME"]
    assert '"-Djavax.net.ssl.trustStore=/a home/trust.p12"' in read(path, "JAVA_TOOL_OPTIONS")[0]
    assert [each.name for each in tmp_path.iterdir()] == ["client.env"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--client-env .*/nowhere/x cannot be written.*a folder that is there"):
        ClientEnvironment(str(tmp_path / "nowhere" / "x"), "http://127.0.0.1:3128")

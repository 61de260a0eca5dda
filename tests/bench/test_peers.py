"""Finding peers in a folder, and the settings they are given; no peer is started."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import peers
import pytest
from timing import DidNotWork


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder as npm leaves it, with empty files."""
    for module in (
        "@openai/codex/bin/codex.js",
        "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/codex-path/rg",
        "@anthropic-ai/sandbox-runtime/dist/cli.js",
    ):
        file = tmp_path / "npm" / "node_modules" / module
        file.parent.mkdir(parents=True)
        file.touch(mode=0o755)
    (tmp_path / "scratch").mkdir()
    return tmp_path


def executables(folder: Path, *names: str) -> str:
    folder.mkdir()
    for name in names:
        (folder / name).touch(mode=0o755)
    return str(folder)


def test_codex_is_the_native_executable_not_the_shim(installed: Path) -> None:
    start = peers.codex(str(installed / "npm"), str(installed / "scratch"), {}, proxy=True)
    assert start.prefix[0].endswith("/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")


@pytest.mark.parametrize("proxy", [True, False])
def test_codex_gets_domains_only_with_its_proxy(installed: Path, proxy: bool) -> None:
    """Domains with the feature off would mean an unfiltered network in codex 0.171."""
    start = peers.codex(str(installed / "npm"), str(installed / "scratch"), {}, proxy=proxy)
    config = tomllib.loads((Path(start.env["CODEX_HOME"]) / "config.toml").read_text())
    assert config["features"]["network_proxy"] is proxy
    assert ("network" in config["permissions"]["bench"]) is proxy


def test_codex_on_path_is_followed_from_the_shim_to_the_native_executable(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed / "bin").mkdir()
    (installed / "bin" / "codex").symlink_to(installed / "npm/node_modules/@openai/codex/bin/codex.js")
    monkeypatch.setenv("PATH", str(installed / "bin"))
    start = peers.codex(None, str(installed / "scratch"), {}, proxy=False)
    assert start.prefix[0].endswith("/bin/codex") and "codex-linux-x64" in start.prefix[0]


def test_srt_allows_one_domain_and_borrows_ripgrep(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = executables(installed / "bin", "node")
    monkeypatch.setenv("PATH", path)
    start = peers.srt(str(installed / "npm"), str(installed / "scratch"), {"PATH": path})
    assert start.prefix[0] == f"{path}/node"
    settings = json.loads(Path(start.prefix[start.prefix.index("--settings") + 1]).read_text())
    assert settings["network"]["allowedDomains"] == ["allowed.test"]
    assert start.env["PATH"].endswith("/codex-path")


def test_srt_keeps_the_machines_own_ripgrep(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = executables(installed / "bin", "node", "rg")
    monkeypatch.setenv("PATH", path)
    start = peers.srt(str(installed / "npm"), str(installed / "scratch"), {"PATH": path})
    assert start.env["PATH"] == path


@pytest.mark.parametrize("folder", ["given", None])
def test_a_peer_that_is_not_there_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str | None) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    where = str(tmp_path) if folder else None
    expected = "--peers" if folder else "not found on PATH"
    with pytest.raises(DidNotWork, match=expected):
        peers.codex(where, str(tmp_path), {}, proxy=True)
    with pytest.raises(DidNotWork, match=expected):
        peers.srt(where, str(tmp_path), {"PATH": str(tmp_path)})

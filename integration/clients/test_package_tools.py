"""pip, uv, npm and apt against small registries of the test's own."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HINT = "is in no allow rule - to allow it: --allow b.test:"
ARCHIVE = "/files/demo_of_doorward-1.0-py3-none-any.whl"


def _wheel() -> bytes:
    """The smallest thing pip and uv take for a package."""
    files = {
        "demo_of_doorward.py": b"",
        "demo_of_doorward-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: demo-of-doorward\nVersion: 1.0\n",
        "demo_of_doorward-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in files) + "demo_of_doorward-1.0.dist-info/RECORD,,\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in {**files, "demo_of_doorward-1.0.dist-info/RECORD": record.encode()}.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # no date: the same bytes each time
    return packed.getvalue()


@pytest.fixture
def index(tls: Any) -> Any:
    """An origin with a Python package index of one project."""
    link = f'<html><body><a href="{ARCHIVE}">{ARCHIVE.rpartition("/")[2]}</a></body></html>'
    tls.pages["/simple/demo-of-doorward/"] = ("text/html", link.encode())
    tls.pages[ARCHIVE] = ("application/octet-stream", _wheel())
    return tls


def test_pip(doorward: Any, index: Any, authority: Any, python: Any) -> None:
    env = {**authority.trusted(), "PIP_CONFIG_FILE": "/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = [python.path, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--retries", "1", "--index-url"]
    inside = (*python.shown, *index.reach(), "--")
    allowed = doorward(*inside, *pip, index.url(path="/simple/"), "demo-of-doorward", env=env)
    assert (allowed.status, allowed.reasons) == (0, []), allowed.output
    assert (doorward.workspace / ARCHIVE.rpartition("/")[2]).read_bytes() == _wheel()
    served = list(index.paths)
    refused = doorward(*inside, *pip, index.url("b.test", "/simple/"), "demo-of-doorward", env=env)
    assert refused.status == 1
    assert set(refused.reasons) == {"not_allowed"}
    refused.says(
        "403 Blocked (not_allowed): b.test:",
        HINT,
        "ERROR: No matching distribution found for",
    )
    assert f"to allow it: --allow b.test:{index.port}" in refused.err
    assert index.paths == served


def test_uv(doorward: Any, index: Any, authority: Any, python_clients: Any) -> None:
    uv = [str(python_clients.folder / "bin" / "uv"), "pip", "install", "--no-config", "--no-cache", "--no-deps"]
    uv += ["--python", python_clients.path]
    env = {**authority.trusted(), "UV_HTTP_RETRIES": "0"}
    inside = (*python_clients.shown, *index.reach(), "--")
    taken = ("--target", "taken", "--default-index", index.url(path="/simple/"), "demo-of-doorward")
    allowed = doorward(*inside, *uv, *taken, env=env)
    assert (allowed.status, allowed.reasons) == (0, []), allowed.output
    assert (doorward.workspace / "taken" / "demo_of_doorward.py").exists()
    served = list(index.paths)
    other = ("--target", "other", "--default-index", index.url("b.test", "/simple/"), "demo-of-doorward")
    refused = doorward(*inside, *uv, *other, env=env)
    assert refused.status != 0
    assert set(refused.reasons) == {"not_allowed"}
    refused.says("error: Failed to fetch:", "tunnel error: unsuccessful")
    assert f"to allow it: --allow b.test:{index.port}" in refused.err
    assert index.paths == served


@pytest.fixture
def registry(web: Any) -> Any:
    """An origin with an npm registry of one package."""
    packed = io.BytesIO()
    manifest = json.dumps({"name": "demo-of-doorward", "version": "1.0.0"}).encode()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(manifest)
        archive.addfile(entry, io.BytesIO(manifest))
    body = packed.getvalue()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(body).digest()).decode()
    dist = {"tarball": web.url(path="/demo.tgz"), "integrity": integrity}
    version = {"name": "demo-of-doorward", "version": "1.0.0", "dist": dist}
    document = {"name": "demo-of-doorward", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    web.pages["/demo-of-doorward"] = ("application/json", json.dumps(document).encode())
    web.pages["/demo.tgz"] = ("application/octet-stream", body)
    return web


def _npm(program: str) -> list[str]:
    return [program, "install", "--no-audit", "--no-fund", "--no-update-notifier", "demo-of-doorward", "--registry"]


def test_npm(doorward: Any, registry: Any, client: Callable[[str], str]) -> None:
    npm = _npm(client("npm"))
    allowed = doorward(*registry.reach(), "--", *npm, registry.url())
    assert (allowed.status, allowed.reasons) == (0, []), allowed.output
    assert (doorward.workspace / "node_modules" / "demo-of-doorward" / "package.json").exists()
    served = list(registry.paths)
    refused = doorward(*registry.reach(), "--", *npm, registry.url("b.test"))
    assert refused.status == 1
    assert set(refused.reasons) == {"not_allowed"}
    refused.says("npm error code E403", "npm error 403 403 Blocked (not_allowed): b.test:", HINT, " - GET http://b.test:")
    assert f"to allow it: --allow b.test:{registry.port}" in refused.err
    assert registry.paths == served


def test_npm_through_a_tunnel(doorward: Any, tls: Any, authority: Any, client: Callable[[str], str]) -> None:
    npm = _npm(client("npm"))
    refused = doorward(*tls.reach(), "--", *npm, tls.url("b.test"), "--fetch-retries=0", env=authority.trusted())
    assert refused.status == 1
    assert set(refused.reasons) == {"not_allowed"}
    refused.says("npm error")


def test_npm_takes_no_inherited_proxy(doorward: Any, registry: Any, client: Callable[[str], str]) -> None:
    """P-EV-12: a dead proxy in npm's own variables is not handed on, and no rc file is written."""
    dead = {"npm_config_proxy": "http://127.0.0.1:9", "npm_config_https_proxy": "http://127.0.0.1:9"}
    allowed = doorward(*registry.reach(), "--", *_npm(client("npm")), registry.url(), env=dead)
    assert (allowed.status, allowed.reasons) == (0, []), allowed.output
    assert not list(doorward.workspace.rglob(".npmrc"))
    seen = doorward("--", "env", env=dead)
    assert "npm_config" not in seen.output.lower()


@pytest.fixture
def archive(web: Any, tmp_path: Path, client: Callable[[str], str]) -> Any:
    """An origin with a flat Debian archive of one package."""
    client("apt-get")
    tree = tmp_path / "package" / "DEBIAN"
    tree.mkdir(parents=True)
    fields = "Package: demo-of-doorward\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@t.test>\nDescription: demo\n"
    (tree / "control").write_text(fields)
    built = tmp_path / "demo.deb"
    subprocess.run(
        [client("dpkg-deb"), "--root-owner-group", "--build", str(tree.parent), str(built)],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    body = built.read_bytes()
    digest = hashlib.sha256(body).hexdigest()
    listed = f"{fields}Filename: ./demo.deb\nSize: {len(body)}\nSHA256: {digest}\n\n".encode()
    packed = gzip.compress(listed)
    release = "Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n" + "".join(
        f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n"
        for name, content in (("Packages", listed), ("Packages.gz", packed))
    )
    for name, content in (("Packages", listed), ("Packages.gz", packed), ("Release", release.encode())):
        web.pages[f"/./{name}"] = web.pages[f"/{name}"] = ("text/plain", content)
    web.pages["/./demo.deb"] = web.pages["/demo.deb"] = ("application/octet-stream", body)
    return web


def apt_in_workspace(workspace: Path, sources: str | None) -> list[str]:
    """apt-get that writes into the workspace alone; `sources` replaces the machine's own."""
    for folder in ("lists/partial", "cache/archives/partial", "log"):
        (workspace / "apt" / folder).mkdir(parents=True, exist_ok=True)
    options = {
        "Dir::State::Lists": "lists",
        "Dir::Cache": "cache",
        "Dir::Log": "log",
    }
    words = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=0"]
    for name, folder in options.items():
        words += ["-o", f"{name}={workspace / 'apt' / folder}/"]
    if sources is not None:
        (workspace / "apt" / "sources.list").write_text(sources)
        words += ["-o", f"Dir::Etc::SourceList={workspace / 'apt' / 'sources.list'}", "-o", "Dir::Etc::SourceParts=-"]
    return words


def test_apt(doorward: Any, archive: Any) -> None:
    apt = apt_in_workspace(doorward.workspace, f"deb [trusted=yes] {archive.url()} ./\n")
    updated = doorward(*archive.reach(), "--", *apt, "update")
    assert (updated.status, updated.reasons) == (0, []), updated.output
    fetched = doorward(*archive.reach(), "--", *apt, "download", "demo-of-doorward")
    assert (fetched.status, fetched.reasons) == (0, []), fetched.output
    assert (doorward.workspace / "demo-of-doorward_1.0_all.deb").exists()
    served = list(archive.paths)
    apt = apt_in_workspace(doorward.workspace, f"deb [trusted=yes] {archive.url('b.test')} ./\n")
    refused = doorward(*archive.reach(), "--", *apt, "update")
    assert refused.reasons
    assert set(refused.reasons) == {"not_allowed"}
    refused.says("403  Blocked (not_allowed): b.test:", HINT)
    assert f"to allow it: --allow b.test:{archive.port}" in refused.err
    assert archive.paths == served

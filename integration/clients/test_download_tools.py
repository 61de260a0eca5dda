"""curl, wget and git: one run allowed, one refused, and what the person reads."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HINT = "is in no allow rule - to allow it: --allow b.test:"


def test_curl_plain(doorward: Any, web: Any, client: Callable[[str], str]) -> None:
    curl = [client("curl"), "-sS", "--max-time", "20"]
    allowed = doorward(*web.reach(), "--", *curl, web.url())
    assert (allowed.status, allowed.output, allowed.reasons) == (0, "hello\n", [])
    refused = doorward(*web.reach(), "--", *curl, web.url("b.test"))
    assert (refused.status, refused.reasons) == (0, ["not_allowed"])
    refused.says('"reason": "not_allowed"', "is in no allow rule")
    assert f'"hint": "--allow b.test:{web.port}"' in refused.output
    failing = doorward(*web.reach(), "--", *curl, "--fail", web.url("b.test"))
    assert failing.status == 22
    failing.says("The requested URL returned error: 403")
    assert web.paths == ["/"]


def test_curl_tls(doorward: Any, tls: Any, authority: Any, client: Callable[[str], str]) -> None:
    """curl hides the status phrase; doorward's own lines and `-v` carry the reason."""
    curl = [client("curl"), "-sS", "--max-time", "20"]
    allowed = doorward(*tls.reach(), "--", *curl, tls.url(), env=authority.trusted())
    assert (allowed.status, allowed.output, allowed.reasons) == (0, "hello\n", [])
    refused = doorward(*tls.reach(), "--", *curl, tls.url("b.test"), env=authority.trusted())
    assert (refused.status, refused.reasons) == (56, ["not_allowed"])
    refused.says("response 403")
    assert f"to allow it: --allow b.test:{tls.port}" in refused.err
    verbose = doorward(*tls.reach(), "--", *curl, "-v", tls.url("b.test"), env=authority.trusted())
    verbose.says("403 Blocked (not_allowed): b.test:", "is in no allow rule - to allow it: --allow b.test:")
    assert tls.paths == ["/"]


def test_wget(doorward: Any, web: Any, tls: Any, authority: Any, client: Callable[[str], str]) -> None:
    wget = [client("wget"), "-O-", "--tries=1", "--timeout=20", f"--ca-certificate={authority.certificate}"]
    for origin in (web, tls):
        allowed = doorward(*origin.reach(), "--", *wget, "-q", origin.url())
        assert (allowed.status, allowed.output, allowed.reasons) == (0, "hello\n", [])
    refused = doorward(*web.reach(), "--", *wget, web.url("b.test"))
    assert (refused.status, refused.reasons) == (8, ["not_allowed"])
    refused.says("ERROR 403: Blocked (not_allowed): b.test:", HINT)
    assert f"to allow it: --allow b.test:{web.port}" in refused.err
    tunnel = doorward(*tls.reach(), "--", *wget, tls.url("b.test"))
    assert (tunnel.status, tunnel.reasons) == (4, ["not_allowed"])
    tunnel.says("Proxy tunneling failed: Blocked (not_allowed): b.test:", "Unable to establish SSL connection.")
    assert web.paths == tls.paths == ["/"]


@pytest.fixture
def repository(tls: Any, tmp_path: Path, client: Callable[[str], str]) -> Any:
    """The origin with one repository below /git/, that may be cloned and pushed to."""
    git = client("git")
    source, bare = tmp_path / "source", tmp_path / "repositories" / "r.git"
    who = ("-c", "user.name=t", "-c", "user.email=t@t.test", "-c", "init.defaultBranch=main")
    for words in (
        ("init", "-q", str(source)),
        ("-C", str(source), "commit", "-q", "--allow-empty", "-m", "first"),
        ("clone", "-q", "--bare", str(source), str(bare)),
        ("-C", str(bare), "config", "http.receivepack", "true"),
    ):
        subprocess.run([git, *who, *words], check=True, timeout=60, stdin=subprocess.DEVNULL, capture_output=True)
    tls.repositories = bare.parent
    return tls


def test_git_over_https(doorward: Any, repository: Any, authority: Any) -> None:
    """Clone, commit and push through one rule; the refused clone leaves nothing and tells 403."""
    url = repository.url(path="/git/r.git")
    script = (
        f"git clone -q {url} copy && cd copy && git -c user.name=t -c user.email=t@t.test commit -q --allow-empty "
        "-m second && git push -q && git ls-remote --heads origin"
    )
    allowed = doorward(*repository.reach(), "--", "sh", "-c", script, env=authority.trusted())
    assert (allowed.status, allowed.reasons) == (0, []), allowed.output
    assert "refs/heads/" in allowed.output
    log = subprocess.run(
        ["git", "-C", str(repository.repositories / "r.git"), "log", "--format=%s"],
        capture_output=True, check=True, timeout=20,
    )  # fmt: skip
    assert log.stdout == b"second\nfirst\n"
    other = repository.url("b.test", "/git/r.git")
    refused = doorward(*repository.reach(), "--", "git", "clone", "-q", other, "other", env=authority.trusted())
    assert (refused.status, refused.reasons) == (128, ["not_allowed"])
    refused.says("fatal: unable to access 'https://b.test:", "response 403")
    assert f"to allow it: --allow b.test:{repository.port}" in refused.err
    assert not (doorward.workspace / "other").exists()
    verbose = {**authority.trusted(), "GIT_CURL_VERBOSE": "1"}
    told = doorward(*repository.reach(), "--", "git", "ls-remote", other, env=verbose)
    told.says("HTTP/1.1 403 Blocked (not_allowed): b.test:")

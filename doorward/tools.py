"""The outside world for presets: runs a tool to ask for its configuration, fetches a page it points to.

Only used when a preset is not in the cache, so what is imported here costs nothing otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from doorward.allowlists.presets import Page
from doorward.programs import which

_TOOL_TIMEOUT_S = 60
_FETCH_TIMEOUT_S = 30
_BODY_LIMIT = 4 << 20
"""Bytes of a page: enough for any project's list of files, little enough to hold."""


class HostTools:
    """`allowlists.presets.Tools`, on this machine, with the user's own environment."""

    def __init__(self, path: str) -> None:
        """`path` is where programs are looked for, as in PATH."""
        self._path = path

    def run(self, argv: Sequence[str]) -> str | None:
        """Standard output of the program; None when it is missing or fails."""
        import subprocess

        program = which(argv[0], self._path)
        if program is None:
            return None
        try:
            done = subprocess.run(
                [program, *argv[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TOOL_TIMEOUT_S,
                # not the workspace: a tool must not read configuration a command could have put there
                cwd="/",
                env={**os.environ, "COLUMNS": "1000", "NO_COLOR": "1"},
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None

    def read(self, path: str) -> str | None:
        """Text of a file, up to `_BODY_LIMIT` bytes; `~` is the home folder; None where it cannot be read."""
        try:
            with open(os.path.expanduser(path), "rb") as file:
                return file.read(_BODY_LIMIT).decode("utf-8", "replace")
        except OSError:
            return None

    def fetch(self, url: str, *, ca_file: str | None = None, verify: bool = True) -> Page:
        """GET with redirects followed. User-info in the URL is for Basic authentication. Raises OSError."""
        import base64
        import ssl
        from urllib.parse import unquote, urlsplit, urlunsplit
        from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

        hops: list[str] = []

        class Noting(HTTPRedirectHandler):
            def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
                hops.append(newurl)
                return super().redirect_request(req, fp, code, msg, headers, newurl)

        context = ssl.create_default_context(cafile=ca_file)
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https"):
            raise OSError(f"only http and https are fetched, not {parts.scheme}")
        user_info, _, authority = parts.netloc.rpartition("@")
        plain = urlunsplit((parts.scheme, authority, parts.path, parts.query, ""))
        request = Request(
            plain, headers={"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.5", "User-Agent": "doorward"}
        )
        if user_info:
            token = base64.b64encode(unquote(user_info).encode()).decode("ascii")
            request.add_unredirected_header("Authorization", f"Basic {token}")
        opener = build_opener(Noting, HTTPSHandler(context=context))
        with opener.open(request, timeout=_FETCH_TIMEOUT_S) as response:
            return Page(
                response.geturl(),
                response.headers.get("Content-Type", ""),
                response.read(_BODY_LIMIT),
                tuple([plain, *hops][:-1]) if hops else (),
            )

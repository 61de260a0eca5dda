"""`doorward proxy --client-env FILE`: what programs beside the door need set, for a shell to read.

    . ./client.env; curl https://api.example/

The proxy's address in every spelling; where something is inspected whom to trust; and what stands for credentials.
"""

from __future__ import annotations

import os
import shlex

from doorward.errors import UsageError
from doorward.inner_environment import proxy_variables
from doorward.trust_environment import BUNDLE_VARIABLES, java_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class ClientEnvironment:
    """A file that is replaced whole whenever something in it changes; 0600."""

    def __init__(self, path: str, url: str) -> None:
        """`url` is the proxy's. Raises UsageError."""
        self._path = os.path.abspath(path)
        self._url = url
        self._text = ""
        problem = self.write({}, {})
        if problem:
            raise UsageError(f"doorward proxy: {problem}; name a file in a folder that is there and may be written")

    def write(self, files: Mapping[str, str], placeholders: Mapping[str, str]) -> str:
        """`files` as the inspection worker tells them, {} for none. What is wrong, "" for nothing."""
        text = "".join(
            f"export {name}={shlex.quote(value)}\n"
            for name, value in variables(self._url, files, placeholders).items()
        )
        if text == self._text:
            return ""
        fresh = f"{self._path}.{os.getpid()}"
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            os.replace(fresh, self._path)
        except OSError as error:
            return f"--client-env {self._path} cannot be written: {error.strerror}"
        self._text = text
        return ""


def variables(url: str, files: Mapping[str, str], placeholders: Mapping[str, str]) -> dict[str, str]:
    """All that a client needs set."""
    found = proxy_variables(url)
    if files:
        found |= dict.fromkeys(BUNDLE_VARIABLES, files["bundle"])
        if files.get("java"):
            found["JAVA_TOOL_OPTIONS"] += f" {java_words(files['java'])}"
    return {**found, **placeholders}

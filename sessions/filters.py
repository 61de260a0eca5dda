"""Which sessions a listing shows: as conditions for the index, and as a question about one session without it."""

import os
import re
from collections.abc import Iterable

from doorward.named_tuple import NamedTuple
from doorward.sessions.home import StoreError
from doorward.sessions.search_text import Texts, texts_of
from doorward.sessions.stored_file import open_stored
from doorward.sessions.summary import SessionSummary


class Filter(NamedTuple):
    """What is given must hold, all of it."""

    cwd: str | None = None
    """The session's folder is this absolute one, or below it."""
    refused: bool = False
    """A door refused something."""
    host: str | None = None
    """It asked for this host; `*` stands for anything."""
    since: str | None = None
    """Its last record is not older than this RFC 3339 time (UTC)."""
    search: str | None = None
    """These words, or beginnings of words, all occur in its commands, hosts, messages or names."""

    def __bool__(self) -> bool:
        return self != Filter()

    def conditions(self) -> tuple[str, list[object]]:
        """A condition in SQL about the mirror's tables, and its values."""
        found: list[tuple[str, list[object]]] = []
        if self.cwd is not None:
            # by bytes: a path that is no UTF-8 is a BLOB in the index
            root = f"{self.cwd.rstrip('/')}/".encode("utf-8", "surrogatepass")
            found.append(("substr(CAST(CAST(cwd AS BLOB) || '/' AS BLOB), 1, ?) = ?", [len(root), root]))
        if self.refused:
            found.append(("refused > 0", []))
        if self.host is not None:
            found.append(("key IN (SELECT key FROM hosts WHERE host GLOB ?)", [_glob(self.host.lower())]))
        if self.since is not None:
            found.append(("updated_at >= ?", [self.since]))
        if self.search is not None:
            found.append(("key IN (SELECT rowid FROM words WHERE words MATCH ?)", [match_expression(self.search)]))
        return " AND ".join(condition for condition, _ in found) or "1", [value for _, row in found for value in row]

    def holds(self, session: SessionSummary) -> bool:
        """The same without the index: reads the whole file where its text is asked for. Raises StoreError."""
        if self.cwd is not None and not f"{session.cwd}/".startswith(self.cwd.rstrip("/") + "/"):
            return False
        if (self.refused and not session.refused) or (self.since is not None and session.updated_at < self.since):
            return False
        if self.host is None and self.search is None:
            return True
        texts = _texts(session.path)
        if self.host is not None and not any(re.fullmatch(_pattern(self.host.lower()), host) for host in texts.hosts):
            return False
        everything = (*texts.hosts, texts.names, session.name or "", texts.commands, texts.messages)
        return self.search is None or _all_in(words(self.search), everything)


def words(text: str) -> list[list[str]]:
    """What is looked for: groups between blanks, each a row of words (`a.test` is two that follow each other)."""
    groups = [re.findall(r"\w+", part.lower()) for part in text.split()]
    return [[piece for word in group for piece in word.split("_") if piece] for group in groups if any(group)]


def match_expression(text: str) -> str:
    """FTS5's form: every group is a phrase, whose last word may be the beginning of one. `""` finds nothing."""
    return " ".join(f'"{" ".join(group)}"*' for group in words(text) if group) or '""'


def _all_in(groups: list[list[str]], texts: Iterable[str]) -> bool:
    joined = [" " + " ".join(re.findall(r"[^\W_]+", text.lower())) for text in texts]
    return bool(groups) and all(any(f" {' '.join(group)}" in text for text in joined) for group in groups)


def _texts(path: str) -> Texts:
    descriptor = open_stored(path)
    try:
        return texts_of(descriptor, 0, os.fstat(descriptor).st_size)[0]
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _glob(text: str) -> str:
    """SQLite's GLOB knows `?` and `[` too; a host has neither, but an IPv6 address may be given in brackets."""
    return text.strip("[]").replace("[", "[[]").replace("?", "[?]")


def _pattern(text: str) -> str:
    return re.escape(text.strip("[]")).replace(r"\*", ".*")

"""What of a rollout is searched: its commands, the hosts it asked for, what was said, and its names.

Taken out of the bytes without decoding every line: most of a rollout is network records and outputs, and an index is
rebuilt at the speed the disk gives them. Keys are found as doorward and Codex write them, `"key":"value"`, which
cannot stand inside a JSON string, where quotes are escaped.
"""

import json
import os
import re
from collections.abc import Iterator

from doorward.named_tuple import NamedTuple
from doorward.sessions.items import command_line

_CHUNK = 4 << 20
MESSAGE_LIMIT = 4096
"""Characters of one message that are searched."""
_TOTAL_LIMIT = 1 << 18
"""Characters of all commands, and of all messages, of a session that are searched."""
_LINE_LIMIT = 1 << 20

_ACTION = b'"type":"verdict","payload":{'
_TYPED = b'"payload":{"type":"'
_ARGV = re.compile(rb'"argv":(\[.*?\]),"cwd":')
_HOST = re.compile(rb'"host":"([^"\\]{1,253})"')
_SAID = (b"user_message", b"agent_message", b"message", b"thread_name_updated")


class Texts(NamedTuple):
    """Each is text for the index; `hosts` are the hosts themselves."""

    names: str = ""
    commands: str = ""
    messages: str = ""
    hosts: frozenset[str] = frozenset()

    def plus(self, later: "Texts") -> "Texts":
        """Together with what was appended since."""
        return Texts(
            _joined(self.names, later.names),
            _joined(self.commands, later.commands)[:_TOTAL_LIMIT],
            _joined(self.messages, later.messages)[:_TOTAL_LIMIT],
            self.hosts | later.hosts,
        )


def texts_of(descriptor: int, start: int, size: int) -> tuple[Texts, int]:
    """What is searched of an open file from `start` (where a line starts) on, and where its last whole line ends.

    OSError passes.
    """
    names: list[str] = []
    commands: dict[str, None] = {}
    messages: list[str] = []
    hosts: set[bytes] = set()
    said = run = 0
    for chunk in _whole_lines(descriptor, start, size):
        start += len(chunk)
        hosts.update(_HOST.findall(chunk))
        for line in _lines_with(chunk, _ACTION):
            found = _ARGV.search(line)
            text = _command(found[1]) if found else ""
            if text and text not in commands and run < _TOTAL_LIMIT:
                commands[text] = None
                run += len(text)
        for line in _lines_with(chunk, _TYPED, _SAID):
            kind, text = _said(line)
            if kind == "thread_name_updated":
                names.append(text)
            elif text and said < _TOTAL_LIMIT:
                messages.append(text[:MESSAGE_LIMIT])
                said += min(len(text), MESSAGE_LIMIT)
    # our own turns repeat the command line as what the user said, since Codex lists a session by that
    spoken = "\n".join(dict.fromkeys(text for text in messages if text not in commands))
    known = frozenset(host.decode("utf-8", "replace").lower() for host in hosts)
    return Texts("\n".join(names), "\n".join(commands)[:_TOTAL_LIMIT], spoken, known), start


def _whole_lines(descriptor: int, start: int, size: int) -> Iterator[bytes]:
    """The bytes in big pieces that end at line ends; a line too long to be one of those we look at is cut."""
    rest = b""
    while start < size and (data := os.pread(descriptor, min(_CHUNK, size - start), start)):
        start += len(data)
        data = rest + data
        end = data.rfind(b"\n") + 1
        if not end and len(data) > 2 * _CHUNK:
            end = len(data)
        rest = data[end:]
        if end:
            yield data[:end]


def _lines_with(chunk: bytes, mark: bytes, kinds: tuple[bytes, ...] = ()) -> Iterator[bytes]:
    at = chunk.find(mark)
    while at >= 0:
        after = at + len(mark)
        if not kinds or chunk.startswith(kinds, after):
            begin = chunk.rfind(b"\n", 0, at) + 1
            end = chunk.find(b"\n", after)
            end = len(chunk) if end < 0 else end
            if end - begin <= _LINE_LIMIT:
                yield chunk[begin:end]
            after = end
        at = chunk.find(mark, after)


def _command(argv: bytes) -> str:
    try:
        words = json.loads(argv)
        return clean(command_line(words))
    except (ValueError, RecursionError, TypeError, AttributeError):
        return ""


def _said(line: bytes) -> tuple[str, str]:
    """The kind and the text of a message."""
    try:
        payload = json.loads(line)["payload"]
        kind = payload["type"]
        if kind == "thread_name_updated":
            return kind, clean(payload.get("thread_name") or "")
        if kind == "message":
            parts = payload.get("content") or []
            return kind, clean("\n".join(part["text"] for part in parts if isinstance(part.get("text"), str)))
        return kind, clean(payload.get("message") or "")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return "", ""


def clean(text: str) -> str:
    """For the index. SQLite's text is UTF-8: a byte that was none (a lone surrogate) is no part of a word."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _joined(first: str, second: str) -> str:
    return f"{first}\n{second}" if first and second else first or second

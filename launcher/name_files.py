"""The files by which a command finds names, as it sees them: its name server is the door's, its host is loopback.

The host's own would lead astray: a hosts file gives addresses that no rule names, and a resolver's file servers and
search suffixes that are not there. Runs in the forked process that becomes bubblewrap.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RESOLVER = b"# doorward: the sandbox's own name server\nnameserver 127.0.0.1\n"


def replaced(files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
    """The path to cover, and with what, for each (name, real path) that needs it. A file that cannot be read stays."""
    for name, path in files:
        if name == "/etc/resolv.conf":
            yield path, RESOLVER
            continue
        try:
            with open(path, "rb") as file:
                text = file.read()
        except OSError:
            continue
        if name == "/etc/hosts":
            yield path, hosts(text, os.uname().nodename)
        elif (changed := services(text)) is not None:
            yield path, changed


def hosts(text: bytes, nodename: str) -> bytes:
    """hosts(5) with the lines about loopback alone, and the machine's own name on it: servers of one run are found by
    it, and programs that ask for their own name get an answer."""
    kept = [b"127.0.0.1\tlocalhost", b"::1\tlocalhost ip6-localhost ip6-loopback"]
    names: set[bytes] = set()
    for line in text.splitlines():
        words = line.partition(b"#")[0].split()
        if len(words) > 1 and (words[0].startswith(b"127.") or words[0] == b"::1"):
            kept.append(b"\t".join(words))
            names.update(words[1:])
    own = os.fsencode(nodename)
    if own and own not in names:
        kept.append(b"127.0.1.1\t" + own)
    return b"\n".join(kept) + b"\n"


def services(text: bytes) -> bytes | None:
    """nsswitch.conf(5) with a `hosts` line that asks name servers; None where it does already, or has none (the
    library's default asks them)."""
    lines = text.splitlines()
    for place, line in enumerate(lines):
        words = line.partition(b"#")[0].split()
        if words and words[0] == b"hosts:" and b"dns" not in words:
            lines[place] = b"hosts: files dns"
            return b"\n".join(lines) + b"\n"
    return None

"""Reads which unix sockets of the host have a path: a read-only mount does not stop `connect`."""


def bound_paths(table: bytes) -> list[bytes]:
    """The absolute paths in the text of /proc/net/unix (proc(5)), each once.

    A line is seven columns and, for a bound socket, a path that may hold blanks; abstract names start
    with `@`. A socket that was bound by a relative path is listed as such and cannot be placed.
    """
    found: dict[bytes, None] = {}
    for line in table.split(b"\n")[1:]:
        if b" /" not in line:
            continue
        columns = line.split(None, 7)
        if len(columns) == 8 and columns[7].startswith(b"/"):
            found[columns[7]] = None
    return list(found)

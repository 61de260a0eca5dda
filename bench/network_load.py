"""Origin server and load generator in Python, for machines without a C compiler; the same words as network_load.c.

    network_load.py origin    prints its port on 127.0.0.1, then serves until its standard input ends
    network_load.py client    prints http_proxy's value, then one JSON line for each line of its standard input

A line holds, separated by blanks: address and port to connect to, credentials for Basic or `-`, authority to ask for,
tunnel first (0, 1), path (`-`: only the tunnel), absolute form (0, 1), status expected, what follows an answer
(`close`, `keep`: the next request on the same connection, `hold`: stays open until the line `drop`), connections at
once, how many answers, seconds at most. Each connection is a process, so that none waits for another's turn.
"""

from __future__ import annotations

import json
import os
import resource
import select
import selectors
import socket
import sys
import time
from typing import NamedTuple

BLOCK = 1 << 20
BODY = 64 * BLOCK  # longer than the processor's caches: a proxy that copies pays for it as it would with a file
TEXT = b"Hello, world. A hundred bytes of body, as a small answer of an interface might have them: 0123456789.\n"
SMALL = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(TEXT), TEXT)
LARGE = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n"


class Job(NamedTuple):
    """One line of the client's input."""

    host: str
    port: int
    credentials: str
    authority: str
    tunnel: bool
    path: str
    absolute: bool
    status: int
    after: str
    concurrency: int
    answers: int
    seconds: float


class Tally:
    """What one process saw; `times` in seconds."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.bad = self.bytes = 0
        self.said = ""
        self.cut = False


class Failed(Exception):
    """A connection did not do what was expected."""


class Gone(Failed):
    """It ended before the answer began: an ordinary end where connections are kept (RFC 9112 §9.3.1)."""


def parse(line: str) -> Job:
    """Raises ValueError for a line that is no job."""
    host, port, credentials, authority, tunnel, path, absolute, status, after, *amounts = line.split()
    if after not in ("close", "keep", "hold"):
        raise ValueError(after)
    concurrency, answers, seconds = amounts
    return Job(
        *(host, int(port), credentials, authority, tunnel == "1", path, absolute == "1", int(status)),
        *(after, int(concurrency), int(answers), float(seconds)),
    )


def requests(job: Job) -> tuple[bytes, bytes]:
    """The CONNECT and the GET of a job."""
    credentials = f"Proxy-Authorization: Basic {job.credentials}\r\n" if job.credentials != "-" else ""
    connect = f"CONNECT {job.authority} HTTP/1.1\r\nHost: {job.authority}\r\n{credentials}\r\n"
    target = f"http://{job.authority}{job.path}" if job.absolute else job.path
    get = f"GET {target} HTTP/1.1\r\nHost: {job.authority}\r\nUser-Agent: load/1\r\nAccept: */*\r\n"
    return connect.encode(), (get + (credentials if job.absolute else "") + "\r\n").encode()


def answer(sock: socket.socket, tally: Tally, status: int, *, with_body: bool) -> bool:
    """Read one answer; whether the connection lasts. Raises Failed."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(8192)
        if not more:
            raise (Failed("broken off inside an answer") if data else Gone("closed without an answer"))
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    if head[9:12] != b"%d" % status:
        raise Failed(head.split(b"\r\n")[0].decode(errors="replace"))
    if not with_body:
        return False
    fields = dict(line.lower().partition(b": ")[::2] for line in head.split(b"\r\n")[1:])
    while fields.get(b"transfer-encoding") == b"chunked" and not (b"\r\n" + rest).endswith(b"\r\n0\r\n\r\n"):
        rest += sock.recv(8192)  # short ones only: refusals
        if len(rest) > BLOCK:
            raise Failed("an endless answer")
    left = 0 if b"transfer-encoding" in fields else int(fields.get(b"content-length", -1))
    tally.bytes += len(rest)
    if left > 0:
        left -= len(rest)
    scratch = bytearray(BLOCK)
    while left:
        # thrown away in the kernel (tcp(7), MSG_TRUNC)
        got = sock.recv_into(scratch, min(left, BLOCK) if left > 0 else BLOCK, socket.MSG_TRUNC)
        tally.bytes += got
        if not got:
            if left > 0:
                raise Failed("broken off inside an answer")
            return False
        left = max(left - got, 0) if left > 0 else left
    return fields.get(b"connection") != b"close"


def work(job: Job, count: int, end: float, held: list[socket.socket]) -> Tally:
    """`count` answers, one after the other, or as many as there are until `end`."""
    tally = Tally()
    connect, get = requests(job)
    sock: socket.socket | None = None
    kept = False
    while len(tally.times) + tally.bad < count and tally.bad <= 100:
        since = time.monotonic()
        if since >= end:
            tally.cut = True
            break
        try:
            if sock is None:
                sock = socket.create_connection((job.host, job.port), timeout=end - since)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if job.tunnel:
                    sock.sendall(connect)
                    answer(sock, tally, 200 if job.path != "-" else job.status, with_body=False)
            lasting = False
            if job.path != "-":
                sock.sendall(get)
                lasting = answer(sock, tally, job.status, with_body=True)
        except TimeoutError:
            tally.cut = True
            break
        except (OSError, Failed) as error:
            if not (kept and isinstance(error, Gone | ConnectionResetError | BrokenPipeError)):
                tally.bad += 1
                tally.said = tally.said or str(error)
            if sock is not None:
                sock.close()
            sock, kept = None, False
            continue
        tally.times.append(time.monotonic() - since)
        kept = job.after == "keep" and lasting
        if job.after == "hold":
            held.append(sock)
        elif not kept:
            sock.close()
        if not kept:
            sock = None
    if sock is not None:
        sock.close()
    return tally


def run(job: Job, held: list[socket.socket]) -> dict[str, object]:
    """All of a job, shared among processes; sockets to hold must be this process's own."""
    start = time.monotonic()
    end = start + job.seconds
    if job.after == "hold" or job.concurrency == 1:
        tallies = [work(job, job.answers, end, held)]
    else:
        tallies = _shared(job, end)
    seconds = time.monotonic() - start
    times = sorted(each for tally in tallies for each in tally.times) or [0.0]
    done = sum(len(tally.times) for tally in tallies)
    return {
        "done": done,
        "bad": sum(tally.bad for tally in tallies),
        "bytes": sum(tally.bytes for tally in tallies),
        "seconds": seconds,
        "cut": any(tally.cut for tally in tallies),
        "p50_ms": times[done // 2 if done else 0] * 1e3,
        "p99_ms": times[done * 99 // 100 if done else 0] * 1e3,
        "said": next((tally.said for tally in tallies if tally.said), ""),
    }


def _shared(job: Job, end: float) -> list[Tally]:
    children = []
    for n in range(job.concurrency):
        share = job.answers // job.concurrency + (n < job.answers % job.concurrency)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reading)
                with open(writing, "w") as file:
                    json.dump(vars(work(job, share, end, [])), file)
            finally:
                os._exit(0)
        os.close(writing)
        children.append((pid, reading))
    tallies = []
    for pid, reading in children:
        tally = Tally()
        with open(reading) as file:
            vars(tally).update(json.loads(file.read() or "{}"))
        os.waitpid(pid, 0)
        tallies.append(tally)
    return tallies


def client() -> None:
    """Serve standard input to its end."""
    print(os.environ.get("http_proxy", ""), flush=True)
    held: list[socket.socket] = []
    for line in sys.stdin:
        if line.strip() == "drop":
            while held:
                held.pop().close()
            print("{}", flush=True)
        else:
            print(json.dumps(run(parse(line), held)), flush=True)


class Served:
    """A connection of the origin."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.head = b""
        self.left = 0

    def serve(self, body: int) -> bool:
        """Answer what was asked; False where the connection is to be closed."""
        try:
            while True:
                if self.left:
                    size = min(self.left, BLOCK)
                    sent = os.sendfile(self.sock.fileno(), body, self.left % BODY, size)
                    self.left -= sent
                    if sent < size and self.left:
                        return True  # the others' turn
                    continue
                head, end, rest = self.head.partition(b"\r\n\r\n")
                if not end:
                    data = self.sock.recv(8192)
                    if not data:
                        return False
                    self.head += data
                    continue
                self.head = rest
                _, asked, size = head.split(b"\r\n")[0].partition(b"/bytes/")
                self.left = int(size.split()[0]) if asked else 0
                self.sock.send(LARGE % self.left if asked else SMALL)
        except BlockingIOError:
            return True
        except OSError:
            return False


def origin() -> None:
    """Serve until standard input ends."""
    body = os.memfd_create("body")
    for _ in range(BODY // BLOCK):
        os.write(body, bytes(BLOCK))
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    watched = selectors.DefaultSelector()
    watched.register(listener, selectors.EVENT_READ)
    watched.register(sys.stdin, selectors.EVENT_READ)
    while True:
        for key, _ in watched.select():
            if key.fileobj is sys.stdin:
                return
            if key.fileobj is listener:
                # accepted one at a time: the listener stays readable while there are more
                if select.select([listener], [], [], 0)[0]:
                    sock, _ = listener.accept()
                    sock.setblocking(False)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    watched.register(sock, selectors.EVENT_READ, Served(sock))
                continue
            served: Served = key.data
            if not served.serve(body):
                watched.unregister(served.sock)
                served.sock.close()
            elif (wanted := selectors.EVENT_WRITE if served.left else selectors.EVENT_READ) != key.events:
                watched.modify(served.sock, wanted, served)


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if sys.argv[1:] == ["origin"]:
        origin()
    elif sys.argv[1:] == ["client"]:
        client()
    else:
        sys.exit("usage: network_load.py origin|client")

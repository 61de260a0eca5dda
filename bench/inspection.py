"""Inspection beside plain mitmproxy with an equivalent add-on, beside an opaque tunnel, and beside nothing.

    python3.13 bench/inspection.py [--mitmdump PATH] [--rounds N]

Run by a Python that has `doorward[inspect]`. One origin, one client, the same requests in turn, round after round, all
on loopback. Printed are medians and ratios, of the worker's start the least too; compare those: figures belong to the
machine and the moment, processor time less than the rest.
"""

from __future__ import annotations

import argparse
import array
import json
import os
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

HOST = "localhost"
LARGE = 64 << 20
REQUESTS = 300
FRESH = 20
WAIT_S = 60.0

ADDON = """
from mitmproxy import http

class Rules:
    def requestheaders(self, flow):
        if flow.request.method != "GET" or not flow.request.path.startswith("/pub/"):
            flow.response = http.Response.make(403, b"no")
        else:
            flow.request.stream = True

    def responseheaders(self, flow):
        flow.response.stream = True

addons = [Rules()]
"""

ORIGIN = """
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0), backlog=128)
print(listener.getsockname()[1], flush=True)
piece = bytes(1 << 16)
def serve(sock):
    try:
        with context.wrap_socket(sock, server_side=True) as tls:
            data = b""
            while True:
                while b"\\r\\n\\r\\n" not in data:
                    more = tls.recv(65536)
                    if not more:
                        return
                    data += more
                head, _, data = data.partition(b"\\r\\n\\r\\n")
                size = int(head.split(b" ")[1].rpartition(b"/")[2])
                answer = b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % size
                if size <= 65536:
                    tls.sendall(answer + piece[:size])
                    continue
                tls.sendall(answer)
                for _ in range(size >> 16):
                    tls.sendall(piece)
    except OSError:
        pass
while True:
    sock, _ = listener.accept()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=serve, args=(sock,), daemon=True).start()
"""


class Way(NamedTuple):
    """A way to the origin: the proxy's port, None for none, and its processes."""

    name: str
    port: int | None
    pids: tuple[int, ...] = ()

    def cpu_s(self) -> float:
        """Seconds of processor its processes have used (proc_pid_stat(5), fields 14 and 15)."""
        ticks = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Measure and print. Exit status 1 where something refused or failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mitmdump", default=shutil.which("mitmdump") or _beside("mitmdump"))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        authority, server = certificates(Path(folder))
        origin = stack.enter_context(started_origin(server))
        ways = [Way("direct", None)]
        ways.append(stack.enter_context(doorward(Path(folder), authority, "opaque", f"{HOST}:{origin}")))
        rule = {"host": f"{HOST}:{origin}", "methods": ["GET"], "paths": ["/pub/**"]}
        ways.append(stack.enter_context(doorward(Path(folder), authority, "inspected", rule)))
        if options.mitmdump:
            ways.append(stack.enter_context(mitmproxy(options.mitmdump, Path(folder), authority)))
        figures = measured(ways, origin, options.rounds)
    up = worker_up(options.rounds)
    starts = run_starts(options.rounds)
    print(f"load average {load:.1f} on {os.cpu_count()} CPUs before; {options.rounds} rounds, medians\n")
    names = list(figures)
    print(_row("", *names))
    for what in next(iter(figures.values())):
        print(_row(what, *(f"{figures[name][what]:.2f}" for name in names)))
    inspected, opaque = figures["inspected"], figures["opaque"]
    more = inspected["first request, ms"] - opaque["first request, ms"]
    print(f"\nfirst request over an uninspected tunnel, the worker being up (aim 40 ms): +{more:.1f} ms")
    cpu = "  its CPU, ms each tunnel"
    print(f"  its CPU: +{inspected[cpu] - opaque[cpu]:.1f} ms")
    if "mitmproxy" in figures:
        peer = figures["mitmproxy"]
        for what in inspected:
            ratio = inspected[what] / (peer[what] or float("nan"))
            print(f"inspected / mitmproxy, {what}: {ratio:.2f}")
    print(f"worker up, alone (aim 1,200 ms, the start overlapped): {up}")
    for what, value in starts.items():
        print(f"{what}: {value:.0f} ms")
    return 0


def worker_up(rounds: int) -> str:
    """From the start of a worker to its word that it can begin, in a home that has its authority."""
    from doorward.inspection_process import InspectionProcess

    walls, cpus = [], []
    with tempfile.TemporaryDirectory() as folder:
        work = {"folder": f"{folder}/inspect", "names": [HOST], "roots": None, "record": "off"}
        for _ in range(rounds + 1):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            begun = time.perf_counter()
            worker = InspectionProcess(sys.executable, work, theirs)
            try:
                worker.await_ready()
                walls.append((time.perf_counter() - begun) * 1000)
                cpus.append(Way("", None, (worker.pid,)).cpu_s() * 1000)
            finally:
                worker.close()
                ours.close()
    walls, cpus = walls[1:], cpus[1:]  # the first makes the authority
    return f"median {statistics.median(walls):.0f} ms, least {min(walls):.0f}; CPU least {min(cpus):.0f} ms"


def measured(ways: list[Way], origin: int, rounds: int) -> dict[str, dict[str, float]]:
    """Medians of each figure, by way; the ways take turns."""
    found: dict[str, dict[str, list[float]]] = {way.name: {} for way in ways}
    for way in ways:
        with opened(way, origin) as sock:  # the first of all is nobody's figure
            exchange(sock, origin, 100)
    for _ in range(rounds):
        for what, work, per in WORKS:
            for way in ways:
                before = way.cpu_s()
                value = work(way, origin)
                found[way.name].setdefault(what, []).append(value)
                cpu = (way.cpu_s() - before) * 1000 / per[0]
                found[way.name].setdefault(f"  its CPU, ms each {per[1]}", []).append(cpu)
    return {
        name: {what: statistics.median(values) for what, values in figures.items()} for name, figures in found.items()
    }


@contextmanager
def opened(way: Way, origin: int) -> Iterator[ssl.SSLSocket]:
    """TLS with the origin, through the proxy if there is one. Nobody is verified: that is not what is measured."""
    sock = socket.create_connection(("127.0.0.1", way.port or origin), WAIT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if way.port is not None:
        sock.sendall(f"CONNECT {HOST}:{origin} HTTP/1.1\r\nHost: {HOST}:{origin}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            data = sock.recv(4096)
            if not data:
                break
            head += data
        if b" 200" not in head.partition(b"\r\n")[0]:
            sys.exit(f"{way.name}: {head.decode('latin-1')}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with context.wrap_socket(sock, server_hostname=HOST) as secure:
        yield secure


def exchange(sock: ssl.SSLSocket, origin: int, size: int) -> None:
    """One GET and its answer."""
    sock.sendall(f"GET /pub/{size} HTTP/1.1\r\nHost: {HOST}:{origin}\r\n\r\n".encode())
    got = bytearray()
    while b"\r\n\r\n" not in got:
        got += sock.recv(1 << 16)
    if b" 200" not in got.partition(b"\r\n")[0]:
        sys.exit(f"refused: {bytes(got[:300])!r}")
    left = size - len(got.partition(b"\r\n\r\n")[2])
    buffer = bytearray(1 << 18)
    while left > 0:
        count = sock.recv_into(buffer)
        if not count:
            sys.exit("the answer ended early")
        left -= count


def first_request(way: Way, origin: int) -> float:
    """Tunnel, both handshakes and one small answer, milliseconds; the median of several."""
    times = []
    for _ in range(FRESH):
        begun = time.perf_counter()
        with opened(way, origin) as sock:
            exchange(sock, origin, 100)
            times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def kept(way: Way, origin: int) -> float:
    """One small request after the other, milliseconds each."""
    with opened(way, origin) as sock:
        begun = time.perf_counter()
        for _ in range(REQUESTS):
            exchange(sock, origin, 100)
        return (time.perf_counter() - begun) * 1000 / REQUESTS


def download(way: Way, origin: int) -> float:
    """MB a second."""
    with opened(way, origin) as sock:
        begun = time.perf_counter()
        exchange(sock, origin, LARGE)
        return LARGE / 1e6 / (time.perf_counter() - begun)


WORKS = (
    ("first request, ms", first_request, (FRESH, "tunnel")),
    ("request on a kept connection, ms", kept, (REQUESTS, "request")),
    ("64 MiB down, MB/s", download, (LARGE / 1e9, "GB")),
)


@contextmanager
def started_origin(pem: Path) -> Iterator[int]:
    """The origin in a process of its own; its port."""
    process = subprocess.Popen([sys.executable, "-c", ORIGIN, str(pem)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@contextmanager
def doorward(folder: Path, authority: Path, name: str, rule: Any) -> Iterator[Way]:
    """The door and, where the rule needs it, its worker, on a loopback port; records are acknowledged as in a run."""
    from doorward.errors import ProxyStopped
    from doorward.inspection_process import InspectionProcess
    from doorward.proxy_process import POLICY, ProxyProcess

    proxy = ProxyProcess()
    inspects = not isinstance(rule, str)
    settings: dict[str, Any] = {"allow": [{"rule": rule, "source": "flag", "where": "--allow"}]}
    worker = None
    if inspects:
        settings["inspection"] = {"every": False, "credentials": {}}
        work = {"folder": str(folder / "doorward"), "names": [HOST], "roots": str(authority), "record": "off"}
        worker = InspectionProcess(sys.executable, work, proxy.inspection)
    proxy.configure(settings)
    proxy.await_ready()
    if worker is not None:
        worker.await_ready()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        message = json.dumps({"run": "1", "policy": POLICY, "listener": "proxy"}).encode()
        rights = array.array("i", [listener.fileno()])
        proxy.handover.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    proxy.serve()

    def acknowledge() -> None:
        while True:
            try:
                _, receipts, _ = proxy.records()
            except (ProxyStopped, OSError):
                return
            proxy.acknowledge(receipts)

    thread = threading.Thread(target=acknowledge, daemon=True)
    thread.start()
    try:
        yield Way(name, port, (proxy.pid,) if worker is None else (proxy.pid, worker.pid))
    finally:
        proxy.end()
        thread.join(WAIT_S)
        proxy.close()
        if worker is not None:
            worker.close()


@contextmanager
def mitmproxy(program: str, folder: Path, authority: Path) -> Iterator[Way]:
    """mitmdump with the same rule as an add-on, streaming as the worker does."""
    addon = folder / "addon.py"
    addon.write_text(ADDON)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [program, "-q", "--listen-host", "127.0.0.1", "--listen-port", str(port), "-s", str(addon)]
    words += ["--set", f"ssl_verify_upstream_trusted_ca={authority}", "--set", f"confdir={folder / 'mitmproxy'}"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + WAIT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if time.monotonic() > until or process.poll() is not None:
                    sys.exit("mitmdump does not start")
                time.sleep(0.05)
        yield Way("mitmproxy", port, (process.pid,))
    finally:
        process.terminate()
        process.wait(WAIT_S)


def run_starts(rounds: int) -> dict[str, float]:
    """`doorward run -- true`, with a rule that needs inspection and without."""
    if shutil.which("bwrap") is None:
        return {}
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    os.makedirs(cache, exist_ok=True)
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=cache, prefix="doorward-bench-") as folder:
        env = {**os.environ, "DOORWARD_HOME": f"{folder}/home"}
        os.makedirs(f"{folder}/work")

        def run(*words: str) -> float:
            begun = time.perf_counter()
            argv = [sys.executable, "-P", "-m", "doorward", "run", *words, "--", "true"]
            subprocess.run(argv, cwd=f"{folder}/work", env=env, check=True, capture_output=True, timeout=WAIT_S)
            return (time.perf_counter() - begun) * 1000

        rule = '{host = "a.test", methods = ["GET"]}'
        kinds: dict[str, Callable[[], float]] = {
            "run -- true, nothing inspected": lambda: run("--allow", "a.test"),
            "run -- true, with inspection": lambda: run("--allow", rule),
        }
        found["the first inspected run of a home"] = [kinds["run -- true, with inspection"]()]
        for _ in range(rounds):
            for what, work in kinds.items():
                found.setdefault(what, []).append(work())
    return {what: statistics.median(values) for what, values in found.items()}


def certificates(folder: Path) -> tuple[Path, Path]:
    """An authority, and the origin's certificate with its key, as files."""
    from doorward.proxy.inspection.certificates import authority

    made = authority(str(folder / "origin"))
    issuer = made.issuer(None)
    from cryptography.hazmat.primitives import serialization

    leaf, key = issuer.leaf(HOST)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    trusted, served = folder / "authority.pem", folder / "origin.pem"
    trusted.write_bytes(made.pem)
    served.write_bytes(private + leaf.public_bytes(pem) + issuer.certificate.public_bytes(pem))
    return trusted, served


def _beside(program: str) -> str | None:
    path = Path(sys.executable).parent / program
    return str(path) if path.exists() else None


def _row(what: str, *cells: str) -> str:
    return f"{what:<34}" + "".join(f"{cell:>12}" for cell in cells)


if __name__ == "__main__":
    sys.exit(main())

"""What capture costs: a captured connection beside the same through the HTTP proxy, a name's answer, a refusal, the
set-up of a run, and finding out who asked.

    python bench/transparent.py [--rounds N] [--runs N] [--json]

Everything is on loopback, asked in turn in one sandbox by one client. Compare the differences: absolute figures belong
to the machine and the moment. The last column is what doorward aims at.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

# Runs inside. Each round does every kind once, beginning with another one each time: what one leaves to do (a tunnel's
# end is two more steps) then disturbs all others alike.
CLIENT = r"""
import json, socket, struct, sys, time
port, rounds = int(sys.argv[1]), int(sys.argv[2])
clock = time.perf_counter
address = socket.gethostbyname('a.test')
def query(number, name):
    labels = b''.join(bytes([len(each)]) + each for each in name.encode().split(b'.'))
    return struct.pack('>HHHHHH', number, 256, 1, 0, 0, 0) + labels + b'\0' + struct.pack('>HH', 1, 1)
dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); dns.connect(('127.0.0.1', 53)); dns.settimeout(10)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.connect(('192.0.2.1', 9)); udp.settimeout(10)
def talk(s):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.sendall(b'hello'); assert s.recv(9) == b'hello'
def ask(name):
    s = socket.create_connection(('127.0.0.1', 3128), 10)
    s.sendall(f'CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n\r\n'.encode())
    head = b''
    while b'\r\n\r\n' not in head: head += s.recv(4096)
    return s
def captured(number):
    t = clock(); s = socket.create_connection((address, port), 10); talk(s); took = clock() - t; s.close(); return took
def connect(number):
    t = clock(); s = ask(f'a.test:{port}'); talk(s); took = clock() - t; s.close(); return took
def look_up(name):
    def work(number):
        asked = query(number, name.replace('%', str(number)))
        t = clock(); dns.send(asked); dns.recv(600); return clock() - t
    return work
def refused(number):
    t = clock(); s = socket.create_connection((address, 1), 10)
    try: s.recv(1)
    except OSError: pass
    took = clock() - t; s.close(); return took
def refused_by_proxy(number):
    t = clock(); s = ask('a.test:1'); took = clock() - t; s.close(); return took
def datagram(number):
    t = clock()
    try: udp.send(b'x'); udp.recv(1)
    except ConnectionRefusedError: return clock() - t
works = {
    'captured': captured, 'connect': connect, 'dns': look_up('a.test'), 'first name': look_up('n%.a.test'),
    'refused name': look_up('n%.b.test'), 'refused': refused, 'refused through the proxy': refused_by_proxy,
    'datagram': datagram,
}
kinds = list(works)
times = {kind: [] for kind in kinds}
for number in range(rounds + 8):
    at = number % len(kinds)
    for kind in kinds[at:] + kinds[:at]:
        took = works[kind](number)
        if number >= 8: times[kind].append(took * 1000)
print(json.dumps(times))
"""

# Runs in a namespace of its own: what the shim does beside bubblewrap's start.
SET_UP = """
import time
from collections.abc import Callable
from doorward.launcher import namespaces, netlink_messages, syscalls, transparent
import os
identity = os.geteuid(), os.getegid()
syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNET)
namespaces.keep_identity(*identity); namespaces.bring_loopback_up()
t = time.perf_counter()
transparent.capture(); opened = transparent.open_captured(); opened.append(transparent.open_diagnosis())
print((time.perf_counter() - t) * 1000)
"""

# Runs anywhere: connections of this very process and of children of it, among as many others as a run has.
ATTRIBUTION = """
import gc, json, os, signal, socket, statistics, subprocess, sys, time
from doorward.proxy.attribution import Attribution
others = [subprocess.Popen(['sleep', '60']) for _ in range(int(sys.argv[1]))]
listener = socket.create_server(('127.0.0.1', 0))
who = Attribution(socket.socket(16, socket.SOCK_RAW, 4), os.getppid())
held = [open('/dev/null') for _ in range(int(sys.argv[2]))]
gc.disable()
took = {'same': [], 'again': [], 'new': [], 'first': []}
def ask(kind, accepted, pid):
    t, c = time.perf_counter(), time.thread_time()
    said = who.of_connection(accepted)
    took[kind].append(((time.perf_counter() - t) * 1000, (time.thread_time() - c) * 1000))
    assert said['pid'] == pid, said
def connect(): return socket.create_connection(listener.getsockname()), listener.accept()[0]
client, accepted = connect(); ask('again', accepted, os.getpid())
order, told = socket.socketpair()
if not os.fork():  # starts the new ones: a fork costs who asked for it page faults
    order.close()
    while told.recv(1):
        child = os.fork()
        if not child: mine = socket.create_connection(listener.getsockname()); mine.recv(1); os._exit(0)
        told.send(str(child).encode()); told.recv(1)
        os.kill(child, signal.SIGKILL); os.waitpid(child, 0); told.send(b'.')
    os._exit(0)
told.close()
for _ in range(int(sys.argv[3])):
    order.send(b'.'); child = int(order.recv(20)); theirs, _ = listener.accept(); ask('new', theirs, child)
    order.send(b'.'); order.recv(1)
    asked, who._owners._asked = who._owners._asked, {}
    client, accepted = connect(); ask('first', accepted, os.getpid()); who._owners._asked = asked
    ask('same', accepted, os.getpid()); client, accepted = connect(); ask('again', accepted, os.getpid())
for each in others: each.kill(); each.wait()
order.close()
print(json.dumps({kind: [statistics.median(column) for column in zip(*each)] for kind, each in took.items()}))
"""
_ASKERS = (
    ("same", "that asked before, from the same socket"),
    ("again", "that asked before"),
    ("new", "just started"),
    ("first", "long there, never asked"),
)


def main() -> int:
    """Measure and print. Exit status 1 where a sandbox could not be made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=300, help="connections of each kind")
    parser.add_argument("--runs", type=int, default=20, help="whole runs, with capture and without")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    figures = measure(options.rounds, options.runs)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, (value, aim) in figures.items():
            print(f"{name:<84} {value:>9.3f} ms   {f'aim {aim:g}' if aim is not None else ''}")
    return 0


def measure(rounds: int, runs: int) -> dict[str, tuple[float, float | None]]:
    """Medians in milliseconds, each with the most that is aimed at."""
    port, stop = _echo()
    try:
        inside = _inside(port, rounds)
    finally:
        stop()
    middle = {name: statistics.median(times) for name, times in inside.items()}
    figures: dict[str, tuple[float, float | None]] = {
        "captured connection, to the first byte back": (middle["captured"], None),
        "the same through the HTTP proxy (CONNECT)": (middle["connect"], None),
        "captured, over that": (middle["captured"] - middle["connect"], 0.3),
        "answer to a name that was asked for before": (middle["dns"], 0.3),
        "answer to a new name, once it is on record with its process": (middle["first name"], 0.3),
        "refusal of a new name, likewise": (middle["refused name"], 0.3),
        "refused, captured": (middle["refused"], 100),
        "refused, through the HTTP proxy": (middle["refused through the proxy"], None),
        "refused datagram, on a port that a rule relays": (middle["datagram"], 100),
        "set-up of routes, nftables, sockets": (_median(SET_UP, runs), 8),
    }
    for others, descriptors in ((4, 16), (40, 16), (200, 16), (40, 500)):
        measured = _said(ATTRIBUTION, str(others), str(descriptors), str(min(rounds, 60)))
        for kind, words in _ASKERS:
            name = f"one {words}, {descriptors} descriptors, among {others}"
            figures[f"who asked: {name}"] = (measured[kind][0], 0.5)
            figures[f"the same, CPU: {name}"] = (measured[kind][1], None)
    whole = _whole_runs(runs)
    figures["a whole run of `true`, with capture"] = (whole[0], None)
    figures["a whole run of `true`, without"] = (whole[1], None)
    return figures


def _doorward(scratch: str, *words: str) -> tuple[list[str], dict[str, str]]:
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return [sys.executable, "-P", "-m", "doorward", "run", *words], {**env, "DOORWARD_HOME": f"{scratch}/home"}


def _scratch() -> tempfile.TemporaryDirectory[str]:
    # not below a temporary directory: sandboxes make those private
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    os.makedirs(cache, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=cache, prefix="doorward-bench-")


def _inside(port: int, rounds: int) -> dict[str, list[float]]:
    with _scratch() as scratch:
        hosts = 'network.hosts={"a.test" = "127.0.0.1"}'
        python = ["/usr/bin/env", "python3", "client.py", str(port), str(rounds)]
        words, env = _doorward(
            scratch, "--allow", f"**.a.test:{port}", "--allow", "udp:a.test:9", "-c", hosts, "--", *python
        )
        os.mkdir(f"{scratch}/work")
        # in a file, since each record has the arguments in it
        with open(os.path.join(scratch, "work", "client.py"), "w", encoding="utf-8") as file:
            file.write(CLIENT)
        done = subprocess.run(words, env=env, cwd=f"{scratch}/work", capture_output=True, timeout=300, check=False)
        if done.returncode:
            sys.exit(done.stderr.decode())
        found: dict[str, list[float]] = json.loads(done.stdout)
        return found


def _median(code: str, runs: int, *words: str) -> float:
    took = [
        float(subprocess.run([sys.executable, "-c", code, *words], capture_output=True, timeout=60, check=True).stdout)
        for _ in range(runs)
    ]
    return statistics.median(took)


def _said(code: str, *words: str) -> dict[str, tuple[float, float]]:
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, timeout=120, check=True)
    found: dict[str, tuple[float, float]] = json.loads(done.stdout)
    return found


def _whole_runs(runs: int) -> tuple[float, float]:
    took: tuple[list[float], list[float]] = ([], [])
    with _scratch() as scratch:
        os.mkdir(f"{scratch}/work")
        for number in range(runs + 1):
            for each, word in zip(took, ("true", "false"), strict=True):
                words, env = _doorward(scratch, "-c", f"network.transparent={word}", "--", "true")
                begin = time.perf_counter()
                subprocess.run(words, env=env, cwd=f"{scratch}/work", capture_output=True, timeout=60, check=True)
                if number:  # the first one fills caches
                    each.append((time.perf_counter() - begin) * 1000)
    return statistics.median(took[0]), statistics.median(took[1])


def _echo() -> tuple[int, Callable[[], None]]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    def talk(connection: socket.socket) -> None:
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                while data := connection.recv(4096):
                    connection.sendall(data)
            except OSError:
                pass

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()

    def stop() -> None:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()

    return int(listener.getsockname()[1]), stop


if __name__ == "__main__":
    sys.exit(main())

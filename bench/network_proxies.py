"""Starts each proxy so that it does the same job: what goes to one origin on loopback passes, the rest is refused.

On the host side the generator asks the proxy's port; inside a sandbox it is the sandboxed command and asks the proxy it
is told by http_proxy. None writes a log but `doorward run`, which records every connection (that is its job).
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import peers
from network_generator import Generator, Origin, Program
from network_processes import Tree, listening_ports
from timing import DEADLINE_S, DidNotWork

HOST, INSIDE = "host", "inside"
NAME = "origin.test"

SQUID = """\
http_port 127.0.0.1:{port}
acl origin dst 127.0.0.1
acl named dstdomain 127.0.0.1
http_access deny !named
http_access allow origin
http_access deny all
cache deny all
cache_mem 0 MB
access_log none
cache_log {folder}/cache.log
cache_store_log none
pid_filename none
coredump_dir {folder}
shutdown_lifetime 0 seconds
max_filedescriptors 16384
pinger_enable off
"""
TINYPROXY = """\
Port {port}
Listen 127.0.0.1
Timeout 600
MaxClients 8192
LogLevel Critical
LogFile "{folder}/log"
Allow 127.0.0.1
Filter "{folder}/filter"
FilterDefaultDeny Yes
"""
NONO = """\
import sys, nono_py
proxy = nono_py.start_proxy(nono_py.ProxyConfig(allowed_hosts=sys.argv[1:], max_connections=8192))
print(dict(proxy.sandbox_env())["http_proxy"], flush=True)
sys.stdin.read()
proxy.shutdown()
"""


class Proxy(NamedTuple):
    """A running proxy and who asks it. `pid` None: there is none, the origin is asked directly."""

    name: str
    where: str
    pid: int | None
    host: str
    port: int
    credentials: str | None
    authority: str
    generator: Generator
    tree: Tree | None

    def cpu_s(self) -> float | None:
        """CPU seconds of its processes so far."""
        return None if self.tree is None else self.tree.cpu_s()

    def pss_kb(self) -> float:
        """Memory of its processes. Raises DidNotWork."""
        assert self.tree is not None
        return self.tree.pss_kb()


class Bench(NamedTuple):
    """What all proxies are started with."""

    load: tuple[str, ...]
    origin: Origin
    generator: Generator  # on the host side
    env: Mapping[str, str]
    scratch: str
    doorward: str
    peers: str | None
    mitmdump: str | None
    nono_python: str | None

    def on_host(self, name: str, program: Program, port: int, credentials: str | None = None) -> Proxy:
        """Wait until its port takes connections. Ends the program and raises DidNotWork where it does not."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end and program.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    tree = Tree(program.pid, self.load[-1])
                    authority = f"127.0.0.1:{self.origin.port}"
                    return Proxy(
                        name, HOST, program.pid, "127.0.0.1", port, credentials, authority, self.generator, tree
                    )
            time.sleep(0.02)
        program.close()
        raise DidNotWork(f"it ended with {program.process.returncode} before it listened")

    def inside(self, name: str, prefix: Sequence[str], env: Mapping[str, str], authority: str) -> Proxy:
        """The generator as the command of a sandbox."""
        generator = Generator(self.load, env, self.folder(f"{name}-workspace"), prefix)
        try:
            address = urlsplit(generator.proxy)
            if address.port is None:
                raise DidNotWork(f"its command sees no proxy but {generator.proxy!r}")
        except DidNotWork:
            generator.close()
            raise
        tree = Tree(generator.pid, self.load[-1])
        return Proxy(
            *(name, INSIDE, generator.pid, "127.0.0.1", address.port, credentials(generator.proxy)),
            *(authority, generator, tree),
        )

    def folder(self, name: str) -> str:
        """A folder of the proxy's own that any user may write: squid and tinyproxy leave root."""
        path = os.path.join(self.scratch, name)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o777)
        return path

    def write(self, path: str, text: str) -> str:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


Started = tuple[list[Proxy], Callable[[], None]]


def direct(bench: Bench) -> Started:
    """No proxy: the ceiling."""
    port = bench.origin.port
    authority = f"127.0.0.1:{port}"
    return [Proxy("direct", HOST, None, "127.0.0.1", port, None, authority, bench.generator, None)], _nothing


def doorward(bench: Bench) -> Started:
    """`doorward proxy`, as a user starts it."""
    port = free_port()
    allow = f"127.0.0.1:{bench.origin.port}"
    argv = [bench.doorward, "proxy", "--listen", f"127.0.0.1:{port}", "--allow", allow]
    program = Program(argv, bench.env, bench.scratch)
    return [bench.on_host("doorward", program, port)], program.close


def doorward_inside(bench: Bench) -> Started:
    """`doorward run`, with a name pinned to loopback."""
    authority = f"{NAME}:{bench.origin.port}"
    pins = f'network.hosts={{"{NAME}"="127.0.0.1"}}'
    prefix = [bench.doorward, "run", "-c", pins, "--allow", authority, "--"]
    proxy = bench.inside("doorward", prefix, bench.env, authority)
    return [proxy], proxy.generator.close


def squid(bench: Bench) -> Started:
    """Squid without cache and without log, one process."""
    program_path = _program("squid", None)
    folder, port = bench.folder("squid"), free_port()
    settings = bench.write(os.path.join(folder, "squid.conf"), SQUID.format(port=port, folder=folder))
    program = Program([program_path, "-N", "-f", settings], bench.env, folder)
    return [bench.on_host("squid", program, port)], program.close


def tinyproxy(bench: Bench) -> Started:
    """Tinyproxy with a filter that knows one host."""
    program_path = _program("tinyproxy", None)
    folder, port = bench.folder("tinyproxy"), free_port()
    bench.write(os.path.join(folder, "filter"), "^127\\.0\\.0\\.1$\n")
    settings = bench.write(os.path.join(folder, "tinyproxy.conf"), TINYPROXY.format(port=port, folder=folder))
    program = Program([program_path, "-d", "-c", settings], bench.env, folder)
    return [bench.on_host("tinyproxy", program, port)], program.close


def mitmproxy(bench: Bench) -> Started:
    """mitmdump that looks into no tunnel."""
    program_path = _program("mitmdump", bench.mitmdump)
    folder, port = bench.folder("mitmproxy"), free_port()
    argv = [program_path, "--quiet", "--listen-host", "127.0.0.1", "--listen-port", str(port)]
    argv += ["--ignore-hosts", ".*", "--set", "block_list=/!~d 127.0.0.1/403", "--set", f"confdir={folder}"]
    program = Program(argv, bench.env, folder)
    return [bench.on_host("mitmproxy", program, port)], program.close


def nono(bench: Bench) -> Started:
    """The proxy of nono-py, in a Python that only waits."""
    python = bench.nono_python or sys.executable
    program = Program([python, "-c", NONO, "127.0.0.1"], bench.env, bench.scratch)
    try:
        url = program.hear()
    except DidNotWork:
        program.close()
        raise
    port = urlsplit(url).port
    assert port is not None
    return [bench.on_host("nono-py", program, port, credentials(url))], program.close


def srt(bench: Bench) -> Started:
    """One `srt`: asked inside, through its bridges, and at the port its own process listens on."""
    start = peers.srt(bench.peers, bench.folder("srt"), bench.env, domains=("127.0.0.1",))
    authority = f"127.0.0.1:{bench.origin.port}"
    within = bench.inside("srt", start.prefix, start.env, authority)
    proxies = [within]
    assert within.pid is not None
    ports = listening_ports(within.pid)
    if ports:  # its HTTP port comes first where it has two
        proxies.insert(0, within._replace(where=HOST, port=min(ports), generator=bench.generator))
    return proxies, within.generator.close


STARTS: Mapping[str, tuple[Callable[[Bench], Started], ...]] = {
    "direct": (direct,),
    "doorward": (doorward, doorward_inside),
    "squid": (squid,),
    "tinyproxy": (tinyproxy,),
    "mitmproxy": (mitmproxy,),
    "srt": (srt,),
    "nono-py": (nono,),
}


def credentials(url: str) -> str | None:
    """What Basic authentication takes from a proxy's URL (RFC 7617)."""
    parts = urlsplit(url)
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return base64.b64encode(pair.encode()).decode()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listened on a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def _program(name: str, given: str | None) -> str:
    # Debian keeps daemons out of an ordinary user's PATH
    found = given or shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise DidNotWork(f"{name} not found on PATH")
    return found


def _nothing() -> None:
    return

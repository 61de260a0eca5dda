"""Connections of programs that know no proxy: captured, judged by the name that was looked up, refused at once."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

# Prints what came of each HOST:PORT, and in how many milliseconds. No proxy variable is read by a plain socket.
DIAL = """
import socket, sys, time
for each in sys.argv[1:]:
    host, _, port = each.rpartition(':')
    start = time.monotonic()
    try:
        with socket.create_connection((host.strip('[]'), int(port)), 10) as c:
            c.sendall(b'hi')
            said = c.recv(6).decode() or 'closed'
    except OSError as error:
        said = type(error).__name__
    print(said, round((time.monotonic() - start) * 1000))
"""


def dialled(out: str) -> tuple[list[str], list[int]]:
    lines = [line.rsplit(" ", 1) for line in out.splitlines()]
    return [said for said, _ in lines], [int(took) for _, took in lines]


def test_an_allowed_name_is_reached_and_others_are_refused_at_once(
    everywhere: Any, speaker: Callable[..., Any]
) -> None:
    """P-EV-08, P-EV-17, P-PP-15."""
    server = speaker(b"banner")
    canary = speaker(b"canary")
    seen = everywhere.run(
        *server.reach(), "--", "/usr/bin/python3", "-c", DIAL,
        f"a.test:{server.port}", f"a.test:{canary.port}", "b.test:80", "192.0.2.7:443", "[2001:db8::7]:443",
        "10.1.2.3:22",
    )  # fmt: skip
    said, took = dialled(seen.out)
    assert said == ["banner", *["ConnectionResetError"], "gaierror", *["ConnectionResetError"] * 3], seen
    assert max(took[1:]) < 4000  # no timeout of anybody's; how fast is bench/transparent.py's to say
    assert canary.touched == 0 and server.touched == 1
    refused = {(each["host"], each["port"], each["protocol"], each["reason"]) for each in seen.refusals}
    assert refused == {
        ("a.test", canary.port, "transparent_tcp", "port_not_allowed"),
        ("b.test", 53, "dns", "not_allowed"),
        ("192.0.2.7", 443, "transparent_tcp", "not_allowed_local"),
        ("2001:db8::7", 443, "transparent_tcp", "not_allowed_local"),
        ("10.1.2.3", 22, "transparent_tcp", "not_allowed_local"),
    }
    records = everywhere.records(seen.document["session"])
    assert all(os.path.basename(each["process"]["executable"]).startswith("python3") for each in records)
    (opened,) = [each for each in records if each["protocol"] == "transparent_tcp" and each["decision"] == "allow"]
    assert (opened["host"], opened["port"], opened["address"]) == ("a.test", server.port, "127.0.0.1")
    assert opened["bytes_down"] >= 6


# Asks for names right below two parents, a few at a time, in turn with a child process.
ASK = """
import os, socket
def ask(who, turn):
    for number in range(4):
        for parent in ('a.test', 'b.test'):
            try: socket.gethostbyname(f'{who}{turn}{number}.{parent}')
            except OSError: pass
told, tell = os.pipe(); heard, hear = os.pipe()
if not os.fork():
    for turn in range(3): os.read(told, 1); ask('child', turn); os.write(hear, b'.')
    os._exit(0)
for turn in range(3): ask('first', turn); os.write(tell, b'.'); os.read(heard, 1)
"""


def test_each_new_name_is_on_record_in_order_with_the_process_that_asked(as_caller: Any) -> None:
    """Most are told to the supervisor by their form (proxy/record_form.py)."""
    seen = as_caller.run("--allow", "**.a.test", "--", "/usr/bin/python3", "-c", ASK)
    assert seen.status == 0, seen
    session = seen.document["session"]
    records = as_caller.records(session)
    asked = [each["host"] for each in records]
    assert asked == [
        f"{who}{turn}{number}.{parent}"
        for turn in range(3) for who in ("first", "child") for number in range(4) for parent in ("a.test", "b.test")
    ]  # fmt: skip
    pids = {(each["host"][:5], each["process"]["pid"]) for each in records}
    assert len(pids) == 2 == len(dict(pids))
    for each in records:
        allowed = each["host"].endswith("a.test")
        assert each["process"]["argv"][1:] == ["-c", ASK]
        assert (each["decision"], each["address"] is not None) == ("allow" if allowed else "deny", allowed)
    assert len({each["address"] for each in records}) == 25 and len({each["connection"] for each in records}) == 48
    refused = [host for host in asked if host.endswith("b.test")]
    assert [each["host"] for each in seen.refusals] == refused
    assert [each["hint"] for each in seen.refusals] == [f"--allow {host}" for host in refused]
    assert as_caller._run(as_caller.argv("verify", session)[1:], {}).returncode == 0


def test_without_capture_nothing_is_there(everywhere: Any, speaker: Callable[..., Any]) -> None:
    server = speaker(b"banner")
    seen = everywhere.run(
        *server.reach(), "-c", "network.transparent=false", "--", "/usr/bin/python3", "-c", DIAL,
        f"a.test:{server.port}", "192.0.2.7:443",
    )  # fmt: skip
    assert dialled(seen.out)[0] == ["gaierror", "OSError"], seen
    assert seen.refusals == [] and server.touched == 0


def test_with_the_network_off_nothing_is_captured(doorward: Any) -> None:
    seen = doorward.run("--network", "off", "--", "/usr/bin/python3", "-c", DIAL, "192.0.2.7:443", "a.test:80")
    assert dialled(seen.out)[0] == ["OSError", "gaierror"], seen


C_PROGRAM = r"""
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **words) {
    struct addrinfo hints = {0}, *found;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(words[1], words[2], &hints, &found)) { puts("no address"); return 1; }
    int s = socket(found->ai_family, SOCK_STREAM, 0);
    if (connect(s, found->ai_addr, found->ai_addrlen)) { puts("no connection"); return 2; }
    char said[64];
    ssize_t size = read(s, said, sizeof said);
    if (size <= 0) { puts("nothing said"); return 3; }
    fwrite(said, 1, size, stdout);
    return 0;
}
"""


@pytest.mark.parametrize("linked", ["", "-static"])
def test_a_program_in_c_that_connects_by_itself(
    doorward: Any, speaker: Callable[..., Any], program: Callable[[str], str], linked: str
) -> None:
    """P-EV-08: what a static client does, getaddrinfo and connect."""
    source = doorward.write("client.c", C_PROGRAM)
    words = [program("gcc"), *linked.split(), "-o", str(source.with_suffix("")), str(source)]
    subprocess.run(words, check=True, timeout=60, stderr=subprocess.DEVNULL)  # says what a static getaddrinfo needs
    server = speaker(b"hello from the server\n")
    allowed = doorward.run(*server.reach(), "--", "./client", "a.test", str(server.port))
    assert (allowed.status, allowed.out) == (0, "hello from the server\n"), allowed
    refused = doorward.run(*server.reach(), "--", "./client", "a.test", "22")
    assert (refused.status, refused.out) == (3, "nothing said\n"), refused
    (said,) = refused.refusals
    assert (said["host"], said["port"], said["reason"]) == ("a.test", 22, "port_not_allowed")
    assert said["rule"] == f"a.test:{server.port}"
    assert said["process"]["executable"] == str(doorward.workspace / "client")
    assert said["process"]["argv"] == ["./client", "a.test", "22"]
    assert said["process"]["parents"] == []


def test_a_server_may_speak_first_and_both_may_half_close(doorward: Any, speaker: Callable[..., Any]) -> None:
    """P-EV-17: databases, mail, ssh."""
    server = speaker(b"220 ready\r\n")
    code = (
        "import socket\n"
        f"c = socket.create_connection(('a.test', {server.port}), 10)\n"
        "print(c.recv(100)); c.sendall(b'EHLO x\\r\\n'); print(c.recv(100))\n"
        "c.shutdown(socket.SHUT_WR); print(c.recv(9))"
    )
    seen = doorward.run(*server.reach(), "--", "/usr/bin/python3", "-c", code)
    assert seen.out == "b'220 ready\\r\\n'\nb'EHLO x\\r\\n'\nb''\n", seen
    (record,) = [r for r in doorward.records(seen.document["session"]) if r["protocol"] == "transparent_tcp"]
    assert record["content"] == "uninspected"


def test_a_refused_http_client_is_told_why(doorward: Any, program: Callable[[str], str]) -> None:
    """P-EV-09: a library that reads no proxy variable gets the reason all the same."""
    seen = doorward.run("--allow", "a.test:1", "--", program("curl"), "-sS", "--noproxy", "*", "http://a.test/")
    body = json.loads(seen.out)
    assert (body["reason"], body["protocol"], body["hint"]) == ("port_not_allowed", "transparent_tcp", "--allow a.test")
    tls = doorward.run("--allow", "a.test:1", "--", program("curl"), "-sS", "--noproxy", "*", "https://a.test/")
    assert "access denied" in tls.out, tls


TLS = """
import socket, ssl, sys, time
host, port, name, how = sys.argv[1:]
bio, out = ssl.MemoryBIO(), ssl.MemoryBIO()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
if how == 'long':
    context.set_alpn_protocols(['x' * 250] * 66)
tls = context.wrap_bio(bio, out, server_hostname=name or None)
try: tls.do_handshake()
except ssl.SSLWantReadError: pass
hello = out.read()
if how == 'records':  # cut inside the name
    body, at = hello[5:], hello.index(name.encode()) - 5 + 2
    hello = b''.join(hello[:3] + len(part).to_bytes(2, 'big') + part for part in (body[:at], body[at:]))
with socket.create_connection((host, int(port)), 10) as c:
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        if how in ('bytes', 'records'):
            for each in hello: c.sendall(bytes([each]))
        elif how == 'pause':
            c.sendall(hello[:40]); c.settimeout(8)
            print('closed' if c.recv(1) == b'' else 'open'); sys.exit()
        else:
            c.sendall(hello)
        got = b''
        while len(got) < len(hello) and (data := c.recv(65536)): got += data
        print('same' if got == hello else 'closed')
    except OSError: print('closed')
"""


@pytest.mark.parametrize(("name", "how", "said"), [
    ("b.test", "whole", "closed"), ("b.test", "bytes", "closed"), ("b.test", "records", "closed"),
    ("a.test", "whole", "same"), ("A.TEST", "whole", "same"), ("a.test", "bytes", "same"), ("a.test", "records",
    "same"),
    ("b.test", "long", "closed"), ("", "whole", "closed"), ("a.test", "pause", "closed"),
])  # fmt: skip
def test_the_name_in_the_hello_must_be_the_one_that_was_looked_up(
    doorward: Any, speaker: Callable[..., Any], name: str, how: str, said: str
) -> None:
    """P-TL-01, P-TL-02, P-TL-03, P-TL-04: the server echoes, so what comes back is what it got, byte for byte."""
    server = speaker()
    soon = ("-c", "network.limits.first_bytes_time=0.5") if how == "pause" else ()
    seen = doorward.run(
        *server.reach(), *soon, "--", "/usr/bin/python3", "-c", TLS, "a.test", str(server.port), name, how
    )
    assert seen.out == f"{said}\n", seen
    if said == "closed":
        assert server.heard == []
        assert [each["reason"] for each in seen.refusals] == ["name_mismatch"]
        if name == "b.test":
            assert "b.test" in seen.refusals[0]["message"] and seen.refusals[0]["host"] == "a.test"
    else:
        assert seen.refusals == []
        (record,) = [r for r in doorward.records(seen.document["session"]) if r["protocol"] == "transparent_tcp"]
        assert record["content"] == "tls"


def test_a_relay_inside_changes_no_verdict(doorward: Any, speaker: Callable[..., Any]) -> None:
    """P-PP-17: through a relay of the command's own, to the proxy or to the name, the answer is the same."""
    server = speaker(b"banner")
    code = (
        "import socket, threading\n"
        "def relay(target):\n"
        "    listener = socket.create_server(('127.0.0.1', 0))\n"
        "    def pump(a, b):\n"
        "        try:\n"
        "            while data := a.recv(65536): b.sendall(data)\n"
        "        except OSError: pass\n"
        "        finally:\n"
        "            try: b.shutdown(socket.SHUT_RDWR)\n"
        "            except OSError: pass\n"
        "    def serve():\n"
        "        while True:\n"
        "            c, _ = listener.accept()\n"
        "            try: u = socket.create_connection(target, 10)\n"
        "            except OSError: c.close(); continue\n"
        "            for a, b in ((c, u), (u, c)): threading.Thread(target=pump, args=(a, b), daemon=True).start()\n"
        "    threading.Thread(target=serve, daemon=True).start()\n"
        "    return listener.getsockname()\n"
        "def ask(where, host, port):\n"
        "    with socket.create_connection(where, 10) as c:\n"
        "        c.sendall(f'CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n'.encode())\n"
        "        return c.recv(100)[9:12].decode()\n"
        "proxy = ('127.0.0.1', 3128)\n"
        f"for host, port in (('a.test', {server.port}), ('b.test', 443), ('a.test', 22)):\n"
        "    print(ask(proxy, host, port), ask(relay(proxy), host, port))\n"
        "def raw(where):\n"
        "    try:\n"
        "        with socket.create_connection(where, 10) as c: return c.recv(100).decode()\n"
        "    except OSError: return ''\n"
        f"for port in ({server.port}, 22):\n"
        "    print(repr(raw(('a.test', port))), repr(raw(relay(('a.test', port)))))\n"
    )
    seen = doorward.run(*server.reach(), "--", "/usr/bin/python3", "-c", code)
    assert seen.out == "200 200\n403 403\n403 403\n'banner' 'banner'\n'' ''\n", seen


def test_udp_is_refused_at_once_so_that_quic_falls_back(everywhere: Any) -> None:
    code = (
        "import socket, time\n"
        "for family, host in ((socket.AF_INET, '198.18.0.1'), (socket.AF_INET6, '2001:db8::1')):\n"
        "    s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(10); s.connect((host, 443))\n"
        "    t = time.monotonic(); s.send(b'x')\n"
        "    try: s.recv(1)\n"
        "    except OSError as error: print(error.errno, time.monotonic() - t < 4)\n"
    )
    seen = everywhere.run("--", "/usr/bin/python3", "-c", code)
    assert seen.out == "111 True\n" * 2, seen


def test_an_address_nobody_was_given_and_the_door_s_own_ports_lead_nowhere(doorward: Any) -> None:
    """Bad input: a program that sends to 198.18.x.x without asking; one that finds the door's port."""
    seen = doorward.run(
        "--allow", "*", "--", "/usr/bin/python3", "-c", DIAL, "198.18.99.9:443", "127.0.0.1:3129", "[::1]:3129"
    )  # fmt: skip
    assert dialled(seen.out)[0] == ["ConnectionResetError"] * 3, seen
    assert [(each["host"], each["reason"]) for each in seen.refusals] == [("198.18.99.9", "not_allowed_local")]


def test_a_network_of_its_own_that_clashes_is_still_reached_by_its_rule(
    doorward: Any, speaker: Callable[..., Any]
) -> None:
    """Bad input: a rule for an address of the block that stands for names. No name is given that address."""
    server = speaker()
    code = "import socket; print(socket.gethostbyname('a.test'))"
    seen = doorward.run(*server.reach(), "--allow", "198.18.0.0/24", "--", "/usr/bin/python3", "-c", code)
    assert seen.out == "198.18.1.0\n", seen


def test_servers_and_clients_of_one_run_talk_freely(everywhere: Any) -> None:
    """P-EV-13: by loopback, by localhost, by the machine's own name."""
    code = (
        "import socket\n"
        "for host in ('127.0.0.1', 'localhost', socket.gethostname(), '::1'):\n"
        "    family = socket.AF_INET6 if ':' in host else socket.AF_INET\n"
        "    s = socket.create_server(('::1' if ':' in host else '0.0.0.0', 0), family=family)\n"
        "    c = socket.create_connection((host, s.getsockname()[1]), 5); a, _ = s.accept(); a.send(b'own')\n"
        "    print(c.recv(9).decode())\n"
    )
    seen = everywhere.run("--", "/usr/bin/python3", "-c", code)
    assert (seen.out, seen.refusals) == ("own\n" * 4, []), seen


def test_nftables_that_is_refused_is_said_and_the_run_goes_on(doorward: Any, speaker: Callable[..., Any]) -> None:
    """Bad input: a namespace where the table is refused."""
    server = speaker(b"banner")
    refusing = (
        "from doorward.launcher import netlink_messages as m\n"
        "m.REDIRECT = m.REDIRECT.replace(b'nat\\0', b'nut\\0')\n"  # no such type of chain
        "import sys\nfrom doorward.__main__ import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    done = doorward._run(
        [doorward.python, "-P", "-c", refusing, "run", "--json", *server.reach(), "--", "/usr/bin/python3", "-c", DIAL,
         f"a.test:{server.port}"],
        {},
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert document["exit_code"] == 0 and server.touched == 0
    assert any("nftables" in note and "not captured" in note for note in document["notes"]), document
    assert b"nftables" in done.stderr


def test_what_was_only_watched_becomes_rules_for_places_not_for_look_ups(
    doorward: Any, speaker: Callable[..., Any]
) -> None:
    server = speaker(b"banner")
    hosts = ("-c", 'network.hosts={"a.test" = "127.0.0.1"}')
    seen = doorward.run("--observe", *hosts, "--", "/usr/bin/python3", "-c", DIAL, f"a.test:{server.port}")
    assert dialled(seen.out)[0] == ["banner"], seen
    session = seen.document["session"]
    learned = doorward._run(doorward.argv("allowlist", "learn", "--json", session)[1:], {})
    assert [each["rule"] for each in json.loads(learned.stdout)["rules"]] == [f"a.test:{server.port}"], learned

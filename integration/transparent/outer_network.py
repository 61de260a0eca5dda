"""A network of its own around doorward: any address leads here, and the machine's name server is ours. Run by the tests
below unshare(1), as root of that namespace: `outer_network.py RESOLV_CONF DOORWARD-ARGUMENTS…`, one JSON line a run.

The name server answers every A with 192.0.2.53's public neighbour below and counts what it is asked; on ports 443 and
8443 of every address a server echoes.
"""

import fcntl
import json
import os
import socket
import subprocess
import sys
import threading

import dns.message
import dns.rdatatype
import dns.rrset

PUBLIC = "93.184.216.34"  # leads nowhere but to this namespace's own loopback device


def bring_up():
    with socket.socket() as probe:
        fcntl.ioctl(probe, 0x8914, b"lo".ljust(16, b"\0") + (1).to_bytes(2, sys.byteorder) + bytes(22))
    for family in ("-4", "-6"):
        subprocess.run(["ip", family, "route", "add", "local", "default", "dev", "lo"], check=True)


class NameServer(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))

    def run(self):
        while True:
            data, sender = self.socket.recvfrom(4096)
            query = dns.message.from_wire(data)
            name, kind = query.question[0].name, query.question[0].rdtype
            self.asked.append([name.to_text(), dns.rdatatype.to_text(kind)])
            reply = dns.message.make_response(query)
            if kind == dns.rdatatype.A:
                reply.answer.append(dns.rrset.from_text(name, 60, "IN", "A", PUBLIC))
            self.socket.sendto(reply.to_wire(), sender)


def echo(port):
    listener = socket.create_server(("0.0.0.0", port))

    def talk(connection):
        with connection:
            try:
                while data := connection.recv(65536):
                    connection.sendall(data)
            except OSError:
                pass

    def serve():
        while True:
            threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()


def main(resolver, *runs):
    bring_up()
    with open(resolver, "w") as file:
        file.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    subprocess.run(["mount", "--bind", resolver, os.path.realpath("/etc/resolv.conf")], check=True)
    server = NameServer()
    server.start()
    for port in (443, 8443):
        echo(port)
    for words in map(json.loads, runs):
        server.asked.clear()
        done = subprocess.run(words, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
        print(json.dumps({
            "status": done.returncode, "out": done.stdout.decode(), "err": done.stderr.decode("utf-8", "replace"),
            "asked": server.asked,
        }), flush=True)  # fmt: skip


main(*sys.argv[1:])

"""A unix socket of the host for a command inside to find, or not."""

import contextlib
import os
import socket
import threading


class Service:
    """Says hello to whoever comes and counts them; a datagram socket only counts. A path may be str or bytes."""

    def __init__(self, path, kind=socket.SOCK_STREAM):
        self.socket = socket.socket(socket.AF_UNIX, kind)
        self.socket.bind(path)
        if isinstance(path, str) and not path.startswith("\0"):
            os.chmod(path, 0o777)
        self.visitors = 0
        if kind != socket.SOCK_DGRAM:
            self.socket.listen(8)
        self.thread = threading.Thread(target=self.serve if kind != socket.SOCK_DGRAM else self.take, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.visitors += 1
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"hello")

    def take(self):
        while True:
            try:
                message = self.socket.recv(64)
            except OSError:
                return
            if not message:
                return
            self.visitors += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(10)

"""Runs one command through the launcher, told by JSON on stdin, and tells what came of it by JSON on stdout.

A process of its own, so that a test can run it as another user, with other descriptors, or kill it.

Told: {"policy": {...}, "argv", "cwd", "env", "stdin": text | null, "stdin_file", "steps": [...], "search_path",
"repeat": n, "terminal": bool, "without_filter": bool, "bubblewrap_first": bool, "deadline": s,
"setup_deadline": s, "ahead": bool, "vanishing": path (removed once the mounts are planned)}.
Steps, in order: ["release"], ["await", text on stdout], ["signal", n], ["kill"], ["touch", path], ["close"],
["type", text], ["resize", rows, columns], ["listen"] (take the listeners handed over), ["say", text].
"""

import contextlib
import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import sys
import termios
import time

from doorward.launcher import bubblewrap, linux
from doorward.launcher.interface import (
    Command,
    Identity,
    Limits,
    Mode,
    SandboxPolicy,
    SandboxUnavailable,
    Stdio,
    UnenforceableRule,
)
from doorward.launcher.linux import Linux


class Driver:
    def __init__(self, told):
        self.told = told
        self.output = {"stdout": b"", "stderr": b""}
        self.deadline = time.monotonic() + told.get("deadline", 100)
        self.readers = {}
        self.listeners = []
        self.master = None
        self.waited = False

    def run(self):
        policy = dict(self.told["policy"])
        for name in ("write", "read_only", "deny_read", "allow_unix"):
            policy[name] = tuple(policy.get(name, ()))
        policy["mode"] = Mode(policy["mode"])
        if "user" in policy:
            name, uid, gid, groups = policy["user"]
            policy["user"] = Identity(name, uid, gid, tuple(groups))
        policy["limits"] = Limits(**policy.get("limits", {}))
        path = self.told.get("search_path")
        if "setup_deadline" in self.told:
            linux.SETUP_DEADLINE_S = bubblewrap._VERSION_DEADLINE_S = self.told["setup_deadline"]
        door = Linux(path)
        if self.told.get("ahead"):
            door.start_ahead()
        try:
            confinement = door.prepare(SandboxPolicy(**policy))
        except SandboxUnavailable as error:
            return {"unavailable": error.sentence, "remedy": error.remedy}
        except UnenforceableRule as error:
            return {"unenforceable": error.sentence, "entry": error.entry, "remedy": error.remedy}
        if self.told.get("without_filter"):
            confinement._program = b""
        if self.told.get("bubblewrap_first"):
            # as on a machine where only bubblewrap may make user namespaces
            confinement._namespaces = lambda: 0
        if "vanishing" in self.told:
            self.remove_once_planned(self.told["vanishing"])
        env = confinement.environment(self.told["env"])
        try:
            results = [self.once(confinement, env) for _ in range(self.told.get("repeat", 1))]
        except SandboxUnavailable as error:
            return {"unavailable": error.sentence, "remedy": error.remedy}
        confinement.close()
        door.close()
        return {
            **results[-1],
            "enforcement": list(confinement.enforcement),
            "notices": list(confinement.notices),
            "limits": confinement.limits,
            "environment": env,
            "left": children(),
        }

    def remove_once_planned(self, path):
        look = linux.survey

        def surveyed(*args, **more):
            found = look(*args, **more)
            if os.path.lexists(path):
                os.unlink(path)
            return found

        linux.survey = surveyed

    def once(self, confinement, env):
        stdio, theirs = self.stdio()
        ours, handover = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.handover = ours
        command = Command(tuple(self.told["argv"]), self.told["cwd"], env)
        started = time.monotonic()
        try:
            process = confinement.spawn(command, stdio, handover=handover, run="run-1", policy_id="policy-1")
        finally:
            for descriptor in theirs:
                os.close(descriptor)
            handover.close()
        self.process = process
        try:
            for step in self.told.get("steps", [["release"]]):
                getattr(self, "step_" + step[0])(*step[1:])
            self.pump(self.ended)
            outcome = process.wait()
            took = time.monotonic() - started
            self.drain()
        finally:
            process.close()
            ours.close()
            for listener in self.listeners:
                listener.close()
            self.listeners.clear()
        return {
            "exit_code": outcome.exit_code,
            "signal": outcome.signal,
            "failure": list(outcome.failure) if outcome.failure else None,
            "limits_hit": [list(hit) for hit in outcome.limits_hit],
            "denied": [list(each) for each in outcome.denied],
            "undone": [list(undone) for undone in outcome.undone],
            "stdout": self.output["stdout"].decode("utf-8", "surrogateescape"),
            "stderr": self.output["stderr"].decode("utf-8", "surrogateescape"),
            "took": took,
            "children": children(),
        }

    def stdio(self):
        told = self.told
        if told.get("terminal"):
            self.master, slave = os.openpty()
            self.readers[self.master] = "stdout"
            return Stdio(slave, slave, slave, slave), (slave,)
        if told.get("stdin_file"):
            stdin = os.open(told["stdin_file"], os.O_RDONLY)
            theirs = [stdin]
        elif told.get("stdin") is None:
            stdin, theirs = -1, []
        else:
            stdin, writer = os.pipe()
            self.writer = writer
            if told["stdin"] != "open":
                os.write(writer, told["stdin"].encode())
                os.close(writer)
            theirs = [stdin]
        out, out_writer = os.pipe()
        error, error_writer = os.pipe()
        self.readers.update({out: "stdout", error: "stderr"})
        return Stdio(stdin, out_writer, error_writer), [*theirs, out_writer, error_writer]

    def ended(self):
        poll = select.poll()
        poll.register(self.process.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def pump(self, done):
        while not done():
            left = self.deadline - time.monotonic()
            if left <= 0:
                print(json.dumps({"late": True, "stdout": repr(self.output), "waiting": waiting()}), flush=True)
                self.process.kill()
                os._exit(1)
            poll = select.poll()
            poll.register(self.process.fileno(), select.POLLIN)
            for reader in self.readers:
                poll.register(reader, select.POLLIN)
            for descriptor, _ in poll.poll(left * 1000):
                if descriptor in self.readers:
                    self.read(descriptor)

    def read(self, descriptor):
        try:
            piece = os.read(descriptor, 65536)
        except OSError:
            piece = b""
        if piece:
            self.output[self.readers[descriptor]] += piece
        else:
            del self.readers[descriptor]

    def drain(self):
        while self.readers:
            poll = select.poll()
            for reader in self.readers:
                poll.register(reader, select.POLLIN)
            ready = poll.poll(0)
            if not ready:
                # someone still holds the other end: a descriptor leaked or a process survived
                self.output["stderr"] += b"<open>" if self.master not in self.readers else b""
                return
            for descriptor, _ in ready:
                self.read(descriptor)

    def step_release(self):
        self.process.release()

    def step_await(self, text):
        self.pump(lambda: text.encode() in self.output["stdout"])

    def step_await_stopped(self):
        """Until a process below this one is stopped; there is no descriptor to wait on for that."""
        while time.monotonic() < self.deadline:
            parents, stopped = {}, []
            for name in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{name}/stat") as file:
                        state, parents[name], _, _, terminal = file.read().rpartition(")")[2].split()[:5]
                except OSError:
                    continue
                if state == "T" and terminal != "0":
                    stopped.append(name)
            for name in stopped:
                while name in parents:
                    if name == str(os.getpid()):
                        return
                    name = parents[name]
            select.poll().poll(10)

    def step_signal(self, number):
        self.process.signal(number)

    def step_kill(self):
        self.process.kill()

    def step_close(self):
        self.process.close()

    def step_touch(self, path):
        with open(path, "w"):
            pass

    def step_say(self, text):
        os.write(2, text.encode())

    def step_hang(self):
        self.pump(lambda: False)

    def step_fork_holder(self, seconds):
        holder = os.fork()
        if holder == 0:
            select.poll().poll(seconds * 1000)
            os._exit(0)
        os.write(2, f"{holder}\n".encode())

    def step_mount(self, path):
        os.makedirs(path, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "late", path], check=True)
        with open(path + "/seen", "w"):
            pass

    def step_answer(self):
        os.write(self.writer, b"go\n")

    def step_type(self, text):
        os.write(self.master, text.encode())

    def step_resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def step_listen(self):
        self.handover.settimeout(10)
        self.messages = []
        for _ in range(2):
            message, descriptors, _, _ = socket.recv_fds(self.handover, 4096, 4)
            self.messages.append(json.loads(message))
            self.listeners += [socket.socket(fileno=number) for number in descriptors]
        names = sorted(listener.getsockname()[0] for listener in self.listeners)
        self.output["stderr"] += json.dumps([self.messages[0], names]).encode() + b"\n"

    def step_serve(self, text):
        for listener in self.listeners:
            listener.settimeout(10)
            connection, _ = listener.accept()
            with connection:
                connection.sendall(text.encode())


def waiting():
    """What every process below this one is and waits for, thread by thread: how a hang is told from a slow disk."""
    parents, found = {}, []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
            parents[name] = file.read().rpartition(")")[2].split()[1]
    for name in parents:
        above = name
        while above in parents and above != str(os.getpid()):
            above = parents[above]
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{name}/task") if above == str(os.getpid()) else ():
                found.append([name, task, *(_told(f"/proc/{name}/task/{task}", each) for each in _OF_A_TASK)])
    return found


_OF_A_TASK = ("comm", "stat", "wchan", "syscall", "stack")


def _told(where, what):
    try:
        with open(f"{where}/{what}") as file:
            return file.read()[:300]
    except OSError as error:
        return error.strerror


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return file.read().split()


if __name__ == "__main__":
    told = json.loads(sys.stdin.read())
    print(json.dumps(Driver(told).run()))

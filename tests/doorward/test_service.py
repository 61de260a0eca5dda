"""The process behind an open session: what it does between commands, and how it tells of it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

# The supervisor's place is taken by one that tells what it is asked, and whose second turn cannot be kept.
_SERVICE = """
import sys
from doorward import door_ahead, opening, service
from doorward.errors import EngineError

class Proxy:
    def close(self):
        pass

class Observed:
    def to_json(self):
        return {"told": told[:]}

told = []

class Supervisor:
    workspace = "/"
    notices = ()
    def prepare(self):
        pass
    def run(self, request):
        told.append(f"run {request.kept_later}")
        return Observed()
    def start_ahead(self):
        told.append("ahead")
        if told.count("ahead") == 2:
            raise EngineError("the rollout cannot be written: no space", "free some space")
    def close(self):
        pass

service.ProxyProcess = Proxy
door_ahead.door_ahead = lambda: None
opening.open_supervisor = lambda *_: Supervisor()
service.main(int(sys.argv[1]))
"""


def test_a_turn_goes_to_the_disk_after_its_answer_and_a_failure_is_told_with_the_next() -> None:
    ours, theirs = socket.socketpair()
    descriptor = theirs.fileno()
    command = [sys.executable, "-c", _SERVICE, str(descriptor)]
    with subprocess.Popen(command, pass_fds=[descriptor], stdin=subprocess.DEVNULL) as service:
        theirs.close()
        with ours, ours.makefile("rw", encoding="utf-8") as lines:
            ours.settimeout(30)

            def ask(message: dict[str, object]) -> dict[str, object]:
                lines.write(json.dumps(message) + "\n")
                lines.flush()
                answer: dict[str, object] = json.loads(lines.readline())
                return answer

            command_of_one = {"exec": {"argv": ["true"], "cwd": "", "env": {}, "stdin": None, "timeout_s": None}}
            assert ask({"open": {}}) == {"opened": {"notices": []}}
            assert ask(command_of_one) == {"observation": {"told": ["run True"]}}
            assert ask(command_of_one) == {"observation": {"told": ["run True", "ahead", "run True"]}}
            lost = ask(command_of_one)
            sentence = "the rollout cannot be written: no space"
            assert lost == {"error": {"kind": "engine", "sentence": sentence, "remedy": "free some space"}}
            assert "observation" in ask(command_of_one)
            ours.shutdown(socket.SHUT_RDWR)
            assert service.wait(30) == 0

"""What `doorward run -- true` imports in the supervisor. Modules are counted, not milliseconds: 0.1 to 2.5 ms each.

Everything is real but bubblewrap and the fork of the shim. A module that is new here needs a reason; one
that only some runs need is imported where they need it.
"""

import json
import os
import subprocess
import sys

import pytest

NEVER = {
    "argparse", "asyncio", "base64", "collections", "contextlib", "ctypes", "dataclasses", "datetime", "enum",
    "functools", "getopt", "gettext", "hashlib", "hmac", "httptools", "idna", "importlib.metadata",
    "importlib.resources", "inspect", "ipaddress", "json", "logging", "pathlib", "publicsuffixlist", "pyseccomp",
    "random", "re", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile",
    "threading", "tomlkit", "tomllib", "traceback", "types", "typing", "urllib", "uuid", "warnings",
}  # fmt: skip

OURS = {
    "doorward": {
        "__main__", "commands", "commands.dispatch", "commands.run", "commands.run_options", "configuration",
        "configuration_gather", "configuration_schema", "door_ahead", "errors",
        "exit_status", "inner_environment", "judgement",
        "named_tuple", "network_settings", "observation", "opening", "options", "own_modules", "permission", "plan",
        "programs", "proxy_process",
        "plain_enum", "relay", "session_log", "shell_action", "start_json", "streams", "supervisor", "turn", "version",
        "working_folder",
    },
    "doorward.gates": {
        "action", "approval_gate", "command_entry", "command_knowledge", "dial", "features", "findings", "fuses",
        "known_commands", "places", "resolver", "sandbox_gate", "verdict", "wording",
    },
    "doorward.sessions": {
        "chain", "environment", "home", "ids", "items", "line", "lock", "output", "regular_file", "rollout", "sha256",
        "timestamps",
    },
    "doorward.launcher": {
        "backend", "bubblewrap", "command_check", "descriptor_passing", "git_directories", "globs", "guards",
        "interface", "launch",
        "linux", "masks", "mounts", "outcome", "plan", "process", "protected", "rules", "seccomp", "seed", "streams",
        "survey",
        "syscall_rules", "unix_sockets", "watch",
    },
}  # fmt: skip

# Of the standard library: what is written in C, or frozen into the interpreter.
STANDARD = {
    "__future__", "_collections", "_collections_abc", "_functools", "_json", "_sha2", "_sha256", "_signal", "_socket",
    "errno", "fcntl", "gc", "itertools", "select",
}  # fmt: skip

# `held` stands for the forked shim: a run that has ended at once.
_RUN = """
import sys
before = set(sys.modules)
from doorward import configuration
from doorward.launcher import interface, linux

def held(*_):
    import os

    class Held:
        def __init__(self):
            self.ended = os.eventfd(1)
        def fileno(self):
            return self.ended
        def wait(self):
            return interface.Outcome(0)
        def close(self):
            os.close(self.ended)
        def release(self):
            pass

    return Held()

class Seed:
    namespaces = 0
    user = None
    captured = False
    terminal = True
    def discard(self):
        pass

linux.plant = lambda *_, **__: Seed()
linux.ShimProcess = held
configuration._unread_file = lambda *_: None  # what lies above the temporary folder is not of this test
from doorward.__main__ import main

status = main(["run", "--", "true"])
found = sorted(set(sys.modules) - before)
import json
print(json.dumps([status, found]))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The modules of a second run; the first one fills the caches (the filter, bubblewrap's version, the key)."""
    tmp_path = tmp_path_factory.mktemp("start-up")
    tools, workspace = tmp_path / "tools", tmp_path / "workspace"
    tools.mkdir()
    workspace.mkdir()
    bwrap = tools / "bwrap"
    bwrap.write_text("#!/bin/sh\necho bubblewrap 0.8.0\n")
    bwrap.chmod(0o755)
    env = {"PATH": f"{tools}:{os.defpath}", "HOME": str(tmp_path), "DOORWARD_HOME": str(tmp_path / "home")}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-I", "-c", _RUN],
            env=env, cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        status, modules = json.loads(done.stdout)
        assert (status, done.stderr) == (0, "")
    return set(modules)


def test_the_supervisor_imports_these_modules_of_ours_and_no_other(imported: set[str]) -> None:
    wanted = {f"{package}.{name}" for package, names in OURS.items() for name in names} | OURS.keys()
    found = {name for name in imported if name.split(".")[0] == "doorward"}
    added, gone = sorted(found - wanted), sorted(wanted - found)
    assert not (added or gone), f"added: {added}; gone: {gone}"


def test_the_supervisor_imports_none_of_the_expensive_ones(imported: set[str]) -> None:
    assert sorted(imported & NEVER) == []


def test_the_supervisor_imports_little_of_the_standard_library(imported: set[str]) -> None:
    found = {name for name in imported if name.split(".")[0] != "doorward"}
    assert sorted(found - STANDARD) == []


def loaded_with(code: str) -> set[str]:
    """The modules of a process that runs `code` and nothing else."""
    shown = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}; print(*sys.modules)"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return set(shown.stdout.split())


@pytest.mark.skipif(sys.platform != "linux", reason="what a shim is exists on Linux only")
def test_the_shim_and_what_becomes_bubblewrap_import_none_of_the_expensive_ones() -> None:
    """What they import as they go counts in full: nothing else happens meanwhile."""
    names = ("shim", "starter", "syscalls", "name_files", "transparent", "netlink_messages", "undo", "guards")
    loaded = loaded_with("import " + ", ".join(f"doorward.launcher.{name}" for name in names))
    assert sorted(loaded & NEVER) == []


def test_judging_a_script_does_without_typing() -> None:
    """The grammar's packages import it for what nobody asks for; agents run little else than `sh -c`."""
    code = (
        "from doorward.gates import policy_gate, unfolding\n"
        "from doorward.gates.shell_grammar import parser\n"
        "parser()"
    )
    assert sorted(loaded_with(code) & {"typing", "importlib.resources", "importlib.util", "pathlib"}) == []


def test_what_is_told_of_refusals_and_failures_does_without_typing() -> None:
    """An agent's commands fail often; each would pay for it again."""
    names = ("supervisor", "summary", "hints", "past_the_proxy", "kept_from_writing")
    code = "import " + ", ".join(f"doorward.{name}" for name in names)
    assert sorted(loaded_with(code) & {"typing", "contextlib", "dataclasses"}) == []
    assert sorted(loaded_with("import doorward.supervisor, doorward.summary") & NEVER) == []

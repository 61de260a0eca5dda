"""The Windows door against a fake of its calls: their order, what is undone, and what is said when one fails."""

import json
import os
import select
import socket

import pytest

from doorward.launcher import windows_paths as paths
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
from doorward.launcher.windows import Windows, enforcement_of
from doorward.launcher.windows_api import Started, WindowsApi
from doorward.launcher.windows_errors import ApiError
from doorward.launcher.windows_files import WindowsFiles
from doorward.launcher.windows_plan import LOW_LABEL, capability_sid

WORK = r"C:\work"
TREE = {
    WORK: "directory", rf"{WORK}\.git": "directory", rf"{WORK}\.git\hooks": "directory", r"C:\home": "directory",
    r"C:\tools\make.exe": "file", r"D:\out": "directory",
}  # fmt: skip
ENV = {"PATH": r"C:\tools", "PATHEXT": ".EXE", "SystemRoot": r"C:\Windows", "TEMP": r"C:\shared"}


class FakeFiles(WindowsFiles):
    """A tree in memory."""

    def __init__(self):
        self.tree = {paths.key(path): kind for path, kind in TREE.items()}
        self.temporary = []
        self.put_back_asked = []

    def look(self, path):
        return self.tree.get(paths.key(path), "")

    def resolve(self, path):
        return path

    def is_store_alias(self, path):
        return path == r"C:\tools\pwsh.exe"

    def make_temporary(self):
        self.temporary.append(rf"C:\temp\{len(self.temporary)}")
        return self.temporary[-1]

    def remove_temporary(self, path):
        self.temporary = [None if each == path else each for each in self.temporary]

    def put_back(self, absent):
        self.put_back_asked.append(absent)
        return ()


class FakeApi:
    """Notes each call. `failing` is call name to error number; a command ends when `end` is written to."""

    def __init__(self, failing=None):
        self.calls = []
        self.failing = failing or {}
        self.entries = {}
        self.labels = {}
        self.open = set()
        self.running = {1000: 5}
        self.pid = 1000
        self.code = 0
        self.ended, self.end = socket.socketpair()
        self._next = 1

    def __getattr__(self, name):
        assert callable(getattr(WindowsApi, name)), f"the real one has no {name}"

        def call(*arguments):
            self.calls.append((name, *arguments))
            if name in self.failing:
                raise ApiError({"create_suspended": "CreateProcessAsUserW"}.get(name, name), self.failing[name])
            return getattr(self, f"_{name}", lambda *_: None)(*arguments)

        return call

    def names(self):
        return [call[0] for call in self.calls]

    def _handle(self, *_):
        self._next += 1
        self.open.add(self._next)
        return self._next

    _create_job = _restricted_token = _inheritable = _handle

    def _create_suspended(self, *_):
        return Started(self._handle(), self._handle(), 2000)

    def _close(self, handle):
        self.open.remove(handle)

    def _logon_sid(self):
        return "S-1-5-5-0-7"

    def _started_at(self, pid):
        return self.running.get(pid)

    def _add_entry(self, path, sid, access, mode, inheritance):
        self.entries.setdefault((path, sid), []).append((access, mode, inheritance))

    def _remove_entries(self, path, sid):
        self.entries.pop((path, sid), None)

    def _label(self, path):
        return self.labels.get(path, "")

    def _set_label(self, path, sddl):
        self.labels[path] = "" if sddl == "S:" else sddl

    def _resume(self, _):
        self.end.send(b"!")

    def _wait(self, _):
        self.ended.recv(1)
        return self.code

    def _terminate_job(self, _, code):
        self.code = code
        self.end.send(b"!")

    def done(self):
        self.ended.close()
        self.end.close()


@pytest.fixture
def make(tmp_path):
    made = []

    def prepare(api=None, files=None, **more):
        api = api or FakeApi()
        made.append(api)
        files = files or FakeFiles()
        values = {
            "mode": Mode.WORKSPACE_WRITE, "workspace": WORK, "home": r"C:\home", "cache_dir": str(tmp_path),
            "network": "full",
        }  # fmt: skip
        return Windows(api, files).prepare(SandboxPolicy(**(values | more))), api, files

    yield prepare
    for api in made:
        api.done()


def journals(tmp_path):
    folder = tmp_path / "windows"
    return sorted(folder.iterdir()) if folder.exists() else []


def spawn(confinement, *argv, env=ENV):
    return confinement.spawn(Command(argv, WORK, confinement.environment(env)), Stdio(-1, -1, -1))


def run(confinement, *argv):
    process = spawn(confinement, *argv)
    process.release()
    outcome = process.wait()
    process.close()
    return outcome


def test_the_calls_in_their_order(make, tmp_path):
    confinement, api, files = make()
    process = spawn(confinement, "make", "all")
    assert len(journals(tmp_path)) == 1
    names = [name for name in api.names() if name not in ("add_entry", "set_label", "label", "started_at", "close")]
    assert names[:8] == [
        "create_job", "logon_sid", "restricted_token", "set_default_dacl", "set_integrity",
        "inheritable", "inheritable", "inheritable",
    ]  # fmt: skip
    assert names[8:] in (["create_suspended", "assign"], ["create_suspended", "assign", "wait"])
    calls = {call[0]: call[1:] for call in api.calls}
    sid = capability_sid(WORK)
    assert calls["restricted_token"] == (0x1 | 0x4 | 0x8, (sid, "S-1-1-0", "S-1-5-5-0-7"))
    assert calls["set_integrity"][1] == "S-1-16-4096"
    assert calls["create_job"] == (0x2400, 0xFF)
    token, program, line, cwd, block, _ = calls["create_suspended"]
    assert (program, line, cwd) == (r"C:\tools\make.exe", r"C:\tools\make.exe all", WORK)
    assert token is not None
    assert "TEMP=C:\\temp\\0\0TMP=C:\\temp\\0\0\0" in block
    assert (WORK, sid) in api.entries and api.labels[WORK] == LOW_LABEL
    api.code = 3
    process.release()
    assert process.wait().exit_code == 3
    process.close()
    assert api.entries == {} and not any(api.labels.values())
    assert files.temporary == [None]
    assert api.open == set()
    assert journals(tmp_path) == []
    assert rf"{WORK}\.bashrc" in files.put_back_asked[0]


def test_it_is_written_down_before_it_is_changed(make, tmp_path):
    api = FakeApi()
    seen = []

    def look_at_the_journal(*_):
        (journal,) = journals(tmp_path)
        seen.append(json.loads(journal.read_text()))

    api._add_entry = look_at_the_journal
    confinement, _, _ = make(api)
    process = spawn(confinement, "make")
    process.kill()
    process.wait()
    process.close()
    assert {WORK, r"C:\temp\0", rf"{WORK}\.git\hooks"} <= set(seen[0]["paths"])
    assert (seen[0]["pid"], seen[0]["started"], seen[0]["sid"]) == (1000, 5, capability_sid(WORK))


def test_what_a_killed_run_has_left_is_undone_by_the_next(make, tmp_path):
    _, api, files = make()
    sid = capability_sid(WORK)
    folder = tmp_path / "windows"
    folder.mkdir()
    left = {
        "pid": 900, "started": 4, "sid": sid, "paths": [WORK, r"D:\gone"], "labels": {WORK: ""},
        "absent": [rf"{WORK}\.vscode", rf"{WORK}\.bashrc"], "temporary": r"C:\temp\0",
    }  # fmt: skip
    (folder / "900-x.json").write_text(json.dumps(left))
    api.entries = {(WORK, sid): [(1, 1, 1)]}
    api.labels = {WORK: LOW_LABEL}
    files.temporary = [r"C:\temp\0"]
    files.tree[paths.key(rf"{WORK}\.vscode")] = "directory"
    other, _, _ = make(api, files)
    assert api.entries == {} and api.labels == {WORK: ""}
    assert files.temporary == [None]
    assert journals(tmp_path) == []
    # it may be the user's own by now, so a person decides
    (notice,) = other.notices
    assert rf"{WORK}\.vscode" in notice


def test_two_runs_in_one_workspace_share_their_entries(make, tmp_path):
    confinement, api, files = make()
    first = spawn(confinement, "make")
    sid = capability_sid(WORK)
    other = FakeApi()
    other.entries, other.labels, other.running = api.entries, api.labels, api.running
    other.pid = 1001
    api.running[1001] = 6
    second = spawn(make(other, files)[0], "make")
    for process, left in ((first, True), (second, False)):
        process.kill()
        process.wait()
        process.close()
        assert ((WORK, sid) in api.entries) is left
        assert api.labels[WORK] == (LOW_LABEL if left else "")
    assert journals(tmp_path) == []


def test_a_journal_that_cannot_be_read_stops_the_run(make, tmp_path):
    folder = tmp_path / "windows"
    folder.mkdir()
    (folder / "x.json").write_text("{")
    with pytest.raises(SandboxUnavailable, match=r"x\.json"):
        make()


def test_a_number_used_again_is_not_the_process_that_was(make, tmp_path):
    folder = tmp_path / "windows"
    folder.mkdir()
    left = {"pid": 1000, "started": 4, "sid": "S-1-2", "paths": [], "labels": {}, "absent": [], "temporary": ""}
    (folder / "x.json").write_text(json.dumps(left))
    make()
    assert journals(tmp_path) == []


@pytest.mark.parametrize("number", [5, 740, 1312, 1326, 1909])
@pytest.mark.parametrize("call", ["create_suspended", "restricted_token", "set_integrity", "create_job", "assign"])
def test_a_set_up_that_fails_runs_nothing_and_leaves_nothing(make, tmp_path, call, number):
    """P-PL-05."""
    confinement, api, files = make(FakeApi({call: number}))
    if call == "create_suspended":
        process = spawn(confinement, "make")
        outcome = process.wait()
        process.close()
        assert outcome.exit_code == (126 if number == 740 else 125)
        said = outcome.failure.sentence
    else:
        with pytest.raises(SandboxUnavailable) as raised:
            spawn(confinement, "make")
        said = raised.value.sentence
    assert f"error {number}" in said and len(said) > 60
    assert "resume" not in api.names()
    if call == "assign":
        assert "terminate" in api.names()
    assert api.open == set()
    assert api.entries == {} and not any(api.labels.values())
    assert journals(tmp_path) == []
    assert files.temporary == [None]


def test_entries_that_cannot_be_made_are_taken_back(make, tmp_path):
    api = FakeApi({"set_label": 5})
    confinement, _, _ = make(api)
    api.failing = {"set_label": 2}  # and undoing finds the folder gone
    with pytest.raises(SandboxUnavailable):
        spawn(confinement, "make")
    assert api.entries == {}
    assert "create_job" not in api.names()
    assert journals(tmp_path) == []


def test_entries_that_cannot_be_removed_are_tried_again_by_the_next_run(make, tmp_path):
    confinement, api, files = make()
    process = spawn(confinement, "make")
    api.failing = {"remove_entries": 5}
    process.kill()
    outcome = process.wait()
    process.close()
    assert (outcome.exit_code, outcome.failure.kind) == (125, "sandbox")
    assert len(journals(tmp_path)) == 1
    api.failing = {}
    api.running = {1000: 9}  # another process
    make(api, files)
    assert api.entries == {} and journals(tmp_path) == []


def test_killing_ends_the_job(make):
    confinement, _, _ = make()
    process = spawn(confinement, "make")
    process.kill()
    poll = select.poll()
    poll.register(process.fileno(), select.POLLIN)
    assert poll.poll(20000)
    outcome = process.wait()
    assert (outcome.exit_code, outcome.signal) == (137, 9)
    process.close()
    process.close()
    process.kill()  # afterwards: nothing


def test_a_signal_is_ctrl_break_and_without_a_console_the_end(make):
    confinement, api, _ = make()
    process = spawn(confinement, "make")
    process.signal(2)
    assert ("interrupt", 2000) in api.calls
    api.failing = {"interrupt": 6}
    process.signal(15)
    assert process.wait().exit_code == 137
    process.close()


def test_what_cannot_start_is_an_outcome(make, tmp_path):
    """P-PL-05: a shell found through an alias of the store."""
    confinement, api, _ = make()
    for name, code, word in (("nothing", 127, "not found"), ("pwsh", 126, "Microsoft Store")):
        process = spawn(confinement, name)
        outcome = process.wait()
        process.close()
        assert (outcome.exit_code, word in outcome.failure.sentence) == (code, True)
    assert "create_job" not in api.names() and journals(tmp_path) == []
    confinement.close()


def test_without_a_boundary_only_the_job_is_left(make, tmp_path):
    confinement, api, files = make(mode=Mode.DANGER_FULL_ACCESS)
    outcome = run(confinement, "make")
    assert outcome.exit_code == 0
    calls = {call[0]: call[1:] for call in api.calls}
    assert calls["create_suspended"][0] is None
    assert "restricted_token" not in calls and "add_entry" not in calls
    assert calls["create_job"] == (0x2400, 0)
    assert files.temporary == [] and journals(tmp_path) == []


@pytest.mark.parametrize(
    ("mode", "network", "layers"),
    [
        (Mode.WORKSPACE_WRITE, "full", ("kernel", "none", "kernel", "none")),
        (Mode.READ_ONLY, "off", ("kernel", "env-only", "kernel", "none")),
        (Mode.DANGER_FULL_ACCESS, "full", ("none", "none", "none", "none")),
        (Mode.UNCONFINED, "full", ("none", "none", "none", "none")),
    ],
)
def test_what_holds(make, mode, network, layers):
    confinement, _, _ = make(mode=mode, network=network, require="best-effort")
    assert tuple(confinement.enforcement) == layers
    assert tuple(enforcement_of(SandboxPolicy(mode, WORK, "", "", network))) == layers


def test_the_network_is_refused_unless_best_effort_is_enough(make):
    with pytest.raises(SandboxUnavailable, match="network cannot be held"):
        make(network="proxied")
    confinement, _, _ = make(network="proxied", require="best-effort")
    assert "variables" in confinement.notices[0]
    url = confinement.proxy_url()
    assert url.startswith("http://localhost:") and confinement.proxy_url() == url
    with socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1])), timeout=20):
        pass
    confinement.close()


def test_what_windows_does_not_have_is_refused(make):
    with pytest.raises(SandboxUnavailable, match="limits of a run: memory"):
        make(limits=Limits(memory=1 << 30))
    with pytest.raises(SandboxUnavailable, match="another user"):
        make(user=Identity("ada", 1000, 1000, ()))


def test_a_rule_that_cannot_hold_is_refused_before_anything_runs(make):
    with pytest.raises(UnenforceableRule):
        make(deny_read=("x",))


@pytest.mark.skipif(os.name == "nt", reason="there they are")
def test_without_windows_there_are_no_calls(tmp_path):
    with pytest.raises(OSError, match="no Windows libraries"):
        WindowsApi()
    with pytest.raises(SandboxUnavailable, match="needs Windows"):
        Windows(files=FakeFiles()).prepare(
            SandboxPolicy(Mode.WORKSPACE_WRITE, WORK, r"C:\home", str(tmp_path), network="full")
        )


def test_refusals_that_cannot_be_explained_are_said_to_be_so(make):
    confinement, _, _ = make(explain=True)
    assert "explain-denials" in confinement.notices[0]

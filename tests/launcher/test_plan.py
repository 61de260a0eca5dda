"""The plan a start sends: what goes where, within bubblewrap's limit, and its line of JSON."""

import json
import os
import sys

import pytest

from doorward.launcher.bubblewrap import MAX_ARGUMENTS, Bubblewrap
from doorward.launcher.interface import Command, SandboxUnavailable, Stdio
from doorward.launcher.launch import Plan, plan_from
from doorward.launcher.mounts import Entry, Kind, Origin, plan_mounts
from doorward.launcher.plan import make_plan
from doorward.launcher.survey import Survey
from doorward.launcher.watch import Watch

NONE = Stdio(-1, -1, -1)
BWRAP = Bubblewrap("/usr/bin/bwrap", (0, 8, 0), False)


def survey(hidden=0, shown=0):
    entries = [Entry("/", Kind.READ), Entry("/w", Kind.WRITE, Origin.EXACT)]
    entries += [Entry(f"/w/h{n}", Kind.HIDDEN, Origin.EXACT, directory=n % 2 == 0) for n in range(hidden)]
    entries += [Entry(f"/w/r{n}", Kind.READ, Origin.EXACT) for n in range(shown)]
    return Survey(plan_mounts(entries), (Watch("absent", "/w", ".codex"),))


def plan(tmp_path, found, argv=("true",), env=None, stdio=NONE):
    command = Command(tuple(argv), "/w", env or {})
    return make_plan(BWRAP, found, command, stdio, str(tmp_path / "cache"), user=True, limited=True)


def test_masks_are_beside_the_arguments(tmp_path):
    made = plan(tmp_path, survey(hidden=3))
    cache = os.path.realpath(tmp_path / "cache")
    assert made.masks == (
        (f"{cache}/hidden-file", ("/w/h1",)),
        (f"{cache}/hidden-directory", ("/w/h0", "/w/h2")),
    )
    assert f"{cache}/hidden-file" not in made.arguments
    assert f"{cache}/hidden-directory" not in made.arguments


def test_without_anything_hidden_no_mask_is_made(tmp_path):
    made = plan(tmp_path, survey())
    assert made.masks == ()
    assert not (tmp_path / "cache").exists()


def test_three_thousand_masks_take_no_argument(tmp_path):
    """P-PF-02."""
    made = plan(tmp_path, survey(hidden=3100))
    assert len(made.arguments) < 100
    assert sum(len(targets) for _, targets in made.masks) == 3100


def test_too_many_mounts_of_another_kind_name_their_number(tmp_path):
    """P-PF-02."""
    with pytest.raises(SandboxUnavailable, match="3102 mounts"):
        plan(tmp_path, survey(shown=3100))


def test_the_environment_travels_in_the_arguments(tmp_path):
    made = plan(tmp_path, survey(), env={"A": "1", "B": ""})
    at = made.arguments.index("--setenv")
    assert made.arguments[at : at + 6] == ("--setenv", "A", "1", "--setenv", "B", "")


def test_a_long_command_is_carried(tmp_path):
    """P-EV-16."""
    made = plan(tmp_path, survey(), argv=["x"] * 20_000, env={"A": "1"})
    assert made.carrier[0] == os.path.realpath(sys.executable)
    assert "--setenv" not in made.arguments
    assert '"A": "1"' in made.carried
    assert len(made.arguments) + len(made.carrier) < MAX_ARGUMENTS


@pytest.mark.parametrize("count", [8_900, 8_950, 8_999, 9_100])
def test_whatever_the_numbers_the_limit_is_kept(tmp_path, count):
    made = plan(tmp_path, survey(hidden=20), argv=["x"] * count)
    on_the_line = len(made.carrier) + 1 if made.carrier else count
    assert 12 + len(made.arguments) + on_the_line <= MAX_ARGUMENTS


def test_no_interpreter_inside_means_no_carrying(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    found = survey()._replace(plan=plan_mounts([Entry("/", Kind.READ), Entry("/usr", Kind.HIDDEN)]))
    with pytest.raises(SandboxUnavailable, match="more arguments"):
        plan(tmp_path, found, argv=["x"] * 20_000)


def test_without_a_sandbox_there_is_nothing_to_mount(tmp_path):
    command = Command(("true",), "/", {})
    made = make_plan(None, survey(hidden=1), command, NONE, str(tmp_path), user=False, limited=False)
    assert made == Plan(watched=(Watch("absent", "/w", ".codex"),))


def test_a_terminal_has_the_shims_session(tmp_path):
    assert "--new-session" in plan(tmp_path, survey()).arguments
    assert "--new-session" not in plan(tmp_path, survey(), stdio=Stdio(-1, -1, -1, 0)).arguments


def test_a_file_as_standard_input_is_held(tmp_path):
    (tmp_path / "f").write_text("")
    handle = os.open(tmp_path / "f", os.O_RDONLY)
    try:
        assert plan(tmp_path, survey(), stdio=Stdio(handle, -1, -1)).held == ((0, str(tmp_path / "f")),)
    finally:
        os.close(handle)


def test_through_json_and_back(tmp_path):
    made = plan(tmp_path, survey(hidden=2), argv=["a\udcff"], env={"V": "\udcfe\n"})
    assert plan_from(json.loads(json.dumps(made))) == made
    assert isinstance(plan_from(json.loads(json.dumps(made))).watched[0], Watch)
    holding = made._replace(held=((0, "/a\udcff"),))
    assert plan_from(json.loads(json.dumps(holding))) == holding

"""`on-failure`: nobody is asked before; what was refused is offered once, afterwards, for one more run."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CODE = "curl -sS -o /dev/null -w '%{http_code} ' "


def test_the_command_runs_again_with_exactly_that(doorward: Any, origin: Any, observation: Any) -> None:
    script = f"{CODE} {origin.url()}; {CODE} http://other.test:{origin.port}/"
    process = doorward.start("run", "--json", "-a", "on-failure", *origin.pin(), "--", "sh", "-c", script)
    asked = doorward.question()
    hosts = [f"--allow b.test:{origin.port}", f"--allow other.test:{origin.port}"]
    assert (asked["kind"], sorted(asked["again"])) == ("shell", hosts)
    assert doorward("approvals", "allow", "--session", asked["id"]).status == 2, "for one run alone"
    doorward.answer("allow", asked["id"])
    seen = observation(process)
    # other.test is allowed now and has no address; that is no refusal
    assert (seen["turn"], seen["output"], seen["refusals"]) == (2, "200 502 ", [])
    lines = doorward.lines(seen["session"])
    assert [line["payload"]["turn"] for line in lines if line["type"] == "observation"] == [1, 2]
    pair = [line["payload"] for line in lines if str(line["payload"].get("type")).startswith("approval_")]
    assert [each["turn"] for each in pair] == [1, 1] and pair[1]["answer"] == "yes"


def test_a_no_leaves_it_at_that(doorward: Any, origin: Any, observation: Any) -> None:
    process = doorward.start("run", "--json", "-a", "on-failure", *origin.pin(), "--", "sh", "-c", CODE + origin.url())
    doorward.answer("deny", doorward.question()["id"])
    seen = observation(process)
    assert (seen["turn"], seen["output"], len(seen["refusals"])) == (1, "403 ", 1)


def test_a_write_that_was_refused_can_be_granted(doorward: Any, observation: Any) -> None:
    # not below /tmp, of which the sandbox has its own
    with tempfile.TemporaryDirectory(dir="/var/tmp") as outside:
        process = doorward.start("run", "--json", "-a", "on-failure", "--", "tee", f"{outside}/f")
        asked = doorward.question()
        assert asked["again"] == [f"--add-dir {outside}"]
        doorward.answer("allow", asked["id"])
        assert observation(process)["exit_code"] == 0 and Path(outside, "f").exists()


def test_without_anybody_it_is_what_it_was(doorward: Any, origin: Any, observation: Any) -> None:
    process = doorward.start(
        *("run", "--json", "-a", "on-failure", "-c", "approvals.queue=false", *origin.pin(), "--", "sh", "-c"),
        CODE + origin.url(),
    )
    seen = observation(process)
    assert (seen["turn"], seen["output"]) == (1, "403 ") and doorward.quiet()


def test_the_grant_ends_with_its_run(doorward: Any, origin: Any) -> None:
    doorward.configure('network.hosts = {"b.test" = "127.0.0.1"}\n')
    program = (
        "import doorward\n"
        "with doorward.open_session(approval='on-failure') as session:\n"
        "    for _ in range(2):\n"
        f"        seen = session.exec(['sh', '-c', {CODE + origin.url()!r}])\n"
        "        print(seen.turn, seen.output, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", program], cwd=doorward.workspace, env=doorward.env, stdout=subprocess.PIPE
    )
    doorward.answer("allow", doorward.question()["id"])
    doorward.answer("deny", doorward.question()["id"])
    out, _ = process.communicate(timeout=60)
    assert out.split() == [b"2", b"200", b"3", b"403"]

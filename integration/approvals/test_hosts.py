"""A host that no rule names: asked about while the command waits, answered from another process."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from typing import Any

CURL = "curl -sS -o /dev/null -w '%{http_code} ' "


def test_a_yes_opens_that_place_once(doorward: Any, origin: Any, observation: Any) -> None:
    script = f"{CURL} {origin.url()}; {CURL} {origin.url()}"
    process = doorward.start("run", "--json", *origin.pin(), "--", "sh", "-c", script)
    asked = doorward.question()
    (row,) = doorward.waiting()
    assert list(row) == ["id", "kind", "argv", "cwd", "gate", "asked_at", "host", "port", "protocol"]
    assert (row["kind"], row["gate"], row["host"], row["port"]) == ("network", "network", "b.test", origin.port)
    assert row["argv"] == ["sh", "-c", script]
    doorward.answer("allow", asked["id"])
    again = doorward.question()
    assert again["id"] != asked["id"]
    doorward.answer("deny", again["id"])
    seen = observation(process)
    assert seen["output"] == "200 403 "
    (refusal,) = seen["refusals"]
    assert (refusal["reason"], refusal["source"], refusal["hint"]) == (
        "not_answered",
        "decider",
        f"--allow b.test:{origin.port}",
    )
    records = [line["payload"] for line in doorward.lines(seen["session"])]
    pairs = [(each["id"], each.get("answer")) for each in records if str(each.get("type")).startswith("approval_")]
    assert pairs == [(asked["id"], None), (asked["id"], "yes"), (again["id"], None), (again["id"], "no")]
    ordered = [each.get("type") for each in records]
    assert ordered.index("approval_answered") < ordered.index("connection_opened")


def test_a_no_holds_for_the_run(doorward: Any, origin: Any, observation: Any) -> None:
    script = f"for n in 1 2 3; do {CURL} {origin.url()}; done"
    process = doorward.start("run", "--json", *origin.pin(), "--", "sh", "-c", script)
    doorward.answer("deny", doorward.question()["id"])
    assert observation(process)["output"] == "403 403 403 " and doorward.quiet()


def test_for_the_session_means_its_later_commands_too(doorward: Any, origin: Any) -> None:
    doorward.configure('network.hosts = {"b.test" = "127.0.0.1"}\n')
    program = (
        "import doorward\n"
        "with doorward.open_session() as session:\n"
        "    for _ in range(3):\n"
        f"        print(session.exec(['sh', '-c', {CURL + origin.url()!r}]).output, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", program], cwd=doorward.workspace, env=doorward.env, stdout=subprocess.PIPE
    )
    doorward.answer("allow", "--session", doorward.question()["id"])
    out, _ = process.communicate(timeout=60)
    assert out.split() == [b"200"] * 3 and doorward.quiet()


def test_always_writes_the_network_rule(doorward: Any, origin: Any, observation: Any) -> None:
    process = doorward.start("run", "--json", *origin.pin(), "--", "sh", "-c", CURL + origin.url())
    asked = doorward.question()
    assert asked["rule"] == f"b.test:{origin.port}"
    done = doorward("approvals", "allow", "--always", asked["id"])
    assert done.status == 0 and asked["rule"] in done.err
    assert observation(process)["output"] == "200 "
    kept = tomllib.loads((doorward.home / "config.toml").read_text())
    assert kept["network"]["allow"] == [asked["rule"]] and kept["approvals"]["queue"] is True
    later = doorward.start("run", "--json", *origin.pin(), "--", "sh", "-c", CURL + origin.url())
    assert observation(later)["output"] == "200 "
    assert doorward.quiet()


def test_a_client_that_leaves_takes_its_question_back(doorward: Any, origin: Any, observation: Any) -> None:
    process = doorward.start(
        "run", "--json", *origin.pin(), "--", "sh", "-c", f"curl -sS -m 1 {origin.url()}; read line <go; true"
    )
    asked = doorward.question()
    go = doorward.workspace / "go"
    # the client's own limit ends its wait; the run goes on
    while doorward.waiting():
        assert process.poll() is None
    assert doorward("approvals", "allow", asked["id"]).status == 2
    go.write_text("\n")
    seen = observation(process)
    records = [line["payload"] for line in doorward.lines(seen["session"])]
    assert [each["answer"] for each in records if each.get("type") == "approval_answered"] == ["nobody"]


def test_nobody_in_time_is_a_refusal(doorward: Any, origin: Any, observation: Any) -> None:
    process = doorward.start(
        "run", "--json", "-c", "approvals.timeout=0.3", *origin.pin(), "--", "sh", "-c", CURL + origin.url()
    )
    doorward.question()
    seen = observation(process)
    assert seen["output"] == "403 " and "nobody answered" in seen["refusals"][0]["message"]
    assert doorward.waiting() == []


def test_under_never_nobody_is_asked(doorward: Any, origin: Any, observation: Any) -> None:
    process = doorward.start("run", "--json", "-a", "never", *origin.pin(), "--", "sh", "-c", CURL + origin.url())
    seen = observation(process)
    assert seen["output"] == "403 " and seen["refusals"][0]["reason"] == "not_allowed"
    assert doorward.quiet()


def test_a_denied_host_is_denied_and_not_asked_about(doorward: Any, origin: Any, observation: Any) -> None:
    process = doorward.start(
        "run", "--json", "--deny", "b.test", *origin.pin(), "--", "sh", "-c", CURL + origin.url()
    )
    assert observation(process)["output"] == "403 " and doorward.quiet()


def test_the_allowlist_says_that_it_would_ask(doorward: Any) -> None:
    assert doorward("allowlist", "test", "b.test").status == 10
    assert doorward("allowlist", "test", "-c", "approvals.queue=false", "b.test").status == 20


def test_a_program_that_knows_no_proxy_waits_for_the_answer_too(doorward: Any, origin: Any, observation: Any) -> None:
    fetch = f"curl -sS --noproxy '*' -o /dev/null -w '%{{http_code}}' {origin.url()}"
    process = doorward.start("run", "--json", *origin.pin(), "--", "sh", "-c", fetch)
    asked = doorward.question()
    assert (asked["host"], asked["port"], asked["protocol"]) == ("b.test", origin.port, "transparent_tcp")
    doorward.answer("allow", asked["id"])
    seen = observation(process)
    assert (seen["output"], seen["refusals"]) == ("200", []) and doorward.quiet()

"""The two lenses: what they see of a turn, and that they notice where the record contradicts itself."""

from __future__ import annotations

from typing import Any

import pytest

from doorward.lenses import Lenses, lenses
from doorward.sessions import items
from doorward.sessions.line import Line
from doorward.sessions.turns import Turn, parts

KERNEL = {"filesystem": "kernel", "network": "kernel", "process": "kernel", "syscalls": "kernel"}
SANDBOX = {"mode": "workspace-write", "workspace": "/work"}


def turn_of(*middle: items.Item, network: str = "proxied", ended: bool = True) -> Turn:
    start = items.turn_start(
        "s", 1, argv=["sh", "-c", "x"], cwd="/work", approval_policy="on-request", sandbox_policy={},
        settings={"network": network, "sandbox": SANDBOX, "rules": {"allow": [], "deny": []}},
    )  # fmt: skip
    end = [items.turn_end("s", 1)] if ended else []
    (turn,) = [part for part in parts(Line(*item) for item in (*start, *middle, *end)) if isinstance(part, Turn)]
    return turn


def verdict(word: str = "allow", gate: str = "approval", effect: str | None = None) -> items.Item:
    reasons = [
        {"gate": "hook-trust", "switch": "kind=shell", "effect": "pass", "sentence": "it is no hook"},
        {"gate": gate, "switch": "some=switch", "effect": effect or word, "sentence": "because of this"},
    ]
    return items.verdict(1, {"verdict": word, "gate": gate, "reasons": reasons}, argv=["sh", "-c", "x"], cwd="/work")


def started(**changes: Any) -> items.Item:
    digest = items.policy_digest({"sandbox": SANDBOX, "bypass": False})
    environment = [{"name": "A", "value": "1"}, {"name": "TOKEN", "fingerprint": "f", "length": 3}]
    given = {"policy_digest": digest, "enforcement": KERNEL, "environment": environment, "fingerprint_key": "k"}
    return items.exec(1, argv=["sh", "-c", "x"], cwd="/work", **{**given, **changes})


def seen(**changes: Any) -> items.Item:
    output = {"head": "hello\n", "tail": "", "omitted": 0, "stdout": 6, "stderr": 0, "blob": None}
    return items.observation(1, **{"exit_code": 0, "output": output, "enforcement": KERNEL, **changes})


def refusal(**body: Any) -> items.Item:
    return items.refusal(1, {"host": "b.test", "port": 80, "message": "b.test:80 is in no allow rule", **body})


def explained(turn: Turn, *, live: bool = False, blob: bool = True) -> Lenses:
    return lenses(turn, has_blob=lambda _: blob, live=live)


def doors(found: Lenses) -> dict[str, tuple[bool | None, str]]:
    return {door.door: (door.could, door.did) for door in found.refusable}


def rebuilt(found: Lenses) -> dict[str, str]:
    return {part.part: part.rebuilt for part in found.replayable}


def contradictions(found: Lenses) -> list[str]:
    return [finding.sentence for finding in found.findings if not finding.agree]


def test_every_door_is_there_in_its_order() -> None:
    found = explained(turn_of(verdict(), started(), seen()))
    assert [door.door for door in found.refusable] == [
        *(f"gate {name}" for name in ("hook-trust", "feature", "policy", "bypass", "sandbox", "approval", "guardian")),
        *("gate trust", "sandbox filesystem", "sandbox process", "sandbox syscalls", "proxy"),
    ]
    assert doors(found)["gate approval"] == (True, "allowed")
    assert doors(found)["gate hook-trust"] == (False, "passed")
    assert doors(found)["proxy"] == (True, "passed")
    assert contradictions(found) == []


def test_a_hook_that_was_asked_is_a_door() -> None:
    found = explained(turn_of(verdict("deny", "hook"), refusal(host=None), seen(refusals=[4], output=None)))
    assert doors(found)["gate hook"] == (True, "refused")


def test_a_gate_that_refused_and_those_after_it() -> None:
    refused = refusal(host=None, gate="policy")
    found = explained(turn_of(verdict("deny", "policy"), refused, seen(refusals=[4], output=None)))
    assert doors(found)["gate policy"] == (True, "refused")
    for after in ("gate approval", "sandbox", "proxy"):
        assert doors(found)[after][1] == "not reached"
    assert rebuilt(found)["environment"] == "no"
    assert contradictions(found) == []


def test_a_connection_that_was_refused() -> None:
    network = items.network(1, {"host": "a.test", "port": 443, "decision": "allow", "rule": "a.test"})
    found = explained(turn_of(verdict(), started(), network, refusal(), refusal(), seen(refusals=[1, 2])))
    proxy = found.refusable[-1]
    assert (proxy.could, proxy.did) == (True, "refused")
    assert "b.test:80 (2 times)" in proxy.why[0]
    assert "a.test:443 was allowed by the rule a.test" in proxy.why[1]
    assert rebuilt(found)["network"] == "in part"


@pytest.mark.parametrize(("network", "did"), [("off", "passed"), ("full", "passed")])
def test_a_proxy_that_was_not_there_could_not_refuse(network: str, did: str) -> None:
    found = explained(turn_of(verdict(), started(), seen(), network=network))
    assert doors(found)["proxy"] == (False, did)


def test_a_write_that_the_kernel_refused_shows_in_the_output() -> None:
    output = {"head": "touch: cannot touch '/etc/x': Read-only file system\n", "tail": "", "omitted": 0}
    found = explained(turn_of(verdict(), started(), seen(exit_code=1, output=output)))
    door = next(door for door in found.refusable if door.door == "sandbox filesystem")
    assert (door.could, door.did) == (True, "refused")
    assert "touch: cannot touch '/etc/x': Read-only file system" in door.why


def test_a_layer_that_nothing_enforces_could_not_refuse() -> None:
    weak = {**KERNEL, "filesystem": "none"}
    found = explained(turn_of(verdict(), started(enforcement=weak), seen(enforcement=weak)))
    assert doors(found)["sandbox filesystem"] == (False, "passed")


def test_what_can_be_rebuilt() -> None:
    found = explained(turn_of(verdict(), started(), seen()))
    assert rebuilt(found) == {
        "command": "yes", "verdict": "yes", "rules": "yes", "environment": "in part", "network": "yes",
        "output": "yes", "input": "no", "files": "no", "outcome": "yes",
    }  # fmt: skip
    sealed = explained(turn_of(verdict(), started(sealed={"key": "k", "box": "b"}), seen()))
    assert rebuilt(sealed)["environment"] == "yes"


@pytest.mark.parametrize(("blob", "answer"), [(True, "yes"), (False, "in part")])
def test_a_long_output_is_whole_while_its_blob_is_there(blob: bool, answer: str) -> None:
    output = {"head": "a", "tail": "b", "omitted": 9, "stdout": 11, "stderr": 0, "blob": {"sha256": "0" * 64}}
    found = explained(turn_of(verdict(), started(), seen(output=output)), blob=blob)
    assert rebuilt(found)["output"] == answer


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ((verdict("deny", "policy"), started(), seen()), "deny, and yet a start"),
        ((verdict(), seen()), "no start is recorded"),
        ((started(), seen()), "no verdict allowed it"),
        ((verdict(), started(), refusal(), seen()), "refused 1 times, and the caller was told of 0"),
        ((verdict(), started(), seen(refusals=[7])), "refused 0 times, and the caller was told of 1"),
        ((verdict(), started(), seen(enforcement={**KERNEL, "network": "none"})), "at the end it was"),
        ((verdict(), started(policy_digest="sha256:other"), seen()), "not that of the recorded one"),
        (
            (verdict(), started(), items.event(1, {"type": "connection_opened", "connection": "1"}), seen()),
            "their end is not recorded",
        ),
    ],
)
def test_a_record_that_contradicts_itself(records: tuple[items.Item, ...], sentence: str) -> None:
    (found,) = contradictions(explained(turn_of(*records)))
    assert sentence in found


def test_a_turn_without_an_end_is_a_contradiction_unless_it_is_live() -> None:
    turn = turn_of(verdict(), started(), ended=False)
    assert any("no end" in sentence for sentence in contradictions(explained(turn)))
    assert contradictions(explained(turn, live=True)) == []


def test_a_turn_of_a_conversation_has_no_doors_and_does_not_fail() -> None:
    lines = [Line("event_msg", {"type": "task_started"}), Line(*items.message("user", "hello"))]
    (turn,) = [part for part in parts(lines) if isinstance(part, Turn)]
    found = explained(turn, live=True)
    assert {did for _, did in doors(found).values()} <= {"unknown", "not reached"}
    assert rebuilt(found)["command"] == "no"


@pytest.mark.parametrize("nonsense", [None, [], "x", 7, {"reasons": "x"}, {"reasons": [None, {"gate": 1}]}])
def test_records_of_a_foreign_shape_do_not_stop_it(nonsense: Any) -> None:
    payload = nonsense if isinstance(nonsense, dict) else {"reasons": nonsense, "action": nonsense}
    observed = {"output": nonsense, "refusals": nonsense, "enforcement": nonsense}
    turn = turn_of(("verdict", payload), ("exec", {"environment": nonsense}), ("observation", observed))
    assert explained(turn).to_json()["turn"] == 1


def test_which_credential_went_where() -> None:
    """By its name, once for each place; never more of it."""
    used = {"type": "credential_used", "credential": "forge", "place": "header", "host": "a.test", "port": 443}
    event = items.event(1, used)
    found = explained(turn_of(verdict(), started(), event, event, seen()))
    (proxy,) = [door for door in found.refusable if door.door == "proxy"]
    said = [why for why in proxy.why if "credential" in why]
    assert said == ["the credential forge was put into requests to a.test:443 (header)"]

"""The payloads and the table of what is kept."""

import json
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.sessions import items
from doorward.sessions.line import Totals
from doorward.start_json import dumps

SESSION = "019ad1d2-0000-7000-8000-000000000001"
CODEX_TYPES = {"session_meta", "turn_context", "response_item", "event_msg", "compacted"}
OUR_TYPES = {"verdict", "exec", "refusal", "network", "observation"}


def everything() -> list[items.Item]:
    return [
        items.session_meta(SESSION, timestamp="t", cwd="/w", name="n"),
        *items.turn_start(
            SESSION, 3, argv=["a", "b c"], cwd="/w", approval_policy="never", sandbox_policy={"type": "read-only"}
        ),
        items.verdict(3, {"verdict": "allow", "gate": "approval", "reasons": []}, argv=["a"], cwd="/w"),
        items.exec(
            3,
            argv=["a"],
            cwd="/w",
            policy_digest="sha256:x",
            enforcement={"filesystem": "kernel"},
            environment=[],
            fingerprint_key="ab",
        ),
        items.network(3, {"host": "a.test"}),
        items.refusal(3, {"status": "blocked"}),
        items.event(3, {"type": "connection_opened"}),
        items.observation(3, exit_code=0),
        items.turn_end(SESSION, 3),
        items.turn_interrupted(SESSION, 3),
        items.message("assistant", "hello", turn=3),
        items.renamed(SESSION, "new"),
        items.compacted("short"),
    ]


def test_every_record_is_in_the_table_and_kept() -> None:
    for type, payload in everything():
        assert items.keeping(type, payload).kept, (type, payload)
        assert items.keeping(type, payload) in [*items.RECORDS.values(), *items.EVENTS.values()]
    assert set(items.RECORDS) == CODEX_TYPES | OUR_TYPES


def test_every_record_of_a_turn_says_which() -> None:
    for type, payload in everything():
        if (type, payload.get("type")) not in {
            ("session_meta", None),
            ("event_msg", "thread_name_updated"),
            ("compacted", None),
        }:
            assert payload["turn"] == 3, type


@pytest.mark.parametrize(
    "kind",
    ["agent_message_delta", "exec_command_output_delta", "exec_approval_request", "warning", "mcp_startup_update"],
)
def test_what_is_dropped(kind: str) -> None:
    assert not items.keeping("event_msg", {"type": kind}).kept


def test_what_is_not_known_is_kept() -> None:
    assert items.keeping("of_the_future", {}).kept
    assert items.keeping("event_msg", {"type": "of_the_future"}).kept
    assert items.keeping("event_msg", {}).kept


def test_totals_follow_the_boundaries() -> None:
    totals = Totals()
    for kind, expected in [
        ("task_started", Totals(1, True)),
        ("user_message", Totals(1, True)),
        ("turn_complete", Totals(1, False)),
        ("turn_started", Totals(2, True)),
        ("turn_aborted", Totals(2, False)),
    ]:
        totals = items.advanced(totals, "event_msg", {"type": kind})
        assert totals == expected
    assert items.advanced(totals, "event_msg", {"type": "task_started", "turn": 9}) == Totals(9, True)
    assert items.advanced(totals, "refusal", {}) == Totals(2, False, 1)
    assert items.advanced(totals, "event_msg", {"type": "thread_name_updated", "thread_name": "x"}).name == "x"
    assert items.advanced(totals, "response_item", {"type": "task_started"}) == totals


def test_the_keys_of_a_refusal_keep_their_order() -> None:
    body = dict.fromkeys(("status", "host", "port", "protocol", "method", "decision", "reason"))
    assert list(items.refusal(1, body)[1]) == ["turn", *body]


def test_a_turn_says_what_codex_wants() -> None:
    """Codex lists a session by its first `user_message`, and reads a turn by these keys."""
    (_, started), (kind, context), (_, said) = items.turn_start(
        SESSION,
        1,
        argv=["npm", "test"],
        cwd="/w",
        approval_policy="on-request",
        sandbox_policy=items.codex_sandbox_policy("workspace-write", writable_roots=["/w"]),
        settings={"network": "proxied"},
        version="1",
    )
    assert (started["type"], started["turn_id"]) == ("task_started", f"{SESSION}#1")
    assert kind == "turn_context"
    assert {"turn_id", "cwd", "approval_policy", "sandbox_policy", "model", "summary"} <= set(context)
    assert context["sandbox_policy"]["type"] == "workspace-write"
    assert context["doorward"] == {"version": "1", "format": 1, "network": "proxied"}
    assert (said["type"], said["message"]) == ("user_message", "npm test")


def test_modes_as_codex_writes_them() -> None:
    assert items.codex_sandbox_policy("read-only") == {"type": "read-only"}
    assert items.codex_sandbox_policy("danger-full-access") == {"type": "danger-full-access"}


def test_network_targets_are_written_as_rules_are() -> None:
    _, payload = items.verdict(1, {}, argv=[], cwd="/", network_to=[("a.test", 443), ("::1", 80)])
    assert payload["action"]["network_to"] == ["a.test:443", "[::1]:80"]


def test_a_digest_does_not_depend_on_order() -> None:
    assert items.policy_digest({"a": 1, "b": [2]}) == items.policy_digest({"b": [2], "a": 1})
    assert items.policy_digest({"a": 1}) != items.policy_digest({"a": 2})
    assert items.policy_digest({"a": "\udcff"}).startswith("sha256:")


@given(st.lists(st.text(st.characters(exclude_characters="\0"), max_size=10), min_size=1, max_size=4))
def test_a_command_line_can_be_typed(argv: list[str]) -> None:
    assert shlex.split(items.command_line(argv)) == argv
    assert items.command_line(argv) == shlex.join(argv)


def test_all_payloads_are_json() -> None:
    for _, payload in everything():
        assert json.loads(json.dumps(payload)) == payload


@pytest.mark.parametrize("kind", ["network", "refusal", "event"])
@pytest.mark.parametrize("payload", [{"type": "published", "port": 1}, {"é": [1, None]}, {}, {"turn": 9, "type": "x"}])
def test_an_item_of_the_proxy_is_encoded_as_its_builder_has_it(kind: str, payload: dict[str, Any]) -> None:
    build = {"network": items.network, "refusal": items.refusal, "event": items.event}[kind]
    type, wanted = build(3, payload)
    for text in ("", dumps(payload)):
        made = items.of_proxy(3, kind, payload, text)
        assert made[0] == type
        assert made[2] == dumps(wanted)
        assert items.keeping(made[0], made[1]) == items.keeping(type, wanted)


def test_what_the_proxy_wrote_stays_as_it_wrote_it() -> None:
    assert items.of_proxy(3, "network", {"a": 1}, '{"a": 1.0}')[2] == '{"turn":3,"a": 1.0}'


@pytest.mark.parametrize("kind", ["network", "refusal"])
def test_an_item_that_is_not_decoded_gets_its_turn_all_the_same(kind: str) -> None:
    made = items.of_proxy(3, kind, None, '{"a":1}')
    assert made == (kind, {}, '{"turn":3,"a":1}')
    assert items.keeping(*made[:2]).kept

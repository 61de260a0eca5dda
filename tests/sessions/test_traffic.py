"""What sessions reached and were refused, put together place by place."""

from typing import Any

from doorward.sessions.damage import Damage
from doorward.sessions.line import Line
from doorward.sessions.traffic import Place, report


def network(
    host: str, port: int = 443, decision: str = "allow", when: str = "2026-01-02T03:04:05Z", **more: Any
) -> Line:
    payload = {"host": host, "port": port, "decision": decision, "reason": "allowed", "rule": None, **more}
    return Line("network", payload, when)


def test_connections_to_one_place_are_one_row() -> None:
    lines = [
        network("a.test", bytes_up=1, bytes_down=10, requests=2, method="GET", process={"executable": "/usr/bin/curl"}),
        network("a.test", bytes_up=2, bytes_down=20, requests=1, method="POST", when="2026-01-01T00:00:00Z"),
    ]
    (row,) = report([("s1", lines), ("s2", [network("a.test", when="2026-02-01T00:00:00Z", error="reset")])]).rows
    assert row.place == Place("a.test", 443, "allow", "allowed", None, False)
    assert (row.connections, row.requests, row.bytes_up, row.bytes_down, row.failed) == (3, 3, 3, 30, 1)
    assert (row.first_seen, row.last_seen) == ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")
    assert ([*row.sessions], [*row.processes], [*row.methods]) == (["s1", "s2"], ["curl"], ["GET", "POST"])


def test_refused_come_with_their_hint_and_most_often_first() -> None:
    refusal = Line("refusal", {"host": "b.test", "port": 443, "hint": "--allow b.test"})
    lines = [network("a.test", decision="deny", reason="denied"), *[network("b.test", decision="deny")] * 2, refusal]
    assert [(row.place.host, row.hint) for row in report([("s", lines)]).refused()] == [
        ("b.test", "--allow b.test"), ("a.test", "")]  # fmt: skip


def test_what_was_only_watched_counts_as_refused_with_the_reason_it_would_have_had() -> None:
    lines = [network("a.test", reason="not_allowed")]
    seen = report([("s", lines)])
    assert seen.observing and seen.refused()[0].place.reason == "not_allowed" and not seen.reached()


def test_refusals_of_commands_and_the_weakest_enforcement() -> None:
    lines: list[Line | Damage] = [
        Line("refusal", {"gate": "policy", "reason": "forbidden"}),
        Line("refusal", {"gate": "policy", "reason": "forbidden"}),
        Line("exec", {"enforcement": {"filesystem": "kernel", "network": "env-only"}}),
        Line("exec", {"enforcement": {"filesystem": "none", "network": "kernel"}}),
        Line("observation", {"exit_code": 0}),
        Line("observation", {"exit_code": 126}),
    ]
    seen = report([("s", lines)])
    assert [(each["reason"], count) for each, count in seen.other] == [("forbidden", 2)]
    assert seen.weakest == {"filesystem": "none", "network": "env-only"}
    assert (seen.turns, seen.failed) == (2, 1)


def test_records_of_another_shape_are_passed_over() -> None:
    lines = [Line("network", {"host": 3}), Line("network", {}), network("a.test", process="curl", requests="many")]
    (row,) = report([("s", lines)]).rows
    assert (row.requests, [*row.processes]) == (0, [])


def test_a_name_that_was_looked_up_is_no_place_and_one_that_was_refused_is() -> None:
    lines = [
        network("a.test", 53, protocol="dns", method="A"),
        network("w.test", 53, protocol="dns", method="A", reason="not_allowed"),
        network("a.test", 53, "deny", protocol="dns", method="HTTPS", reason="not_allowed"),
        network("b.test", 53, "deny", protocol="dns", method="A", reason="not_allowed"),
        network("c.test", 123, protocol="udp", method=""),
    ]
    places = [row.place for row in report([("s", lines)]).rows]
    assert [(place.host, place.protocol) for place in places] == [("b.test", "dns"), ("c.test", "udp")]

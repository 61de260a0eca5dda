"""Counts from records."""

from __future__ import annotations

from typing import Any

from doorward.door_metrics import DoorMetrics


def opened(connection: str = "1", protocol: str = "https_connect") -> dict[str, Any]:
    payload = {"type": "connection_opened", "connection": connection, "decision": "allow", "reason": "allowed"}
    return {"type": "event", "payload": {**payload, "protocol": protocol}}


def closed(connection: str = "1", decision: str = "allow", reason: str = "allowed", **more: Any) -> dict[str, Any]:
    payload = {
        "connection": connection, "decision": decision, "reason": reason, "protocol": "https_connect",
        "bytes_up": 10, "bytes_down": 20, "duration_s": 0.2, "requests": 1,
    }  # fmt: skip
    return {"type": "network", "payload": {**payload, **more}}


def samples(metrics: DoorMetrics) -> dict[str, float]:
    lines = [line for line in metrics.render(workers=2, stale=False).splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0].removeprefix("doorward_"): float(line.rpartition(" ")[2]) for line in lines}


def test_an_allowed_connection_from_start_to_end() -> None:
    metrics = DoorMetrics()
    metrics.take(1, opened())
    now = samples(metrics)
    assert now["open_tunnels"] == 1
    assert now['decisions_total{decision="allow",reason="allowed"}'] == 1
    assert now["connection_duration_seconds_count"] == 0
    metrics.take(1, closed())
    now = samples(metrics)
    assert now["open_tunnels"] == 0
    assert now['decisions_total{decision="allow",reason="allowed"}'] == 1, "decided once, counted once"
    assert now['connections_total{protocol="https_connect",decision="allow"}'] == 1
    assert (now['bytes_total{direction="up"}'], now['bytes_total{direction="down"}']) == (10, 20)
    assert now['connection_duration_seconds_bucket{le="0.05"}'] == 0
    assert now['connection_duration_seconds_bucket{le="0.25"}'] == 1
    assert now['connection_duration_seconds_bucket{le="+Inf"}'] == 1


def test_a_plain_connection_is_open_and_no_tunnel() -> None:
    metrics = DoorMetrics()
    metrics.take(1, opened(protocol="http"))
    now = samples(metrics)
    assert now["open_tunnels"] == 0
    assert now['open_connections{protocol="http"}'] == 1


def test_a_refusal_counts_by_its_reason_and_lasts_not_at_all() -> None:
    metrics = DoorMetrics()
    metrics.take(1, closed(decision="deny", reason="denied"))
    metrics.take(1, {"type": "refusal", "payload": {"reason": "denied"}})
    now = samples(metrics)
    assert now['decisions_total{decision="deny",reason="denied"}'] == 1
    assert now["connection_duration_seconds_count"] == 0


def test_a_tunnel_that_was_opened_and_then_refused_is_two_decisions() -> None:
    metrics = DoorMetrics()
    metrics.take(1, opened())
    metrics.take(1, closed(decision="deny", reason="name_mismatch"))
    now = samples(metrics)
    assert now['decisions_total{decision="allow",reason="allowed"}'] == 1
    assert now['decisions_total{decision="deny",reason="name_mismatch"}'] == 1
    assert now["open_tunnels"] == 0


def test_an_allowed_one_that_got_nowhere() -> None:
    metrics = DoorMetrics()
    metrics.take(1, closed(error="dns-failed: a.test does not resolve."))
    metrics.take(1, closed("2", error="idle for 3 s"))
    now = samples(metrics)
    assert now['unreachable_total{class="dns-failed"}'] == 1
    assert [name for name in now if name.startswith("unreachable")] == ['unreachable_total{class="dns-failed"}']
    assert now['decisions_total{decision="allow",reason="allowed"}'] == 2


def test_workers_are_told_apart_and_a_dead_one_has_nothing_open() -> None:
    metrics = DoorMetrics()
    metrics.take(1, opened())
    metrics.take(2, opened())
    assert samples(metrics)["open_tunnels"] == 2
    metrics.worker_gone(1)
    assert samples(metrics)["open_tunnels"] == 1


def test_no_label_holds_what_a_client_said() -> None:
    metrics = DoorMetrics()
    metrics.take(1, closed(decision="deny", reason="not_allowed", host='evil"}.test'))
    assert "evil" not in metrics.render(workers=1, stale=True)


def test_every_family_is_told_what_it_is() -> None:
    text = DoorMetrics().render(workers=1, stale=True)
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            assert f"# HELP {line.split()[2]} " in text
    assert "doorward_configuration_stale 1\n" in text
    assert text.endswith("\n")

"""Counts what the door did, from its records, and writes the counts as Prometheus reads them.

Labels hold only words of ours (reasons, protocols), never a host: what a client asks for must not make the list longer.
Bytes and durations count when a connection ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from doorward.version import VERSION

_BUCKETS: Final = (0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 300.0, 3600.0)
_PLAIN: Final = "http"


class DoorMetrics:
    """`take` each item of each worker."""

    def __init__(self) -> None:
        self.reloads: Counter[str] = Counter({"ok": 0, "failed": 0})
        self.restarts = 0
        self._connections: Counter[tuple[str, str]] = Counter()
        self._decisions: Counter[tuple[str, str]] = Counter()
        self._bytes: Counter[str] = Counter({"up": 0, "down": 0})
        self._requests = 0
        self._unreachable: Counter[str] = Counter()
        self._malformed = 0
        self._faults = 0
        self._buckets = [0] * (len(_BUCKETS) + 1)
        self._seconds = 0.0
        self._open: dict[int, dict[str, str]] = {}  # protocol by connection, by worker

    def take(self, worker: int, item: Mapping[str, Any]) -> None:
        """One item of the proxy (proxy/records.py)."""
        payload = item["payload"]
        if item["type"] == "network":
            self._closed(worker, payload)
        elif payload.get("type") == "connection_opened":
            self._open.setdefault(worker, {})[payload["connection"]] = payload["protocol"]
            self._decisions[payload["decision"], payload["reason"]] += 1
        elif payload.get("type") == "malformed_request":
            self._malformed += 1
        elif payload.get("type") == "proxy_fault":
            self._faults += 1

    def fault(self) -> None:
        """A fault of ours cost a connection."""
        self._faults += 1

    def worker_gone(self, worker: int) -> None:
        """Whatever it had open is closed."""
        self._open.pop(worker, None)

    def _closed(self, worker: int, record: Mapping[str, Any]) -> None:
        was_open = self._open.get(worker, {}).pop(record["connection"], None)
        if was_open is None or record["decision"] != "allow":
            self._decisions[record["decision"], record["reason"]] += 1
        self._connections[record["protocol"], record["decision"]] += 1
        self._bytes["up"] += record["bytes_up"]
        self._bytes["down"] += record["bytes_down"]
        self._requests += record["requests"]
        error_class = str(record.get("error", "")).partition(":")[0]
        if error_class in ("dns-failed", "dns-timeout", "upstream-failed", "upstream-timeout"):
            self._unreachable[error_class] += 1
        if record["decision"] == "allow":
            seconds = record["duration_s"]
            self._seconds += seconds
            self._buckets[next((at for at, most in enumerate(_BUCKETS) if seconds <= most), len(_BUCKETS))] += 1

    def render(self, *, workers: int, stale: bool) -> str:
        """The text exposition format, version 0.0.4."""
        opened = Counter(protocol for each in self._open.values() for protocol in each.values())
        tunnels = sum(number for protocol, number in opened.items() if protocol != _PLAIN)
        connections = [
            ({"protocol": protocol, "decision": decision}, number)
            for (protocol, decision), number in sorted(self._connections.items())
        ]
        decisions = [
            ({"decision": decision, "reason": reason}, number)
            for (decision, reason), number in sorted(self._decisions.items())
        ]
        return "".join(
            (
                _family("build_info", "gauge", "The version that runs.", [({"version": VERSION}, 1)]),
                _family("connections_total", "counter", "Connections that ended or were refused.", connections),
                _family("decisions_total", "counter", "Decisions, each with its reason.", decisions),
                _family("requests_total", "counter", "Requests on connections that ended.", _one(self._requests)),
                _family(
                    "bytes_total",
                    "counter",
                    "Bytes of connections that ended, up to servers and down from them.",
                    _labelled("direction", self._bytes),
                ),
                _family(
                    "unreachable_total",
                    "counter",
                    "Allowed requests that got nowhere.",
                    _labelled("class", self._unreachable),
                ),
                _family(
                    "malformed_requests_total", "counter", "Messages that could not be judged.", _one(self._malformed)
                ),
                _family(
                    "faults_total", "counter", "Faults of the door's own; each cost a connection.", _one(self._faults)
                ),
                self._durations(),
                _family(
                    "open_connections", "gauge", "Allowed connections that are open.", _labelled("protocol", opened)
                ),
                _family("open_tunnels", "gauge", "Tunnels that are open.", _one(tunnels)),
                _family(
                    "reloads_total",
                    "counter",
                    "Times the configuration was read again.",
                    _labelled("result", self.reloads),
                ),
                _family(
                    "configuration_stale",
                    "gauge",
                    "1 while the configuration is wrong and older rules are in force.",
                    _one(int(stale)),
                ),
                _family("workers", "gauge", "Workers that accept connections.", _one(workers)),
                _family(
                    "worker_restarts_total", "counter", "Workers that died and were started again.", _one(self.restarts)
                ),
            )
        )

    def _durations(self) -> str:
        name = "doorward_connection_duration_seconds"
        out = [f"# HELP {name} How long allowed connections lasted.\n# TYPE {name} histogram\n"]
        total = 0
        for most, number in zip((*_BUCKETS, None), self._buckets, strict=True):
            total += number
            out.append(f'{name}_bucket{{le="{"+Inf" if most is None else f"{most:g}"}"}} {total}\n')
        out.append(f"{name}_sum {self._seconds:.6f}\n{name}_count {total}\n")
        return "".join(out)


_Samples = Iterable[tuple[Mapping[str, str], int]]


def _one(value: int) -> _Samples:
    return [({}, value)]


def _labelled(label: str, values: Mapping[str, int]) -> _Samples:
    return [({label: text}, value) for text, value in sorted(values.items())]


def _family(name: str, kind: str, told: str, samples: _Samples) -> str:
    out = [f"# HELP doorward_{name} {told}\n# TYPE doorward_{name} {kind}\n"]
    for labels, value in samples:
        inner = ",".join(f'{label}="{text}"' for label, text in labels.items())
        out.append(f"doorward_{name}{{{inner}}} {value}\n" if inner else f"doorward_{name} {value}\n")
    return "".join(out)

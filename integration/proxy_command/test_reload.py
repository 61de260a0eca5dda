"""Rules that change while the door is open: tunnels stay, the next request meets the new rules."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

Start = Callable[..., Any]


def rules(*allow: str) -> str:
    return f"[network]\nallow = {json.dumps(list(allow))}\n"


def test_a_changed_file_is_in_force_and_an_open_tunnel_lives(start: Start, there: str, configure: Any) -> None:
    configure(rules(there))
    proxy = start("--workers", "2")
    head, tunnel = proxy.ask(there)
    assert head.startswith(b"HTTP/1.1 200 ")
    tunnel.sendall(b"before")
    assert tunnel.recv(100) == b"before"
    configure(rules("other.test"))
    proxy.says("a file changed: configuration reloaded, 1 allow and 0 deny")
    proxy.becomes(there, 403)
    tunnel.sendall(b"after")
    assert tunnel.recv(100) == b"after"
    tunnel.close()
    configure(rules(there))
    proxy.becomes(there, 200)


def test_a_file_that_was_not_there_counts_once_it_is(start: Start, there: str, configure: Any) -> None:
    proxy = start()
    assert proxy.status(there) == 403
    configure(rules(there))
    proxy.becomes(there, 200)


def test_a_link_that_points_elsewhere_counts(start: Start, there: str, tmp_path: Path) -> None:
    """As a mounted ConfigMap changes."""
    old, new, link = tmp_path / "old.toml", tmp_path / "new.toml", tmp_path / "home" / "config.toml"
    old.write_text(rules())
    new.write_text(rules(there))
    link.symlink_to(old)
    proxy = start()
    assert proxy.status(there) == 403
    (tmp_path / "next").symlink_to(new)
    (tmp_path / "next").rename(link)
    proxy.becomes(there, 200)


def test_a_broken_file_keeps_the_old_rules_and_is_named(start: Start, there: str, configure: Any) -> None:
    path = configure(rules(there))
    proxy = start()
    assert proxy.status(there) == 200
    configure("[network]\nallow = [\n")
    proxy.says(rf"the rules in force stay, since the new configuration is wrong: {path}:3: is not valid TOML")
    assert proxy.status(there) == 200
    configure(rules(there, "http://wrong.test"))
    proxy.says(r"the rules in force stay.*config\.toml:2")
    assert proxy.status(there) == 200
    configure(rules())
    proxy.becomes(there, 403)


def test_sighup_reads_it_at_once_and_flags_stay(start: Start, there: str, configure: Any) -> None:
    proxy = start("--allow", there)
    assert proxy.status(there) == 200
    configure("[network]\ndeny = ['allowed.test']\n")
    proxy.kill(signal.SIGHUP)
    proxy.says("SIGHUP: configuration reloaded, 1 allow and 1 deny")
    proxy.becomes(there, 403)


def test_reload_on_request(start: Start, there: str, configure: Any, control: Any) -> None:
    proxy = start("--control", control.where, "--workers", "2")
    assert proxy.status(there) == 403
    configure(rules(there))
    status, body = control("/reload", "POST")
    assert (status, json.loads(body)["reloaded"]) == (200, True)
    assert [proxy.status(there) for _ in range(6)] == [200] * 6, "every worker has them when it answers"
    configure("[network]\nallow = 1\n")
    status, body = control("/reload", "POST")
    assert status == 409
    assert "config.toml:2: network.allow" in json.loads(body)["problem"]
    assert control.metric('reloads_total{result="ok"}') >= 1
    assert control.metric('reloads_total{result="failed"}') >= 1
    assert control.metric("configuration_stale") == 1
    assert "config.toml:2" in control.json("/healthz")["configuration"]
    assert proxy.status(there) == 200


def test_limits_are_reloaded_too(start: Start, configure: Any, control: Any) -> None:
    proxy = start("--control", control.where)
    configure("[network.limits]\nhead_time = 0.2\n")
    assert control("/reload", "POST")[0] == 200
    sock = proxy.connect()
    sock.sendall(b"GET http://a.test/ HT")
    assert sock.recv(12) == b"HTTP/1.1 408"
    sock.close()

"""What the generator is told for each work, and what is made of its answer; nothing is started."""

from __future__ import annotations

from typing import Any, cast

import pytest
from network_generator import Job, Seen
from network_processes import Tree
from network_proxies import HOST, Proxy, credentials
from network_works import FULL, WORKS, Work, job, measure, unable
from timing import DidNotWork


class FakeGenerator:
    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    def run(self, _: Job) -> Seen:
        return self.seen


class FakeTree:
    """Used 0.5 s more each time it is asked."""

    def __init__(self) -> None:
        self.used = 0.0

    def cpu_s(self) -> float:
        self.used += 0.5
        return self.used


def proxy(seen: Seen | None = None, pid: int | None = 7) -> Proxy:
    generator = cast(Any, FakeGenerator(seen or Seen(1, 0, 1, 1, False, 0, 0, "")))
    tree = cast(Tree, FakeTree()) if pid else None
    return Proxy("squid", HOST, pid, "127.0.0.1", 3128, None, "127.0.0.1:8000", generator, tree)


def work(kind: str, concurrency: int = 16) -> Work:
    return next(each for each in WORKS if (each.kind, each.concurrency) == (kind, concurrency))


def test_streams_share_the_bytes() -> None:
    told = job(work("stream", 32), proxy(), FULL)
    assert (told.path, told.answers, told.tunnel) == (f"/bytes/{FULL.bytes // 32}", 32, True)


def test_without_a_proxy_a_tunnel_is_a_connection() -> None:
    told = job(work("used"), proxy(pid=None), FULL)
    assert (told.tunnel, told.absolute, told.path) == (False, False, "/small")


def test_a_refusal_asks_for_another_name_and_wants_403() -> None:
    told = job(work("refusal"), proxy(), FULL)
    assert (told.authority, told.status, told.tunnel, told.absolute) == ("refused.test:80", 403, False, True)


@pytest.mark.parametrize("kind", ["tunnel", "refusal"])
def test_what_makes_no_sense_without_a_proxy_is_left_out(kind: str) -> None:
    assert unable(work(kind), proxy(pid=None)) and unable(work(kind), proxy()) is None


def test_bytes_are_counted_in_gigabytes_and_cpu_by_gigabyte() -> None:
    figure = measure(work("stream", 1), proxy(Seen(1, 0, 2_000_000_000, 4.0, False, 0, 0, "")), FULL)
    assert (figure.value, figure.cpu_s) == (0.5, 0.25)


def test_a_stream_cut_by_the_limit_counts_what_came() -> None:
    figure = measure(work("stream", 1), proxy(Seen(0, 0, 500_000_000, 20.0, True, 0, 0, "")), FULL)
    assert (figure.value, figure.cpu_s) == (0.025, 1.0)


def test_answers_are_counted_by_the_second() -> None:
    figure = measure(work("tunnel"), proxy(Seen(1000, 0, 0, 2.0, True, 1.5, 9.0, "")), FULL)
    assert figure == (500.0, 0.0005, 1.5, 9.0)


def test_nothing_done_is_no_figure() -> None:
    with pytest.raises(DidNotWork):
        measure(work("tunnel"), proxy(Seen(0, 0, 0, 2.0, True, 0, 0, "")), FULL)


def test_credentials_of_a_proxy_url_are_decoded_before_they_are_encoded() -> None:
    assert credentials("http://a:b%3Ac@127.0.0.1:1") == "YTpiOmM="
    assert credentials("http://127.0.0.1:1") is None

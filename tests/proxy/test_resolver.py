"""Look-ups: absolute form, the hosts file, localhost, limits; the system's resolver itself is replaced."""

from __future__ import annotations

import _socket
import socket
import threading
from collections.abc import Coroutine, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar

import pytest

from doorward.allowlists.host import Name
from doorward.proxy.clock import MonotonicClock
from doorward.proxy.loop import Group, Loop
from doorward.proxy.resolver import THREADS, HostsFile, LookupFailed, LookupTimedOut, SystemResolver, parse_answers

T = TypeVar("T")


async def gather(loop: Loop, *coroutines: Coroutine[Any, None, T]) -> list[T]:
    """Run all of them side by side; their values in order."""
    async with Group(loop) as group:
        tasks = [group.start(coroutine) for coroutine in coroutines]
    return [await task.wait() for task in tasks]


class System:
    """Stands in for getaddrinfo."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.answers: dict[bytes, list[str]] = {}
        self.release = threading.Event()
        self.release.set()
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()

    def getaddrinfo(self, host: bytes, port: None, **kinds: Any) -> list[Any]:
        with self._lock:
            self.asked.append(host)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            assert self.release.wait(10)
        finally:
            with self._lock:
                self.at_once -= 1
        if host not in self.answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(0, 0, 0, "", (text, 0)) for text in self.answers[host]]


@pytest.fixture
def real_loop() -> Iterator[Loop]:
    loop = Loop(MonotonicClock())
    yield loop
    loop.close()


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    made = System()
    monkeypatch.setattr(_socket, "getaddrinfo", made.getaddrinfo)
    return made


@pytest.fixture
def resolver(real_loop: Loop, tmp_path: Path) -> SystemResolver:
    return SystemResolver(real_loop, hosts_file=str(tmp_path / "hosts"))


def test_the_query_is_absolute_bytes(real_loop: Loop, system: System, resolver: SystemResolver) -> None:
    """No search suffix is tried: a.test never becomes a.test.corp."""
    system.answers[b"a.test."] = ["192.0.2.1", "2001:db8::1", "192.0.2.1"]
    found = real_loop.run(resolver.resolve(Name("a.test"), 5))
    assert system.asked == [b"a.test."]
    assert found == (ip_address("192.0.2.1"), ip_address("2001:db8::1"))


def test_a_name_that_does_not_resolve(real_loop: Loop, system: System, resolver: SystemResolver) -> None:
    with pytest.raises(LookupFailed, match=r"a\.test does not resolve: name or service not known\."):
        real_loop.run(resolver.resolve(Name("a.test"), 5))


def test_localhost_is_never_asked_for(real_loop: Loop, system: System, resolver: SystemResolver) -> None:
    found = real_loop.run(resolver.resolve(Name("localhost"), 5))
    assert found == (ip_address("127.0.0.1"), ip_address("::1"))
    assert system.asked == []


def test_silence_times_out(real_loop: Loop, system: System, resolver: SystemResolver) -> None:
    system.release.clear()
    with pytest.raises(LookupTimedOut, match=r"for 0\.02 s"):
        real_loop.run(resolver.resolve(Name("a.test"), 0.02))
    system.release.set()


def test_threads_are_bounded_and_given_back(real_loop: Loop, system: System, resolver: SystemResolver) -> None:
    names = [f"n{index}.test" for index in range(3 * THREADS)]
    for name in names:
        system.answers[name.encode() + b"."] = ["192.0.2.1"]
    system.release.clear()

    async def main() -> None:
        threading.Timer(0.05, system.release.set).start()
        await gather(real_loop, *(resolver.resolve(Name(name), 10) for name in names))

    real_loop.run(main())
    assert system.most_at_once <= THREADS
    assert len(system.asked) == len(names)
    assert resolver._free == THREADS


def test_who_waits_for_a_thread_times_out_too(real_loop: Loop, system: System, resolver: SystemResolver) -> None:
    system.release.clear()

    async def patient() -> None:
        with pytest.raises(LookupTimedOut):
            await resolver.resolve(Name("a.test"), 0.05)

    real_loop_names = [patient() for _ in range(THREADS + 5)]

    async def main() -> None:
        await gather(real_loop, *real_loop_names)
        system.release.set()
        while resolver._free < THREADS:
            await real_loop.sleep(0.001)

    real_loop.run(main())
    assert len(system.asked) == THREADS


def test_the_hosts_file_comes_first_and_is_read_again(
    real_loop: Loop, system: System, resolver: SystemResolver, tmp_path: Path
) -> None:
    file = tmp_path / "hosts"
    file.write_text("# comment\n192.0.2.9 A.test alias.test # tail\n2001:db8::9\ta.test.\nnonsense b.test\n192.0.2.8\n")
    assert real_loop.run(resolver.resolve(Name("a.test"), 5)) == (ip_address("192.0.2.9"), ip_address("2001:db8::9"))
    assert real_loop.run(resolver.resolve(Name("alias.test"), 5)) == (ip_address("192.0.2.9"),)
    file.write_text("192.0.2.10 a.test and more\n")
    assert real_loop.run(resolver.resolve(Name("a.test"), 5)) == (ip_address("192.0.2.10"),)
    file.unlink()
    system.answers[b"a.test."] = ["192.0.2.1"]
    assert real_loop.run(resolver.resolve(Name("a.test"), 5)) == (ip_address("192.0.2.1"),)


def test_a_hosts_file_that_cannot_be_read_is_an_empty_one(tmp_path: Path) -> None:
    assert HostsFile(str(tmp_path)).find("a.test") == ()
    broken = tmp_path / "hosts"
    broken.write_bytes(b"192.0.2.1 \xff\xfe\x00\n\x00\n192.0.2.2 good.test\n")
    assert HostsFile(str(broken)).find("good.test") == (ip_address("192.0.2.2"),)


def test_answers_with_a_zone_are_dropped() -> None:
    assert parse_answers(["fe80::1%eth0", "192.0.2.1"]) == (ip_address("192.0.2.1"),)

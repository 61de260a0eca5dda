"""The check of each kind by itself."""

import pytest

from doorward.configuration_schema import KEY
from doorward.configuration_value import checked, shown

Complaint = tuple[tuple[str | int, ...], str, str | None]


def check(key: str, value: object) -> tuple[object, list[Complaint]]:
    complaints: list[Complaint] = []
    return checked(KEY[key], value, {}, lambda *complaint: complaints.append(complaint)), complaints


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("require", "full", "full"),
        ("features.guardian_approval", True, True),
        ("network.limits.head_time", 3, 3.0),
        ("network.limits.head_time", 0.5, 0.5),
        ("network.limits.head", 3, 3),
        ("network.upstream_proxy", "http://u:p@proxy.corp:3128/", "http://u:p@proxy.corp:3128/"),
        ("network.upstream_proxy", "https://proxy.corp", "https://proxy.corp"),
        ("network.upstream_resolves", ["corp.example"], ("corp.example",)),
        ("network.allow", ["a.test"], ("a.test",)),
        ("network.deny", ({"host": "b", "addresses": ("10.0.0.1",)},), ({"host": "b", "addresses": ["10.0.0.1"]},)),
        ("network.hosts", {"a": "::1", "b": "127.0.0.1"}, {"a": "::1", "b": "127.0.0.1"}),
        ("env.pass", ["A_TOKEN"], ("A_TOKEN",)),
        ("filesystem.deny_read", ["**/.env"], ("**/.env",)),
    ],
)
def test_what_is_right_is_kept(key: str, value: object, kept: object) -> None:
    got, complaints = check(key, value)
    assert (got, complaints) == (kept, [])
    assert type(got) is type(kept)


def test_every_wrong_entry_is_told_by_its_place() -> None:
    _, complaints = check("network.allow", ["a.test", 1, {}, {"host": "x", "when": 1.5}])
    assert [place for place, _, _ in complaints] == [(1,), (2,), (3,)]
    _, complaints = check("network.hosts", {"a": "nowhere", "b": 1, "c": "fe80::1%eth0", "d": "::1"})
    assert [place for place, _, _ in complaints] == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", 'the text "x"'),
        (True, "true"),
        (1, "the number 1"),
        ([], "an array"),
        ({}, "an empty table"),
        ({"a": 1, "b": 2}, "a table with a, b"),
        ("y" * 500, f'the text "{"y" * 89}…'),
    ],
)
def test_a_value_is_shown_as_it_stands_in_the_file(value: object, text: str) -> None:
    assert shown(value) == text

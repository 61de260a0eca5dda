"""The summary after a run: grouped, counted, each with the option that would allow it."""

from __future__ import annotations

from doorward.summary import printable, summarize


def _refusal(host: str, port: int, hint: str = "--allow b.test") -> dict[str, object]:
    return {"status": "blocked", "host": host, "port": port, "message": f"{host} is in no rule", "hint": hint}


def test_nothing_refused_says_nothing() -> None:
    assert summarize([]) == []


def test_equal_refusals_are_one_line_with_a_count_and_the_option() -> None:
    lines = summarize([_refusal("b.test", 80), _refusal("b.test", 80), _refusal("c.test", 443, "--allow c.test")])
    assert lines[0] == "doorward: refused 3 times"
    assert lines[1].startswith("  b.test:80  2x")
    assert lines[2] == "    to allow it: --allow b.test"
    assert lines[3].startswith("  c.test:443  ")


def test_an_ipv6_place_is_bracketed() -> None:
    assert "[::1]:80" in summarize([_refusal("::1", 80)])[1]


def test_a_name_cannot_drive_the_terminal() -> None:
    lines = summarize([_refusal("b.test\x1b[2J\r\n\udcff", 80)])
    assert all(char.isprintable() or char == " " for line in lines for char in line)


def test_many_places_are_cut_and_counted() -> None:
    lines = summarize([_refusal(f"h{number}.test", 80) for number in range(40)])
    assert lines[-1] == "  and 28 more places; `doorward show` lists them all"


def test_printable_keeps_letters_of_every_script() -> None:
    assert printable("bücher 東京") == "bücher 東京"
    assert printable("a\tb") == "a\\tb"

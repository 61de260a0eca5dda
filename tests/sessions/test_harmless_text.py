"""Text that cannot drive a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.sessions.harmless_text import harmless, harmless_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 😀", "plain é 日本 😀"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("over\rwritten", "over\\x0dwritten"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\x7f\x00", "a\\x7f\\x00"),
        ("\u202efdp.exe", "\\u202efdp.exe"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("line\u2028separator\u0085", "line\\u2028separator\\x85"),
        ("bad byte \udcff", "bad byte \\xff"),
        ("half \ud83d", "half \\ud83d"),
        ("tag \U000e0041", "tag \\U000e0041"),
    ],
)
def test_harmless(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_one_line_stays_one() -> None:
    assert harmless_line("a\r\nb\tc") == "a\\nb\\tc"


@given(st.text())
def test_nothing_that_moves_or_hides_is_left(text: str) -> None:
    shown = harmless(text)
    shown.encode()
    for char in shown:
        assert char in "\t\n" or unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(char) not in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")

"""Foreign text can neither drive a terminal nor leave its word."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.gates.wording import plain, shell_word, trusting


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "\udcff", "\u202eevil", "\x00", "\x9b1m"])
def test_nothing_a_terminal_acts_on_is_left(text: str) -> None:
    assert plain(text).isprintable() and plain(text).isascii()


def test_ordinary_text_stays_and_long_text_is_cut() -> None:
    assert plain("Grüße aus /tmp/ä b") == "Grüße aus /tmp/ä b"
    assert len(plain("x" * 500)) == 120


@given(st.text(st.characters(exclude_characters="\0")))
def test_a_shell_reads_it_back_as_one_word(text: str) -> None:
    assert shlex.split(shell_word(text)) == [text]


@given(st.text(st.characters(exclude_characters="\0"), min_size=1))
def test_the_command_that_trusts_a_folder_names_that_folder(folder: str) -> None:
    assert shlex.split(trusting(folder)) == ["doorward", "trust", folder]

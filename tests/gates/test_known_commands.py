"""The table of commands: every line has what it owes."""

from __future__ import annotations

from doorward.gates.known_commands import GIT_READ_ONLY, READ_ONLY, RISKY, WRAPPERS, WRITERS


def test_every_exception_of_a_read_only_command_has_its_reason() -> None:
    for name, entry in READ_ONLY.items():
        limited = entry.unless_short or entry.unless_long or entry.unless_words or entry.only is not None
        assert bool(limited or entry.operands_begin or entry.most_operands) == bool(entry.because), name


def test_every_risk_and_every_wrapper_has_its_reason() -> None:
    assert all(risk.because for risks in RISKY.values() for risk in risks)
    assert all(wrapper.because for wrapper in WRAPPERS.values())


def test_no_command_is_both_harmless_and_sure_to_be_risky() -> None:
    """`find` and `git` are risky in some uses only."""
    always = {name for name, risks in RISKY.items() if any(not any(risk[1:]) for risk in risks)}
    assert not always & READ_ONLY.keys()
    assert not READ_ONLY.keys() & WRITERS.keys()
    assert all("-" not in name[0] for name in GIT_READ_ONLY)


def test_the_kinds_of_risk_that_are_promised_are_there() -> None:
    wanted = {"rm", "git", "npm", "sudo", "mkfs", "ssh", "shutdown", "crontab", "useradd", "remove-item", "reg"}
    assert wanted <= RISKY.keys()

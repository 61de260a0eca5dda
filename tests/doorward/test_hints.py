"""Hints after a failed command: one a cause, from what is on record."""

from __future__ import annotations

from typing import Any

import pytest

from doorward.hint import Hint
from doorward.hints import Ended, hints_of, host_listening

REFUSED = "connect ECONNREFUSED 127.0.0.1:5432\n"


def causes(output: str = "", *argv: str, **more: Any) -> list[str]:
    return [each.cause for each in hints_of(Ended(argv or ("make",), "/", output, **more))]


def test_nothing_on_record_is_no_hint() -> None:
    assert causes() == causes("make: *** [all] Error 2\n") == []


def test_what_a_door_refused_is_told_by_the_door() -> None:
    assert causes(REFUSED) == ["loopback"]
    assert causes(REFUSED, refusals=[{"source": "baseline_policy"}]) == []


def test_a_pinned_certificate_is_the_cause_and_what_follows_from_it_is_none() -> None:
    pinned = Hint("pinned_certificate", "m", "--allow a.test")
    assert causes(REFUSED, inspected=[pinned]) == ["pinned_certificate"]


def test_without_a_proxy_nothing_goes_round_it() -> None:
    assert causes(REFUSED, proxy_url=None) == []


@pytest.mark.parametrize(
    ("argv", "output", "named"),
    [
        (("sh", "-c", "echo $A_TOKEN"), "", "--pass-env A_TOKEN"),
        (("x",), "KeyError: 'B_TOKEN'\n", "--pass-env B_TOKEN"),
        (("sh", "-c", "echo $A_TOKEN"), "sh: 1: B_TOKEN: parameter not set\n", "--pass-env A_TOKEN --pass-env B_TOKEN"),
        (("x",), "MY_A_TOKEN and A_TOKEN_2 are others\n", "--pass-env NAME"),
        (("x",), "", "--pass-env NAME"),
    ],
)
def test_a_withheld_variable_that_is_named_is_singled_out(argv: tuple[str, ...], output: str, named: str) -> None:
    [hint] = hints_of(Ended(argv, "/", output, withheld=["A_TOKEN", "B_TOKEN"]))
    assert (hint.cause, hint.remedy) == ("withheld_variable", named) and hint.remedy in hint.message


def test_an_agent_hears_of_what_it_asked_for_alone() -> None:
    """Its own key is withheld from each of its commands, and most that fail have nothing to do with that."""
    assert causes(withheld=["A_TOKEN"], for_agent=True) == []
    assert causes("", "sh", "-c", "echo $A_TOKEN", withheld=["A_TOKEN"], for_agent=True) == ["withheld_variable"]


def test_which_ports_of_this_machine_have_a_server() -> None:
    import socket
    import sys

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ports = host_listening()
    assert (ports is None) == (sys.platform != "linux")
    assert ports is None or port in ports

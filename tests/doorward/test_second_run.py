"""What a refused command would be run again with."""

from __future__ import annotations

from typing import Any

import pytest

from doorward.second_run import grants_for


def refusal(hint: str | None, host: str | None = "b.test") -> dict[str, Any]:
    return {"host": host, "port": 443, "path": "/x", "message": "no", "reason": "not_allowed", "hint": hint}


def test_exactly_what_was_refused_is_offered_once() -> None:
    grants = grants_for(
        [refusal("--allow b.test"), refusal("--allow b.test"), refusal("--add-dir '/srv/a b'", None), refusal(None)]
    )
    assert grants is not None
    assert (grants.hosts, grants.paths) == (("b.test",), ("/srv/a b",))
    assert grants.options == ("--allow b.test", "--add-dir '/srv/a b'")
    assert "b.test:443" in "\n".join(grants.why)


@pytest.mark.parametrize(
    "hint",
    [
        *("", "doorward trust /p", "-a never", "--allow 'a"),
        *("-s workspace-write --add-dir /x", "--network proxied --allow a.test"),
    ],
)
def test_what_no_single_grant_opens_is_not_offered(hint: str) -> None:
    assert grants_for([refusal(hint)]) is None
    assert grants_for([]) is None


def test_too_much_is_no_question() -> None:
    assert grants_for(refusal(f"--allow h{number}.test") for number in range(21)) is None

"""`--explain-denials`: a refusal of the sandbox is told like one of the network."""

from __future__ import annotations

from typing import Any

# a word the gates cannot read, so that the kernel is left to refuse
TOUCH = ("sh", "-c", 'exec touch "$1"', "sh")


def test_a_command_that_failed_is_explained(doorward: Any) -> None:
    outside = doorward.workspace.parent / "outside"
    outside.mkdir()
    seen = doorward("run", "--json", "--explain-denials", "--", *TOUCH, str(outside / "new"))
    assert seen.status == 1
    (refusal,) = seen.document["refusals"]
    assert refusal["class"] == "blocked-by-sandbox"
    assert (refusal["path"], refusal["operation"]) == (str(outside / "new"), "write")
    assert refusal["hint"] == f"--add-dir {outside}"
    assert f"to allow it: --add-dir {outside}" in seen.err
    lines = doorward.lines(seen.document["session"])
    (recorded,) = [line["payload"] for line in lines if line["type"] == "refusal"]
    assert recorded == {"turn": 1, **refusal}
    assert str(outside) in doorward("show", seen.document["session"]).out.decode()


def test_the_hint_is_what_allows_it(doorward: Any) -> None:
    outside = doorward.workspace.parent / "outside"
    outside.mkdir()
    refused = doorward("run", "--json", "--explain-denials", "--", *TOUCH, str(outside / "new"))
    option, path = refused.document["refusals"][0]["hint"].split()
    assert doorward("run", option, path, "--", *TOUCH, str(outside / "new")).status == 0
    assert (outside / "new").exists()


def test_one_that_did_not_fail_is_not(doorward: Any) -> None:
    seen = doorward(
        "run", "--json", "-c", "sandbox.explain=true", "--fail-on-deny", "--", "sh", "-c", "touch /usr/x; true"
    )
    assert (seen.status, seen.document["refusals"]) == (0, [])


def test_without_it_nothing_is_watched(doorward: Any) -> None:
    seen = doorward("run", "--json", "--", *TOUCH, "/usr/x")
    assert (seen.status, seen.document["refusals"]) == (1, [])

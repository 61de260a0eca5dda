"""docs/dial.md is what the resolver says now."""

from __future__ import annotations

from pathlib import Path

from doorward.dial_docs import render

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dial.md"


def test_the_page_is_true() -> None:
    assert PAGE.read_text() == render(), "python -m doorward.dial_docs > docs/dial.md"


def test_the_page_is_the_same_on_every_machine_and_says_what_must_hold() -> None:
    page = render()
    assert page == render()
    sections = {part.splitlines()[0]: part for part in page.split("\n## ")}

    def row(section: str, command: str) -> list[str]:
        found = [line for line in sections[section].splitlines() if line.startswith(f"| `{command}` |")]
        return [cell.strip() for cell in found[0].strip("|").split("|")][1:]

    assert row("`workspace-write`", "tee /etc/hosts") == ["deny (sandbox)"] * 4
    assert row("`workspace-write` with `--add-dir /etc/hosts`", "tee /etc/hosts")[1] == "*ask* (approval)"
    assert row("The guardian, under `-a never`", "rm -rf build")[:2] == ["**allow**", "*ask* (guardian)"]
    assert row("Trust in the project, under `-a never`", "touch notes.txt")[2] == "*ask* (trust)"
    assert row("A feature that is needed", "tee /etc/hosts")[0] == "deny (feature)"

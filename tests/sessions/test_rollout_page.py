"""docs/rollout.md names every record there is, and every event that is kept or dropped."""

import re
from pathlib import Path

from doorward.sessions.items import EVENTS, RECORDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "rollout.md").read_text(encoding="utf-8")


def test_every_row_of_the_table_is_on_the_page() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert set(EVENTS) - named == set()
    assert {name for name in RECORDS if name not in ("response_item", "compacted")} - named == set()
    kept, dropped = PAGE.split("Kinds of `event_msg` that are kept:")[1].split("Dropped (")
    dropped = dropped.split("The one table")[0]
    for name, row in EVENTS.items():
        right, wrong = (kept, dropped) if row.kept else (dropped, kept)
        assert f"`{name}`" in right, name
        assert f"`{name}`" not in wrong, name

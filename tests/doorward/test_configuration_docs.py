"""docs/configuration.md says what the schema says."""

from pathlib import Path

from doorward.configuration_docs import render
from doorward.configuration_schema import KEYS

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == render(), "run: python -m doorward.configuration_docs > docs/configuration.md"


def test_every_key_is_on_the_page_with_its_meaning() -> None:
    page = render()
    for key in KEYS:
        assert f"- `{key.name.rpartition('.')[2]}`: {key.doc}." in page

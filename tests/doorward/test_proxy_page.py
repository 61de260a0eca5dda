"""docs/proxy.md: every option, metric and key it names is there, and none is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path

from doorward.commands.proxy import _OPTIONS
from doorward.door_metrics import DoorMetrics
from doorward.proxy.limits import Limits

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "proxy.md").read_text()


def test_every_option_is_told() -> None:
    told = set(re.findall(r"`(?:-c, )?--([a-z-]+)", PAGE))
    assert {option.name for option in _OPTIONS} - {"config"} <= told


def test_no_option_is_told_that_is_not_there() -> None:
    known = {option.name for option in _OPTIONS}
    for command in re.findall(r"doorward proxy [^\n`]*", PAGE):
        assert set(re.findall(r"(?<!\S)--([a-z-]+)", command)) <= known, command


def test_every_metric_is_told() -> None:
    text = DoorMetrics().render(workers=1, stale=False)
    for family in re.findall(r"# TYPE (\S+)", text):
        assert f"`{family}" in PAGE, family
    for told in re.findall(r"`(doorward_[a-z_]+)", PAGE):
        assert f"# TYPE {told} " in text, told


def test_every_key_of_a_record_is_in_the_schema_it_points_to() -> None:
    schema = json.loads((DOCS / "schema" / "connection.schema.json").read_text())
    record = next(json.loads(line) for line in PAGE.splitlines() if line.startswith('{"timestamp"'))
    assert set(record) <= set(schema["properties"])
    assert set(schema["required"]) <= set(record)
    assert "(schema/connection.schema.json)" in PAGE


def test_the_limits_it_names_are_limits() -> None:
    for name in re.findall(r"network\.limits\.([a-z_]+)", PAGE):
        assert name in Limits._fields

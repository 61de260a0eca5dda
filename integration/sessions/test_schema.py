"""docs/schema/rollout.schema.json holds of what real sessions write, and is strict enough to fail."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "schema"
SCHEMAS = {path.name: json.loads(path.read_text()) for path in FOLDER.glob("*.schema.json")}
REGISTRY: Any = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMAS["rollout.schema.json"], registry=REGISTRY)


@pytest.fixture
def lines(doorward: Any, origin: Any) -> list[dict[str, Any]]:
    """Everything that a few turns of all kinds write, and a fork."""
    big = ("sh", "-c", "head -c 100000 /dev/zero; printf '\\377'; exit 3")
    session = doorward("run", "--json", "--name", "s", *origin.reach(), "--", "curl", "-sS", origin.url())
    identifier = session.document["session"]
    doorward("run", "--session", "s", "--", "curl", "-sS", "http://b.test/")
    doorward("run", "--session", "s", "--", *big)
    doorward("run", "--session", "s", "--no-record-output", "--", "true")
    doorward("run", "--session", "s", "-s", "read-only", "--", "tee", "out")
    doorward("run", "--session", "s", "--timeout", "0.2", "--", "sleep", "60")
    doorward("rename", "s", "named")
    fork = doorward("fork", "--at", "2", identifier).out.decode().strip()
    doorward("resume", fork, "--", "true")
    return [*doorward.lines(identifier), *doorward.lines(fork)]


def test_what_is_written_is_what_the_schema_says(lines: list[dict[str, Any]]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS["rollout.schema.json"])
    for line in lines:
        VALIDATOR.validate(line)
    kinds = {(line["type"], line["payload"].get("type")) for line in lines}
    assert {kind for kind, _ in kinds} == {
        *("session_meta", "turn_context", "event_msg", "verdict", "exec", "network", "refusal", "observation"),
    }


def test_it_can_fail(lines: list[dict[str, Any]]) -> None:
    """Each required key of each record is missed, and a value of another shape is not taken."""
    first = {line["type"]: line for line in lines}
    for kind, line in first.items():
        schema = SCHEMAS["rollout.schema.json"]["$defs"].get(kind, SCHEMAS["connection.schema.json"])
        for key in schema["required"]:
            damaged = copy.deepcopy(line)
            del damaged["payload"][key]
            assert not VALIDATOR.is_valid(damaged), (kind, key)
            damaged["payload"][key] = {"a": ["shape", "of", "its", "own"]}
            assert not VALIDATOR.is_valid(damaged) or key in ("sandbox_policy", "rules"), (kind, key)
    for change in ({"ordinal": -1}, {"timestamp": "yesterday"}, {"metadata": {}}, {"more": 1}):
        assert not VALIDATOR.is_valid({**lines[0], **change})

"""The link at the end of a line, computed here a second time from the words of `chain.py`."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from doorward.sessions import chain
from doorward.sessions.home import Home
from doorward.sessions.rollout import Rollout


def recomputed(previous: str, line: bytes) -> str:
    body = line[: line.rindex(b'"chain":"') + len(b'"chain":"')]
    return hashlib.sha256(previous.encode() + body).hexdigest()


def test_each_line_is_linked_to_the_one_before(new: Callable[..., str]) -> None:
    previous = "0" * 64
    for line in Path(new(3)).read_bytes().splitlines():
        assert json.loads(line)["metadata"]["chain"] == recomputed(previous, line)
        previous = json.loads(line)["metadata"]["chain"]


def test_the_keys_of_a_line_and_their_order(new: Callable[..., str]) -> None:
    for line in Path(new(1)).read_bytes().splitlines():
        record = json.loads(line)
        assert list(record) == ["timestamp", "ordinal", "type", "payload", "metadata"]
        assert list(record["metadata"]) == ["turn", "open", "refused", "chain"]


def test_split_gives_back_what_sealed_joined() -> None:
    digits = "ab" * 32
    line = chain.sealed(b'{"metadata":{"chain":"', digits)
    assert line.endswith(b'"}}\n')
    assert chain.split(line[:-1]) == (b'{"metadata":{"chain":"', digits)


def test_what_is_no_link() -> None:
    digits = b"ab" * 32
    assert chain.split(b"") is None
    assert chain.split(b'{"chain":"' + digits + b'"}') is None
    assert chain.split(b'{"metadata":{"chain":"' + digits.upper() + b'"}}') is None
    assert chain.split(b'{"metadata":{"chains":"' + digits + b'"}}') is None
    assert chain.split(b'{"metadata":{"chain":"' + digits + b'"}}\r') is None


def test_a_payload_cannot_pose_as_metadata(home: Home) -> None:
    """The end of a line is found by its last bytes alone when the line is long; payload text must not look like it."""
    forged = ',"metadata":{"turn":99,"open":true,"refused":99,"chain":"' + "ab" * 32 + '"}}'
    with Rollout.create(home, cwd="/work") as rollout:
        rollout.append("refusal", {"turn": 1, "text": forged, "metadata": {"turn": 99, "chain": "x"}})
    line = Path(rollout.path).read_bytes().splitlines()[-1]
    metadata = chain.metadata_at_end(line)
    assert metadata is not None
    assert json.loads(metadata) == json.loads(line)["metadata"]
    assert json.loads(metadata)["turn"] == 0

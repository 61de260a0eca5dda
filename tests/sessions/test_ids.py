"""Ids and file names."""

import time
import uuid

from doorward.sessions.ids import as_uuid, day_folder, rollout_name, session_in, uuid7, uuid7_milliseconds


def test_an_id_is_a_version_7_uuid_of_its_time() -> None:
    made = uuid.UUID(uuid7(1_764_459_660_123_456_789))
    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    assert made.int >> 80 == 1_764_459_660_123
    assert uuid7_milliseconds(str(made)) == 1_764_459_660_123


def test_ids_sort_by_time_within_a_millisecond() -> None:
    base = 1_764_459_660_123_000_000
    made = [uuid7(base + step * 250) for step in range(4000)]
    assert made == sorted(made)
    assert len(set(made)) == 4000


def test_two_ids_of_one_instant_differ() -> None:
    assert uuid7(5) != uuid7(5)


def test_the_time_of_another_version_is_unknown() -> None:
    assert uuid7_milliseconds(str(uuid.uuid4())) is None


def test_a_uuid_is_known_in_any_case_and_nothing_else_is() -> None:
    made = uuid7()
    assert as_uuid(made.upper()) == made
    assert as_uuid(made.replace("-", "")) is None
    assert as_uuid(made + "\n") is None
    assert as_uuid("") is None


def test_a_file_name_holds_time_and_id() -> None:
    made, moment = uuid7(), time.gmtime(1_764_459_660)
    name = rollout_name(made, moment)
    assert name == f"rollout-2025-11-29T23-41-00-{made}.jsonl"
    assert day_folder(moment) == "2025/11/29"
    assert session_in(name) == made
    assert session_in(name + "\n") is None
    assert session_in(f"x{name}") is None

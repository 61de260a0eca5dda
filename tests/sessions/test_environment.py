"""What the log says of an environment: names, harmless values, fingerprints of the rest."""

import hashlib
import hmac
import json
import os
import stat
from pathlib import Path

import pytest

from doorward.sessions.environment import environment_record, fingerprint, fingerprint_key, key_id
from doorward.sessions.home import Home, StoreError

KEY = b"k" * 32
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def test_names_are_all_there_and_no_secret_is() -> None:
    env = {"TZ": "UTC", "TOKEN": TOKEN, "EMPTY": "", "LC_ALL": "C", "PATH": "/bin"}
    record = environment_record(env, KEY)
    assert [entry["name"] for entry in record] == ["EMPTY", "LC_ALL", "PATH", "TOKEN", "TZ"]
    assert TOKEN not in json.dumps(record)
    assert record[1] == {"name": "LC_ALL", "value": "C"}
    assert record[3] == {"name": "TOKEN", "fingerprint": fingerprint(TOKEN.encode(), KEY), "length": len(TOKEN)}
    assert record[0]["length"] == 0


def test_the_question_needs_no_name() -> None:
    one, two = environment_record({"A": TOKEN, "B": TOKEN}, KEY)
    assert one["fingerprint"] == two["fingerprint"]
    assert environment_record({"A": TOKEN}, b"x" * 32)[0]["fingerprint"] != one["fingerprint"]


def test_a_fingerprint_is_half_an_hmac_sha256() -> None:
    assert fingerprint(b"value", KEY) == hmac.new(KEY, b"value", hashlib.sha256).hexdigest()[:32]


def test_a_harmless_name_does_not_smuggle_a_long_value() -> None:
    (entry,) = environment_record({"LC_MINE": "x" * 5000}, KEY)
    assert "value" not in entry


@pytest.mark.parametrize("name", ["HTTP_PROXY", "PIP_INDEX_URL", "AWS_SECRET_ACCESS_KEY", "path", "LCX", "EDITOR", ""])
def test_what_is_not_listed_is_never_written_out(name: str) -> None:
    assert "value" not in environment_record({name: "v"}, KEY)[0]


def test_bytes_that_are_not_utf8() -> None:
    """P-TT-11: the fingerprint is of the bytes the command sees, and the record is valid JSON."""
    raw = b"a\xff"
    record = environment_record({"X": os.fsdecode(raw), "PATH": os.fsdecode(raw), os.fsdecode(b"n\xfe"): "v"}, KEY)
    by_name = {entry["name"]: entry for entry in json.loads(json.dumps(record))}
    assert by_name["X"]["fingerprint"] == fingerprint(raw, KEY)
    assert by_name["X"]["length"] == 2
    assert os.fsencode(by_name["PATH"]["value"]) == raw
    assert os.fsdecode(b"n\xfe") in by_name


def test_the_key_is_made_once_and_private(home: Home) -> None:
    home.ensure()
    key = fingerprint_key(home)
    assert len(key) == 32
    assert fingerprint_key(home) == key
    assert stat.S_IMODE(os.stat(home.fingerprint_key).st_mode) == 0o600
    assert sorted(os.listdir(home.path)) == ["fingerprint.key", "sessions"]


def test_the_key_of_the_first_process_counts(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes find no key; both make one; one key results."""
    home.ensure()
    urandom = os.urandom

    def beaten(count: int) -> bytes:
        monkeypatch.undo()
        Path(home.fingerprint_key).write_bytes(b"f" * 32)
        return urandom(count)

    monkeypatch.setattr(os, "urandom", beaten)
    assert fingerprint_key(home) == b"f" * 32


def test_a_key_that_others_can_read_is_narrowed(home: Home) -> None:
    home.ensure()
    fingerprint_key(home)
    os.chmod(home.fingerprint_key, 0o644)
    fingerprint_key(home)
    assert stat.S_IMODE(os.stat(home.fingerprint_key).st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_broken_key_is_a_sentence(home: Home, content: bytes) -> None:
    home.ensure()
    Path(home.fingerprint_key).write_bytes(content)
    with pytest.raises(StoreError, match="is not a fingerprint key"):
        fingerprint_key(home)


def test_a_linked_key_is_not_read(home: Home, tmp_path: Path) -> None:
    home.ensure()
    (tmp_path / "elsewhere").write_bytes(b"x" * 32)
    os.symlink(tmp_path / "elsewhere", home.fingerprint_key)
    with pytest.raises(StoreError, match="links are not read"):
        fingerprint_key(home)


def test_key_ids_tell_keys_apart_and_nothing_else() -> None:
    assert key_id(KEY) != key_id(b"x" * 32)
    assert len(key_id(KEY)) == 8
    assert not KEY.hex().startswith(key_id(KEY))

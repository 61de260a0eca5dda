"""What the log says of an environment: names, and for each value either its text or a keyed fingerprint.

A value is written out only when its name is on the short list of harmless ones below and it is not longer than
PLAIN_LIMIT. Of every other value stand only its length and HMAC-SHA256 (RFC 2104) under a secret that stays in the
home (`fingerprint.key`, 0600): with the secret one can ask "was it this token?", without it nothing can be guessed
from the log, not even a short value. The same value gives the same fingerprint under every name, so the question
needs no name. A fingerprint is cut to 128 bits, which RFC 2104 §5 allows (half the hash).
"""

from __future__ import annotations

import os

from doorward.sessions.home import FILE_MODE, Home, StoreError
from doorward.sessions.regular_file import open_regular
from doorward.sessions.sha256 import hmac_sha256, sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

KEY_BYTES = 32
PLAIN_LIMIT = 4096
"""Bytes; what is longer is no ordinary path list or locale."""

HARMLESS = frozenset(
    [
        # locale and terminal
        *("LANG", "LANGUAGE", "TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "TZ"),
        # who and where: any program can ask the system for these
        *("HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "SHLVL", "TMPDIR", "TMP", "TEMP", "TMPPREFIX"),
        # search paths: they decide which program ran
        *("PATH", "MANPATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOPATH", "GOROOT"),
    ]
)
_HARMLESS_PREFIX = "LC_"


def environment_record(env: Mapping[str, str], key: bytes) -> list[dict[str, Any]]:
    """`{"name", "value"}` or `{"name", "fingerprint", "length"}` for each variable, by name. Lengths are bytes."""
    record: list[dict[str, Any]] = []
    for name in sorted(env):
        value = env[name]
        raw = os.fsencode(value)
        if (name in HARMLESS or name.startswith(_HARMLESS_PREFIX)) and len(raw) <= PLAIN_LIMIT:
            record.append({"name": name, "value": value})
        else:
            record.append({"name": name, "fingerprint": fingerprint(raw, key), "length": len(raw)})
    return record


def fingerprint(value: bytes, key: bytes) -> str:
    """32 hex digits."""
    return hmac_sha256(key, value)[:16].hex()


def key_id(key: bytes) -> str:
    """Eight hex digits that tell one key from another and nothing more: fingerprints of two keys cannot be compared."""
    return sha256(b"doorward fingerprint key id\0" + key).hexdigest()[:8]


def fingerprint_key(home: Home) -> bytes:
    """The secret of this home, made at its first use. Raises StoreError."""
    try:
        return _read(home.fingerprint_key)
    except FileNotFoundError:
        pass
    from doorward.sessions.unnamed_file import UnnamedFile  # once in the life of a home

    made = UnnamedFile(home.path)
    made.write(os.urandom(KEY_BYTES))
    made.publish(home.fingerprint_key)
    # also when another process was first: then it is that one's key
    try:
        return _read(home.fingerprint_key)
    except FileNotFoundError as error:
        raise StoreError(f"{home.fingerprint_key} vanished") from error


def _read(path: str) -> bytes:
    if not os.path.lexists(path):
        raise FileNotFoundError(path)
    descriptor = open_regular(path)
    try:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, FILE_MODE)
        key = os.read(descriptor, KEY_BYTES + 1)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if len(key) != KEY_BYTES:
        raise StoreError(f"{path} is not a fingerprint key: move it away, and a new one is made")
    return key

"""SHA-256 and HMAC-SHA256 of short texts, without loading OpenSSL.

hashlib loads OpenSSL, and each start would pay 2.5 ms for it. The interpreter brings an implementation of its own,
which `random` in the standard library takes for the same reason. hashlib's is several times as fast on bulk: whole
outputs and files are its business.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256 as sha256
    from typing import Final
else:
    try:
        from _sha2 import sha256  # from 3.12 on
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:
            from hashlib import sha256

_BLOCK: Final = 64
"""Bytes that SHA-256 takes at a time (FIPS 180-4)."""
_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))
"""RFC 2104 §2: each byte of the key with ipad, and with opad."""


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """The 32 bytes of HMAC (RFC 2104 §2) with SHA-256."""
    if len(key) > _BLOCK:
        key = sha256(key).digest()
    key = key.ljust(_BLOCK, b"\0")
    inner = sha256(key.translate(_INNER) + message).digest()
    return sha256(key.translate(_OUTER) + inner).digest()

"""An encrypted copy of an environment, readable only with a key that is kept outside the store.

Who writes the log holds the public key alone: neither the log nor this machine can open what was sealed. A libsodium
sealed box (X25519, XSalsa20-Poly1305, an ephemeral sender key each time), by PyNaCl, which the extra `seal` brings.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from typing import Any

from doorward.sessions.home import FILE_MODE, StoreError
from doorward.sessions.sha256 import sha256

PUBLIC = "doorward-seal:"
PRIVATE = "doorward-seal-private:"
_KEY_BYTES = 32


class SealError(StoreError):
    """It cannot be sealed or opened. The text is one plain sentence, with a remedy."""


def new_key(path: str) -> str:
    """Makes a key pair: the private key goes to a new file, 0600; returns the public one as text. Raises SealError."""
    private = _nacl().PrivateKey.generate()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            os.fchmod(descriptor, FILE_MODE)
            file.write(PRIVATE + base64.b64encode(bytes(private)).decode("ascii") + "\n")
    except OSError as error:
        raise SealError(f"cannot make {path}: {error.strerror}") from error
    return PUBLIC + base64.b64encode(bytes(private.public_key)).decode("ascii")


def check_public(text: str) -> None:
    """Raises SealError when nothing can be sealed to this key."""
    _nacl()
    _key(text, PUBLIC)


def sealed(env: Mapping[str, str], public: str) -> dict[str, str]:
    """`{"key", "box"}`: which key opens it, and the box in base64. Raises SealError."""
    key = _key(public, PUBLIC)
    nacl = _nacl()
    box = nacl.SealedBox(nacl.PublicKey(key)).encrypt(json.dumps(dict(env)).encode("ascii"))
    return {"key": key_id(public), "box": base64.b64encode(box).decode("ascii")}


def opened(record: Mapping[str, Any], private: str) -> dict[str, str]:
    """The environment in an `exec` record's `sealed_environment`. Raises SealError."""
    nacl = _nacl()
    key = nacl.PrivateKey(_key(private.strip(), PRIVATE))
    public = PUBLIC + base64.b64encode(bytes(key.public_key)).decode("ascii")
    if record.get("key") != key_id(public):
        raise SealError(f"it is sealed to the key {record.get('key')}, and this one is {key_id(public)}")
    try:
        env = json.loads(nacl.SealedBox(key).decrypt(base64.b64decode(str(record.get("box")), validate=True)))
    except (ValueError, binascii.Error, _crypto_error()) as error:
        raise SealError("the sealed environment was changed: it does not open") from error
    return {str(name): str(value) for name, value in env.items()}


def key_id(public: str) -> str:
    """Eight hex digits that tell one public key from another."""
    return sha256(public.encode("ascii")).hexdigest()[:8]


def _key(text: str, kind: str) -> bytes:
    what = "public" if kind == PUBLIC else "private"
    try:
        key = base64.b64decode(text.removeprefix(kind), validate=True) if text.startswith(kind) else b""
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise SealError(f"that is no {what} key of doorward's ({kind}…): doorward sessions seal-key FILE makes a pair")
    return key


def _nacl() -> Any:
    try:
        import nacl.public
    except ImportError:
        raise SealError("sealing needs PyNaCl: pip install 'doorward[seal]'") from None
    return nacl.public


def _crypto_error() -> type[Exception]:
    import nacl.exceptions

    error: type[Exception] = nacl.exceptions.CryptoError
    return error

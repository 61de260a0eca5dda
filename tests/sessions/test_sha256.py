"""The hashes are those of hashlib and hmac, byte for byte."""

import hashlib
import hmac
import random
import subprocess
import sys

import pytest

from doorward.sessions.sha256 import hmac_sha256, sha256


@pytest.mark.parametrize("length", [0, 1, 31, 32, 55, 56, 63, 64, 65, 127, 128, 129, 1000, 70000])
def test_it_is_the_hash_and_the_keyed_hash_of_the_standard_library(length: int) -> None:
    source = random.Random(length)
    data, key = source.randbytes(length), source.randbytes(32)
    assert sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()
    assert hmac_sha256(key, data) == hmac.digest(key, data, "sha256")
    # as a key: shorter than a block, exactly one, longer than one
    assert hmac_sha256(data, b"text") == hmac.digest(data, b"text", "sha256")


def test_it_is_that_of_rfc_4231() -> None:
    """Test case 2 of RFC 4231 §4.3."""
    digest = hmac_sha256(b"Jefe", b"what do ya want for nothing?")
    assert digest.hex() == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"


def test_it_does_not_load_openssl() -> None:
    code = "import sys, doorward.sessions.sha256; print(sorted({'hashlib', '_hashlib', 'hmac'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_an_interpreter_without_its_own_takes_hashlib_s() -> None:
    code = (
        "import sys; sys.modules['_sha2'] = sys.modules['_sha256'] = None\n"
        "import hashlib, doorward.sessions.sha256 as ours; print(ours.sha256 is hashlib.sha256)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True\n"

"""The hash chain: what exactly is hashed, so that a changed, removed or moved line shows.

Every line that doorward writes ends with its own link:

    …,"metadata":{…,"chain":"<64 lower-case hex digits>"}}⏎

- Let **B** be the bytes of the line from its first byte up to and including `"chain":"`.
- Let **P** be the 64 digits of the nearest line before it that ends in a link; 64 zeros where there is none.
- The digits of the line are SHA-256(**P** ‖ **B**) in lower-case hex, **P** taken as 64 ASCII bytes.

So the digits cover every byte of the line but themselves and the closing `"}}` and LF, which are fixed, and
through **P** every line before. The bytes are taken as they stand in the file: there is no canonical form to agree on.

Bytes that stand between two linked lines (a tail that a crash tore off, lines of a writer that does not link) are
covered by the next link through `metadata.unchained = {"bytes": N, "sha256": "…"}`: the number and the hash of all
bytes after the LF of the previous linked line and before the first byte of this one, the LF that closed a torn tail off
included. Where bytes stand between and are not accounted for so, somebody put them there later.

The chain shows tampering to who has the head digest (the mirror keeps it). Without one, who can write the file can
cut its tail, or compute a new chain.
"""


from doorward.sessions.sha256 import sha256

NOTHING_BEFORE = "0" * 64
_KEY = b'"chain":"'
_CLOSING = b'"}}'
_DIGITS = rb"[0-9a-f]{64}"

# The longest metadata that is searched for at the end of a line; names are the only part without a fixed length.
METADATA_LIMIT = 16384
_METADATA = rb',"metadata":(\{"turn":[^\n]*"chain":"[0-9a-f]{64}"\})\}'


def link(previous: str, body: bytes) -> str:
    """The digits of the line that starts with `body` (which ends in `"chain":"`) after a line with `previous`."""
    digest = sha256(previous.encode("ascii"))
    digest.update(body)
    return digest.hexdigest()


def sealed(body: bytes, digits: str) -> bytes:
    """The whole line, LF included."""
    return b"%b%b%b\n" % (body, digits.encode("ascii"), _CLOSING)


def split(line: bytes) -> tuple[bytes, str] | None:
    """`body` and digits of a line without its LF; None when it does not end in a link."""
    import re  # not needed by most runs

    start = len(line) - len(_CLOSING) - 64
    if start < 0 or not line.endswith(_CLOSING) or not line.endswith(_KEY, 0, start):
        return None
    digits = line[start : start + 64]
    return (line[:start], digits.decode("ascii")) if re.fullmatch(_DIGITS, digits) else None


def metadata_at_end(ending: bytes) -> bytes | None:
    """The metadata object at the end of a line of ours, as JSON bytes; `ending` is the line's last bytes, LF left out.

    Quotes inside JSON strings are escaped, so the text of a payload cannot look like this.
    """
    import re  # not needed by most runs

    start = ending.rfind(b',"metadata":{"turn":')
    found = re.fullmatch(_METADATA, ending[start:]) if start >= 0 else None
    return found[1] if found else None

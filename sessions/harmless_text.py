"""Makes text that came from a command or a file safe to print: nothing in it can drive the terminal. Pure."""

import re

# C0 (TAB and LF stay), DEL, C1 (ECMA-48); line and paragraph separators; marks that reorder text (Unicode TR 36 §2.5:
# bidirectional embeddings, overrides, isolates and marks); invisible ones (zero width, tags, BOM); lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def harmless(text: str) -> str:
    """`text` with every such character as an escape: `\\x1b`, `\\u202e`; a byte that was no UTF-8 as `\\xff`.

    CR before LF is dropped: it moves nothing.
    """
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def harmless_line(text: str) -> str:
    """The same on one line: LF and TAB are escaped too."""
    return harmless(text.replace("\r\n", "\n")).replace("\n", "\\n").replace("\t", "\\t")


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # surrogateescape: the byte itself
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

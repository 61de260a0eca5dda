"""Text that has the shape of a credential, so that it is not shown to whoever reads a log over one's shoulder. Pure.

The original keeps it, unless `replay.redact = "write"`: what was printed is part of the scene. Shapes are those that
issuers document, or that scanners of leaked secrets look for; and values that a name beside them calls a secret.
"""

import re
from typing import Final

_SHAPES: Final = (
    (
        "private key",
        r"-----BEGIN (?P<pem>[A-Z ]*)PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END (?P=pem)PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    ("AWS key id", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("GitHub token", r"\b(?:gh[pousr]_[0-9A-Za-z]{36,255}|github_pat_[0-9A-Za-z_]{22,255})\b"),
    ("GitLab token", r"\bglpat-[0-9A-Za-z_-]{20,}"),
    ("Slack token", r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}"),
    ("Stripe key", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}\b"),
    ("Google key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("npm token", r"\bnpm_[0-9A-Za-z]{36}\b"),
    ("package index token", r"\bpypi-[0-9A-Za-z_-]{50,}"),
    ("API key", r"\bsk-[0-9A-Za-z_-]{20,}"),
    ("JSON web token", r"\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]*"),
)  # fmt: skip
_IN_URL: Final = r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/:@]{0,255}:)[^\s/@]{1,1024}(?=@)"
_HEADER: Final = (
    r"(?P<header>\b(?:proxy-)?authorization['\"]?\s{0,8}[:=]\s{0,8}['\"]?(?:(?:basic|bearer|token|digest)\s{1,8})?)"
    r"(?!\[redacted|(?:basic|bearer|token|digest)\s)[^\s'\",]{6,}"
)
_NAMED: Final = (
    r"(?P<name>(?:[A-Za-z0-9_.-]{0,64}(?:secret|password|passwd|api[_-]?key|access[_-]?key|auth[_-]?token|_token)"
    r"|\btoken)['\"]?\s{0,8}[:=]\s{0,8}['\"]?)(?![$<({\[]|\[redacted)[^\s'\",;&]{8,}"
)

_ALL: Final = re.compile(
    "|".join(
        (
            *(f"(?P<s{index}>{shape})" for index, (_, shape) in enumerate(_SHAPES)),
            f"(?P<url>{_IN_URL})",
            f"(?P<auth>(?i:{_HEADER}))",
            f"(?P<named>(?i:{_NAMED}))",
        )
    )
)
_OPENS: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")
_CLOSES: Final = re.compile(r"-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")


def redacted(text: str) -> str:
    """`text` with each such value as `[redacted: KIND]`. Twice gives the same as once."""
    return _ALL.sub(_replacement, text)


def kinds(text: str) -> list[str]:
    """What was found, each kind once, in order."""
    return list(dict.fromkeys(_kind(found) for found in _ALL.finditer(text)))


def opens_key(text: str) -> bool:
    """Whether a private key begins in `text` and does not end in it."""
    begun = [found.end() for found in _OPENS.finditer(text)]
    return bool(begun) and not _CLOSES.search(text, begun[-1])


def _kind(found: re.Match[str]) -> str:
    group = found.lastgroup or ""
    if group.startswith("s") and group[1:].isdigit():
        return _SHAPES[int(group[1:])][0]
    for name, kind in (("url", "password"), ("auth", "credentials"), ("named", "secret")):
        if found[name] is not None:
            return kind
    return next(kind for index, (kind, _) in enumerate(_SHAPES) if found[f"s{index}"] is not None)


def _replacement(found: re.Match[str]) -> str:
    before = found["scheme"] or found["header"] or found["name"] or ""
    return f"{before}[redacted: {_kind(found)}]"

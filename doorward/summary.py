"""The few lines on stderr after a run in which something was refused: each with what would allow it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

_MOST_LINES: Final = 12


def summarize(refusals: Iterable[Mapping[str, object]]) -> list[str]:
    """Lines for a person: one a place and reason, with its count and the exact option; none without refusals."""
    groups: dict[tuple[str, str, str], int] = {}
    firsts: dict[str, tuple[str, str, str]] = {}
    for refusal in refusals:
        key = _place(refusal), _why(refusal), str(refusal.get("hint") or "")
        if refusal.get("operation") and key[2]:
            # one path that is granted lets many others through: told once, by the first
            key = firsts.setdefault(key[2], key)
        groups[key] = groups.get(key, 0) + 1
    if not groups:
        return []
    total = sum(groups.values())
    lines = [f"doorward: refused {total} time{'s' if total != 1 else ''}"]
    shown = sorted(groups.items(), key=lambda item: -item[1])
    for (place, why, hint), count in shown[:_MOST_LINES]:
        lines.append(f"  {place}{f'  {count}x' if count > 1 else ''}  {why}")
        if hint:
            lines.append(f"    to allow it: {hint}")
    if len(shown) > _MOST_LINES:
        lines.append(f"  and {len(shown) - _MOST_LINES} more places; `doorward show` lists them all")
    return [printable(line) for line in lines]


def printable(text: str) -> str:
    """`text` with every control character and lone surrogate shown as an escape: a name cannot drive a terminal."""
    return "".join(
        char if char.isprintable() or char == " " else char.encode("unicode_escape", "backslashreplace").decode("ascii")
        for char in text.encode("utf-8", "backslashreplace").decode()
    )


def place_text(host: object, port: object) -> str:
    """`host:port` as a record has them: literals come without brackets there, and get them here."""
    text = f"[{host}]" if ":" in str(host) else str(host)
    return f"{text}:{port}" if port is not None else text


def _place(refusal: Mapping[str, object]) -> str:
    if refusal.get("host") is None:
        return str(refusal.get("path") or refusal.get("gate") or "the command")
    return place_text(refusal["host"], refusal.get("port"))


def _why(refusal: Mapping[str, object]) -> str:
    """The message without the place, which stands before it already."""
    return str(refusal.get("message") or refusal.get("reason")).removeprefix(f"{_place(refusal)} ")

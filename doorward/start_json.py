"""`dumps` and `loads` of the standard library's `json`, without what only its slower half needs.

`json` does its work in `_json`, but imports `re` for the case that `_json` is missing: together 4 ms of every start.
This calls `_json` as `json` does, and `json` itself where an interpreter does not have it in that form. Output is
ASCII, compact unless `spaced`; input is what another process of ours wrote: UTF-8. `value_at` reads the one value that
begins at an index, and tells where it ends: text that can stand in another document as it is. Imports nothing of
doorward: every floor may use it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _unknown(value: object) -> Any:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


class Encoded(str):
    """JSON text in place of the value it stands for: ASCII, without a line's end."""

    __slots__ = ()


class _Reading:
    """What `_json.make_scanner` reads its settings from (`json.decoder.JSONDecoder`)."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"-Infinity": float("-inf"), "Infinity": float("inf"), "NaN": float("nan")}.__getitem__


def _not_exact(name: str) -> float:
    raise ValueError(f"not JSON: {name}")


class _Exact(_Reading):
    """Without what is no JSON, for text that is kept as it is."""

    parse_constant = staticmethod(_not_exact)


def _accelerated() -> tuple[Callable[..., str], Callable[[str | bytes], Any], Callable[[str, int], tuple[Any, int]]]:
    from _json import encode_basestring_ascii, make_encoder, make_scanner

    # without a table that finds values which contain themselves, so it can be made once; those go too deep
    plainly = make_encoder(None, _unknown, encode_basestring_ascii, None, ":", ",", False, False, False)

    def dumps(value: Any, *, sort_keys: bool = False, spaced: bool = False) -> str:
        if not sort_keys and not spaced:
            try:
                return "".join(plainly(value, 0))
            except RecursionError:
                pass  # which of the two it is, is told below
        colon, comma = (": ", ", ") if spaced else (":", ",")
        write = make_encoder({}, _unknown, encode_basestring_ascii, None, colon, comma, sort_keys, False, False)
        return "".join(write(value, 0))

    scan = make_scanner(_Reading)  # type: ignore[arg-type]  # it takes whatever has the attributes

    def loads(text: str | bytes) -> Any:
        text = (text if isinstance(text, str) else text.decode("utf-8", "surrogatepass")).strip(" \t\n\r")
        try:
            value, end = scan(text, 0)
        except StopIteration as error:
            raise ValueError(f"not JSON: no value at character {error.value}") from None
        if end != len(text):
            raise ValueError(f"not JSON: more after the value, at character {end}")
        return value

    scan_exact = make_scanner(_Exact)  # type: ignore[arg-type]

    def value_at(text: str, index: int) -> tuple[Any, int]:
        try:
            return scan_exact(text, index)
        except StopIteration as error:
            raise ValueError(f"not JSON: no value at character {error.value}") from None

    if dumps({"a": [1, 2.5, None, "\udcff"]}) != '{"a":[1,2.5,null,"\\udcff"]}' or loads('{"a":[1]}') != {"a": [1]}:
        raise ImportError  # not the accelerator we know
    return dumps, loads, value_at


def _plain() -> tuple[Callable[..., str], Callable[[str | bytes], Any], Callable[[str, int], tuple[Any, int]]]:
    import json

    def dumps(value: Any, *, sort_keys: bool = False, spaced: bool = False) -> str:
        separators = (", ", ": ") if spaced else (",", ":")
        return json.dumps(value, separators=separators, allow_nan=False, sort_keys=sort_keys)

    return dumps, json.loads, json.JSONDecoder(parse_constant=_not_exact).raw_decode


try:
    dumps, loads, value_at = _accelerated()
except (ImportError, TypeError, AttributeError):  # pragma: no cover - another interpreter
    dumps, loads, value_at = _plain()

"""llhttp's parsers, as httptools has them, without what else it imports: 5 ms of the proxy's processor in every run.

`httptools/__init__.py` loads its URL parser and a class that only holds hints, and all of them `typing`, which brings
`re`, `enum` and `contextlib`. The extension module needs none of that but the word `Optional`. So it is loaded with
bare packages and a bare `typing` in their place, which are gone when it is there. Where that does not work, as with a
version that imports other things, the package is imported as any other.
"""

from __future__ import annotations

import sys
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from httptools import HttpParserError as HttpParserError
    from httptools import HttpParserInvalidMethodError as HttpParserInvalidMethodError
    from httptools import HttpParserUpgrade as HttpParserUpgrade
    from httptools import HttpRequestParser as HttpRequestParser
    from httptools import HttpResponseParser as HttpResponseParser

_PARSER = "httptools.parser.parser"
_ERRORS = "httptools.parser.errors"


def _load_alone() -> None:
    """The two modules and nothing besides. Raises ImportError; leaves no stand-in behind."""
    standing_in = []
    module = type(sys)
    try:
        path = None
        for package in ("httptools", "httptools.parser"):
            spec = PathFinder.find_spec(package, path)
            if spec is None or spec.submodule_search_locations is None:
                raise ImportError(f"{package} is no package")
            path = spec.submodule_search_locations
            sys.modules[package] = bare = module(package)
            standing_in.append(package)
            bare.__path__ = path
        if "typing" not in sys.modules:
            sys.modules["typing"] = bare = module("typing")
            standing_in.append("typing")
            bare.Optional = list  # type: ignore[attr-defined]  # for a hint, that nobody reads
        __import__(_PARSER)
    finally:
        for name in standing_in:
            del sys.modules[name]


if "httptools" not in sys.modules:
    try:
        _load_alone()
    except ImportError:
        pass
if _PARSER not in sys.modules or _ERRORS not in sys.modules:
    __import__(_PARSER)
if not TYPE_CHECKING:
    HttpRequestParser = sys.modules[_PARSER].HttpRequestParser
    HttpResponseParser = sys.modules[_PARSER].HttpResponseParser
    HttpParserError = sys.modules[_ERRORS].HttpParserError
    HttpParserInvalidMethodError = sys.modules[_ERRORS].HttpParserInvalidMethodError
    HttpParserUpgrade = sys.modules[_ERRORS].HttpParserUpgrade

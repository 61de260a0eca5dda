"""The grammar of shell scripts: tree-sitter-bash, loaded without what its package imports besides."""

from __future__ import annotations

import sys
from _frozen_importlib import module_from_spec
from _frozen_importlib_external import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from tree_sitter import Parser


def parser() -> Parser:
    """A parser for bash, which also reads what sh, dash, ksh and zsh have in common with it.

    The packages of the library and of the grammar import `typing` and `importlib.resources` for what nobody asks for
    here: 25 ms, where their extension modules take 6. So those are loaded alone; where one is not found its package
    is imported.
    """
    library: Any = _extension_of("tree_sitter")
    if library is None:
        import tree_sitter as library
    grammar: Any = _extension_of("tree_sitter_bash")
    if grammar is None:
        import tree_sitter_bash as grammar
    made: Parser = library.Parser(library.Language(grammar.language()))
    return made


def _extension_of(package: str) -> ModuleType | None:
    """The compiled module `_binding` of `package`, without the package."""
    for folder in sys.path:
        finder = FileFinder(f"{folder}/{package}", (ExtensionFileLoader, EXTENSION_SUFFIXES))
        spec = finder.find_spec("_binding")
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return None

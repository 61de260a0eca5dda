"""The grammar of shell scripts: tree-sitter-bash, loaded without what its package imports besides."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Parser


def parser() -> "Parser":
    """A parser for bash, which also reads what sh, dash, ksh and zsh have in common with it.

    The package of the grammar imports importlib.resources for files nobody asks for here: 20 ms, where the grammar
    itself takes one. So its extension module is loaded alone; where that is not found the package is imported.
    """
    import tree_sitter

    language = _language_alone()
    if language is None:
        from tree_sitter_bash import language as whole

        language = whole()
    return tree_sitter.Parser(tree_sitter.Language(language))


def _language_alone() -> object:
    import importlib.machinery as machinery
    import os

    for folder in sys.path:
        finder = machinery.FileFinder(
            os.path.join(folder, "tree_sitter_bash"),
            (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        )
        spec = finder.find_spec("_binding")
        if spec is not None and spec.loader is not None:
            import importlib.util as util

            module = util.module_from_spec(spec)
            spec.loader.exec_module(module)
            language: object = module.language()
            return language
    return None

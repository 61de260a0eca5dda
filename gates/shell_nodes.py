"""What the nodes and names of a script mean to its reader: tables for shell_script.py."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

CONTAINERS: Final = frozenset(
    ("program", "list", "pipeline", "subshell", "compound_statement", "do_group", "if_statement", "elif_clause",
     "else_clause", "while_statement", "case_statement", "case_item", "negated_command", "for_statement",
     "c_style_for_statement", "redirected_statement", "function_definition", "test_command", "ternary_expression",
     "variable_assignments", "command_substitution", "process_substitution", "string", "concatenation",
     "expansion", "arithmetic_expansion", "binary_expression", "unary_expression", "parenthesized_expression",
     "postfix_expression", "array", "subscript", "herestring_redirect", "heredoc_body")
)  # fmt: skip
"""What is nothing but the commands in it: they are found below it."""
TEXT: Final = frozenset(
    ("word", "string_content", "raw_string", "ansi_c_string", "translated_string", "number", "variable_name",
     "special_variable_name", "simple_expansion", "comment", "heredoc_start", "heredoc_end", "heredoc_content",
     "file_descriptor", "test_operator", "regex", "extglob_pattern", "brace_expression", "command_name")
)  # fmt: skip
"""What is text, but for the substitutions in it."""
CHANGING: Final = {
    "alias": "it defines an alias",
    "unalias": "it changes an alias",
    "source": "it runs the lines of another file",
    ".": "it runs the lines of another file",
    "enable": "it changes what the shell's own commands are",
    "hash": "it changes where programs are found",
    "shopt": "it changes how the shell reads",
    "bind": "it ties commands to keys",
    "complete": "it ties commands to completion",
}
"""Commands after which a name can mean anything, and why."""
RESERVED: Final = frozenset(
    ("!", "{", "}", "case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "in", "then", "until", "while",
     "function", "select", "[[", "]]")
)  # fmt: skip
"""Words that are no command where one could stand (POSIX.1-2024, 2.4)."""
BASHISMS: Final = frozenset(
    ("ansi_c_string", "test_command", "herestring_redirect", "process_substitution", "array", "c_style_for_statement",
     "brace_expression", "translated_string", "extglob_pattern")
)  # fmt: skip
"""What a plain sh reads otherwise than bash, or not at all: `[[ a && rm x ]]` runs rm there."""
PLAIN_SHELLS: Final = frozenset(("sh", "dash", "ash"))
"""Shells that need not be bash."""
ZSH_PREFIXES: Final = frozenset(("-", "foreach", "nocorrect", "noglob", "repeat"))
"""Words before a command that only zsh knows (zshmisc(1), "PRECOMMAND MODIFIERS", "ALTERNATE FORMS")."""
ASSIGNING: Final = frozenset(
    ("read", "mapfile", "readarray", "getopts", "eval", "source", ".", "printf", "let", "trap", "wait")
)
"""Commands after which a variable can hold anything."""
MOVING: Final = frozenset(("cd", "pushd", "popd", "chdir"))
"""Commands that change the working folder."""

"""Which variables of a script have one certain value: set once, in plain sight, and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from doorward.gates.shell_nodes import ASSIGNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from tree_sitter import Node


_TELLING: Final = frozenset(
    ("unset_command", "function_definition", "command_name", "declaration_command", "variable_assignment",
     "for_statement", "c_style_for_statement", "select_statement")
)  # fmt: skip
"""Nodes by which a script sets variables and defines functions, or may."""


def telling(root: Node) -> list[tuple[str, Node]]:
    """Every node of a tree that says something of variables and functions, with its kind."""
    found = []
    ahead = [root]
    while ahead:
        node = ahead.pop()
        kind = node.type
        if kind in _TELLING:
            found.append((kind, node))
        if node.named_child_count:
            ahead += node.named_children
    return found


def plain_variables(shell: str, nodes: Sequence[tuple[str, Node]]) -> dict[bytes, tuple[int, Node]]:
    """From what `telling` found: name to the byte from which on it holds, and the node of its value. None at all where
    anything in the script could set a variable in a way that is not seen."""
    if shell == "zsh":
        return {}  # where `${a::=b}` assigns
    assigned: dict[bytes, list[Node]] = {}
    for kind, node in nodes:
        if _hides_assignments(kind, node):
            return {}
        if kind in ("variable_assignment", "for_statement", "c_style_for_statement", "select_statement"):
            name = node.child_by_field_name("name") or node.child_by_field_name("variable")
            if name is not None and name.text is not None:
                # `a[0]=x` sets what `$a` is
                assigned.setdefault(name.text.partition(b"[")[0], []).append(node)
    found: dict[bytes, tuple[int, Node]] = {}
    for variable, places in assigned.items():
        node = places[0]
        value = node.child_by_field_name("value")
        # not behind `&&`, not in a branch or a loop: it happens, and happens once
        plain_sight = node.parent is not None and node.parent.type == "program"
        alone = len(places) == 1 and (node.text or b"").startswith(variable + b"=")
        if alone and node.type == "variable_assignment" and plain_sight and value is not None:
            found[variable] = (node.end_byte, value)
    return found


def _hides_assignments(kind: str, node: Node) -> bool:
    if kind == "command_name":
        return (node.text or b"").decode("utf-8", "replace") in ASSIGNING
    if kind == "declaration_command":
        # `declare -n a=b` makes two names one, `declare "a=$b"` is text
        return any(child.type not in ("variable_assignment", "variable_name") for child in node.named_children)
    return False

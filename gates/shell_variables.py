"""Which variables of a script have one certain value: set once, in plain sight, and by nothing else."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from doorward.gates.shell_nodes import ASSIGNING

if TYPE_CHECKING:
    from tree_sitter import Node


def named(root: "Node") -> "Iterator[Node]":
    """Every named node of a tree."""
    ahead = [root]
    while ahead:
        node = ahead.pop()
        yield node
        if node.named_child_count:
            ahead += node.named_children


def plain_variables(shell: str, nodes: "Sequence[Node]") -> "dict[bytes, tuple[int, Node]]":
    """Name to the byte from which on it holds, and the node of its value. None at all where anything in the script
    could set a variable in a way that is not seen."""
    if shell == "zsh":
        return {}  # where `${a::=b}` assigns
    assigned: dict[bytes, list[Node]] = {}
    for node in nodes:
        if _hides_assignments(node):
            return {}
        if node.type in ("variable_assignment", "for_statement", "c_style_for_statement", "select_statement"):
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


def _hides_assignments(node: "Node") -> bool:
    if node.type == "command_name":
        return (node.text or b"").decode("utf-8", "replace") in ASSIGNING
    if node.type == "declaration_command":
        # `declare -n a=b` makes two names one, `declare "a=$b"` is text
        return any(child.type not in ("variable_assignment", "variable_name") for child in node.named_children)
    return False

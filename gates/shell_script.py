"""A shell script read with a real grammar (tree-sitter-bash) and taken apart into its commands.

Every node of the tree is either understood or a doubt: what the grammar knows and this file does not is never passed
over. A variable is filled in only where it was set once, in plain sight and to plain text; any other expansion is an
unknown word, and outside quotes any number of them, as is a glob. Aliases, `source`, `eval` of what is not known and
the like make everything uncertain, since from then on a name can mean anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from doorward.gates.command_knowledge import program_name
from doorward.gates.command_part import ANYTHING, Part, Word
from doorward.gates.known_commands import HARMLESS_TARGETS
from doorward.gates.shell_nodes import (
    BASHISMS,
    CHANGING,
    CONTAINERS,
    MOVING,
    PLAIN_SHELLS,
    RESERVED,
    TEXT,
    ZSH_PREFIXES,
)
from doorward.gates.shell_variables import plain_variables, telling
from doorward.gates.shell_words import Words
from doorward.gates.unfolding import DEEPEST, MOST_PARTS, Surroundings, feeds_interpreter, unfold_words
from doorward.gates.wording import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from tree_sitter import Node, Parser

LONGEST: Final = 64 << 10
"""Bytes of a script that is read; a longer one is not understood. Nobody reads it either."""
_DEEPEST_NODE: Final = 120
"""Nesting of a tree that is followed."""

_parser: Parser | None = None


def unfold_script(shell: str, script: str, around: Surroundings) -> list[Part]:
    """The parts of `script`, a text for `shell`."""
    source = script.encode("utf-8", "surrogateescape")
    if around.depth > DEEPEST:
        return [_doubtful(around, "scripts within scripts deeper than anybody would write")]
    if len(source) > LONGEST:
        return [_doubtful(around, f"the script has {len(source) >> 10} KiB, which nobody reads")]
    root = _grammar().parse(source).root_node
    reading = _Reading(shell, source, root, around)
    reading.walk(root, 0)
    parts = reading.parts
    why = reading.doubt or reading.odd_words
    if not why and root.has_error:
        why = "the grammar cannot read all of the script"
    if why:
        parts.append(_doubtful(around, why))
    if len(parts) > MOST_PARTS:
        return [_doubtful(around, f"the script has more than {MOST_PARTS} commands")]
    return parts or [Part(("true",), "", around.env, around.outer)]


def _doubtful(around: Surroundings, why: str) -> Part:
    return Part(ANYTHING, why, around.env, around.outer, moved=around.moved)


def _grammar() -> Parser:
    global _parser
    if _parser is None:
        from doorward.gates.shell_grammar import parser

        _parser = parser()
    return _parser


class _Reading:
    """One script while it is taken apart."""

    def __init__(self, shell: str, source: bytes, root: Node, around: Surroundings) -> None:
        self.parts: list[Part] = []
        self.doubt = _odd_bytes(source)
        self._source = source
        self._plain = shell in PLAIN_SHELLS
        self._zsh = shell == "zsh"
        self._more: dict[int, list[Node]] = {}
        self._around = around
        self._now: Surroundings | None = around
        self._env: Mapping[str, str] = around.env
        self._moved = around.moved
        # only where the text could hold what is looked for
        nodes = telling(root) if b"$" in source or b"(" in source or b"function" in source else []
        removes = any(kind == "unset_command" for kind, _ in nodes)
        # functions that are certain to be there from some byte on; their bodies are judged where they stand
        self._functions = {
            name.text: node.end_byte
            for kind, node in nodes
            if kind == "function_definition" and (name := node.child_by_field_name("name")) is not None
            if not removes and node.parent is not None and node.parent.type == "program"
        }
        uncertain = removes or b"((" in source or b"IFS" in source
        sets_home = b"HOME=" in source
        self._words = Words(
            shell, {} if uncertain else plain_variables(shell, nodes), "" if uncertain or sets_home else around.home
        )

    @property
    def odd_words(self) -> str:
        """Why a word cannot be what the grammar says, or ""."""
        return "the grammar takes what no word can hold for part of one" if self._words.odd else ""

    # --- the tree ----------------------------------------------------------------------------------------------------

    def walk(self, node: Node, depth: int) -> None:
        """Take the commands below `node` in the order they are written."""
        kind = node.type
        if depth > _DEEPEST_NODE:
            self.doubt = self.doubt or "it is nested deeper than anybody would write"
            return
        if len(self.parts) > MOST_PARTS:
            return
        if kind == "test_command" and not (node.text or b"").startswith(b"[["):
            self._bracketed(node)
        elif self._plain and kind in BASHISMS:
            self._differs()
        if kind == "command":
            self._command(node, depth)
        elif kind == "redirected_statement":
            self._redirected(node, depth)
        elif kind in ("unset_command", "declaration_command"):
            self._on_one_line(node)
            self._expansions_in(node, depth)
        elif kind == "pipeline":
            self._pipeline(node, depth)
        elif kind == "variable_assignment":
            self._assign(node, depth)
        elif kind in TEXT:
            self._expansions_in(node, depth)
        else:
            if kind == "ERROR" or node.is_missing:
                self.doubt = self.doubt or "the grammar cannot read all of the script"
            elif kind not in CONTAINERS:
                self.doubt = self.doubt or f"{kind.replace('_', ' ')} is not understood"
            for child in self._children(node):
                self.walk(child, depth + 1)

    def _bracketed(self, node: Node) -> None:
        """`[ … ]` is a command like any other: what the grammar takes for operators in it, a shell acts on."""
        ahead = list(node.children)
        while ahead:
            child = ahead.pop()
            if not child.is_named and child.type in ("&&", "||", "<", ">", "|", ";", "&", "("):
                self.doubt = self.doubt or "there is more between its brackets than a test"
            elif child.type not in ("command_substitution", "string", "process_substitution"):
                ahead += child.children

    def _differs(self) -> None:
        self.doubt = self.doubt or "sh need not read it as bash does"

    def _on_one_line(self, node: Node) -> None:
        """A doubt if the grammar has taken the next line for more words of this one."""
        for one, following in pairwise(node.children):
            if b"\n" in self._source[one.end_byte : following.start_byte].replace(b"\\\n", b""):
                self.doubt = self.doubt or "the grammar does not read its lines as a shell does"

    def _expansions_in(self, node: Node, depth: int) -> None:
        if node.named_child_count:
            for child in self._children(node) if node.type != "string" else node.named_children:
                self.walk(child, depth + 1)

    def _children(self, node: Node) -> list[Node]:
        """The named nodes below `node`; a doubt if there is text between its nodes that belongs to none of them."""
        found: list[Node] = []
        end = node.start_byte
        for child in node.children:
            if child.start_byte != end:
                self._blank(self._source[end : child.start_byte])
            end = child.end_byte
            if child.is_named:
                found.append(child)
            elif self._plain and child.type in ("|&", "((", "&>", "&>>"):
                self._differs()
        return found

    def _blank(self, gap: bytes) -> None:
        if gap not in (b" ", b"\n") and gap.replace(b"\\\n", b"").strip(b" \t\n"):
            self.doubt = self.doubt or "the grammar passes over a part of the script"

    def _pipeline(self, node: Node, depth: int) -> None:
        """`a | b`: what comes into an interpreter without a script of its own is run by it."""
        for place, child in enumerate(self._children(node)):
            before = len(self.parts)
            self.walk(child, depth + 1)
            if place:
                self._fed(before)

    def _fed(self, since: int) -> None:
        for number in range(since, len(self.parts)):
            part = self.parts[number]
            name = feeds_interpreter(part.words)
            if name:
                risk = f"what comes through a pipe is run by {plain(name)}"
                self.parts[number] = part._replace(risks=(*part.risks, risk))

    def _redirected(self, node: Node, depth: int) -> None:
        body = node.child_by_field_name("body")
        writes: list[str] = []
        reads: list[str] = []
        unclear = ""
        input_text: str | None = None
        fed = False
        redirects = [child for child in self._children(node) if child.type.endswith("redirect")]
        more: list[Node] = []
        for redirect in redirects:
            for each in (redirect, *(child for child in redirect.named_children if child.type == "file_redirect")):
                if each.type == "file_redirect":
                    unclear = self._file_redirect(each, writes, reads, more, depth) or unclear
            if redirect.type in ("heredoc_redirect", "herestring_redirect"):
                fed = True
                input_text = self._input_text(redirect)
                self._heredoc_rest(redirect, depth)
        before = len(self.parts)
        if more:
            self._hand_on(more, body)
        if body is not None:
            self.walk(body, depth + 1)
        if fed:
            self._interpreted(before, input_text)
        self._effects(tuple(writes), unclear)
        if reads and len(self.parts) > before:
            part = self.parts[before]
            self.parts[before] = part._replace(reads=(*part.reads, *reads))

    def _hand_on(self, more: list[Node], body: Node | None) -> None:
        """Words behind a redirection are words of the command, which the grammar takes for targets: `git >f push`."""
        while body is not None and body.type in ("list", "pipeline", "negated_command", "redirected_statement"):
            body = body.named_children[-1]
        if body is None or body.type != "command":
            self.doubt = self.doubt or "there are words behind a redirection that belong to no command"
        else:
            self._more[body.id] = [*more, *self._more.get(body.id, ())]

    def _interpreted(self, since: int, text: str | None) -> None:
        """A here-document that goes into a shell is a script."""
        for number in range(since, len(self.parts)):
            part = self.parts[number]
            name = feeds_interpreter(part.words)
            if not name:
                continue
            around = self._here()._replace(depth=self._around.depth + 1)
            if text is not None and name in ("sh", "bash", "dash", "zsh", "ksh", "mksh", "ash"):
                self.parts[number] = part._replace(words=("true",), doubt="")
                if self.parts[number + 1 :] and self.parts[number + 1].words == ANYTHING:
                    del self.parts[number + 1 :]  # what it is given is known
                self.parts += unfold_script(name, text, around)
                return
            self.parts[number] = part._replace(doubt=f"{name} runs the text that it is given")

    def _heredoc_rest(self, redirect: Node, depth: int) -> None:
        """What stands behind `<<WORD` on its line, and what is expanded in the body."""
        for child in redirect.named_children:
            if child.type == "file_redirect":
                continue
            if child.type in ("heredoc_start", "heredoc_end"):
                continue
            if child.type in ("heredoc_body", "string", "word", "raw_string", "concatenation", "simple_expansion",
                              "expansion", "command_substitution", "ansi_c_string"):  # fmt: skip
                self._expansions_in(child, depth) if child.type != "command_substitution" else self.walk(child, depth)
            else:
                before = len(self.parts)
                self.walk(child, depth + 1)
                if child.type in ("pipeline", "command"):
                    self._fed(before)  # `cat <<E | sh`

    def _input_text(self, redirect: Node) -> str | None:
        """The text of a here-document with a quoted delimiter, or of a here-string that is certain; None: not known."""
        if redirect.type == "herestring_redirect":
            word = self._words.of(redirect.named_children[-1]) if redirect.named_children else None
            return word if isinstance(word, str) else None
        body = next((child for child in redirect.named_children if child.type == "heredoc_body"), None)
        if body is None or any(child.type != "heredoc_content" for child in body.named_children):
            return None
        text = body.text or b""
        start = next((child.text or b"" for child in redirect.named_children if child.type == "heredoc_start"), b"")
        if not start.startswith((b"'", b'"', b"\\")) and any(char in text for char in b"$`\\"):
            return None
        return text.decode("utf-8", "surrogateescape")

    def _file_redirect(self, node: Node, writes: list[str], reads: list[str], more: list[Node], depth: int) -> str:
        """Take one redirection; `more` gets the words behind its target. Returns why that is not certain, or ""."""
        self._on_one_line(node)
        operator = next((child.type for child in node.children if not child.is_named), "")
        target = node.child_by_field_name("destination")
        if target is None:
            return "" if operator in (">&-", "<&-") else "a redirection is not understood"
        self.walk(target, depth + 1)
        more += [child for child in self._children(node) if child.start_byte > target.start_byte]
        word = self._words.of(target)
        if operator in (">&", "<&") and isinstance(word, str) and (word.isdecimal() or word == "-"):
            return ""
        if operator == "<" and target.type == "process_substitution":
            return ""
        if not isinstance(word, str):
            return "where it writes is known only when it runs" if operator != "<" else ""
        if operator == "<":
            reads.append(word)
        else:
            writes.append(word)
        return ""

    def _effects(self, writes: tuple[str, ...], unclear: str) -> None:
        """A redirection to a file is an effect of its own, whatever rule allows the command."""
        around = self._here()
        places = tuple(target for target in writes if target not in HARMLESS_TARGETS)
        if places:
            self.parts.append(Part((), "", around.env, around.outer, writes=places, moved=self._moved))
        if unclear:
            self.parts.append(Part((), unclear, around.env, around.outer, moved=self._moved))

    def _assign(self, node: Node, depth: int) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if value is not None:
            self.walk(value, depth + 1)
        if name is None or name.text is None:
            return
        if name.type == "subscript":
            self.walk(name, depth + 1)
        word = self._words.of(value) if value is not None else ""
        # a new mapping each time: the parts so far keep theirs
        text = name.text.decode("utf-8", "surrogateescape")
        self._env = {**self._env, text: word if isinstance(word, str) else "\0"}
        self._now = None

    def _here(self) -> Surroundings:
        if self._now is None:
            self._now = self._around._replace(env=self._env, moved=self._moved)
        return self._now

    # --- one command -------------------------------------------------------------------------------------------------

    def _command(self, node: Node, depth: int) -> None:
        """One command; or several, where the grammar has read over the end of a line."""
        words: list[Word] = []
        env: dict[str, str] = {}
        writes: list[str] = []
        reads: list[str] = []
        unclear = ""
        given: list[Node] = []
        end = node.start_byte
        before = len(self.parts)
        ahead = node.children
        if self._more:
            ahead = [*ahead, *self._more.pop(node.id, ())]
        for place, child in enumerate(ahead):
            kind = child.type
            if end < child.start_byte and end != node.start_byte and place < node.child_count:
                gap = self._source[end : child.start_byte]
                if gap != b" " and self._ends_line(gap):
                    self._finish(words, env, node.start_byte)
                    words, env, before = [], {}, len(self.parts)
            elif end == child.start_byte != node.start_byte and not kind.endswith("redirect"):
                self.doubt = self.doubt or "the grammar does not read its words as a shell does"
            end = child.end_byte
            if kind == "variable_assignment":
                name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
                word = self._words.of(value) if value is not None else ""
                if name is not None and name.text is not None:
                    env[name.text.decode("utf-8", "surrogateescape")] = word if isinstance(word, str) else "\0"
                if value is not None:
                    self.walk(value, depth + 1)
            elif kind == "herestring_redirect":
                if self._plain:
                    self._differs()
                given.append(child)
                self._expansions_in(child, depth)
            elif kind == "file_redirect":
                more: list[Node] = []
                unclear = self._file_redirect(child, writes, reads, more, depth) or unclear
                if more:
                    self.doubt = self.doubt or "there are words behind a redirection that belong to no command"
            elif kind == "command_name":
                inner = child.named_children[0] if child.named_children else child
                words.append(self._words.of(inner))
                if inner.named_child_count:
                    self.walk(inner, depth + 1)
            elif kind == "comment":
                pass
            elif child.is_named:
                words.append(self._words.of(child))
                # of a leaf there is nothing to take apart
                if child.named_child_count or (self._plain and kind in BASHISMS):
                    self.walk(child, depth + 1)
            else:
                # an operator the grammar leaves nameless among the words, such as a lone `$`
                words.append(None)
                if child.text != b"$":
                    self.doubt = self.doubt or "the grammar does not read its words as a shell does"
        self._finish(words, env, node.start_byte)
        for each in given:
            self._interpreted(before, self._input_text(each))
        if writes or unclear:
            self._effects(tuple(writes), unclear)
        if reads and len(self.parts) > before:
            self.parts[before] = self.parts[before]._replace(reads=(*self.parts[before].reads, *reads))

    def _ends_line(self, gap: bytes) -> bool:
        """What lies between two words: does it end the command? The grammar takes a line's end for a blank at times."""
        self._blank(gap)
        return b"\n" in gap.replace(b"\\\n", b"")

    def _finish(self, words: list[Word], env: Mapping[str, str], at: int) -> None:
        """Take the words so far as a command."""
        if not words:
            return
        first = words[0]
        if isinstance(first, str) and ("=" in first or first in RESERVED):
            self.doubt = self.doubt or "the grammar does not read its lines as a shell does"
        if self._is_function(first, at):
            return
        around = self._here()
        self._take(words, around._replace(env={**self._env, **env}) if env else around)

    def _is_function(self, name: Word, at: int) -> bool:
        """True for a call of the script's own function."""
        return isinstance(name, str) and self._functions.get(name.encode("utf-8", "surrogateescape"), at) < at

    def _take(self, words: list[Word], around: Surroundings) -> None:
        if not words:
            return
        first = words[0]
        if isinstance(first, str):
            if self._zsh and (first in ZSH_PREFIXES or first.startswith("!")):  # `ls &!rm`: rm runs
                self.doubt = self.doubt or f"{first} stands before a command in zsh"
            if first in CHANGING:
                self.doubt = self.doubt or CHANGING[first]
            if first == "exec" and len(words) == 1:
                return
            if first in MOVING:
                self._moved = True
                self._now = None
        self.parts += unfold_words(words, around)
        if isinstance(first, str) and program_name(first) in ("eval", "trap") and self._functions:
            self.doubt = self.doubt or f"{first} can call a function of the script"


def _odd_bytes(source: bytes) -> str:
    """Why the grammar's reading of the text cannot be the shell's, or ""."""
    if b"\r" in source:
        return "there is a carriage return in the script, which a shell takes for part of a word"
    if b"\0" in source:
        return "there is a NUL in the script"
    place = source.find(b"\\\n")
    while place >= 0:
        # to a shell it is nothing at all, to the grammar the end of a word
        if place and source[place - 1 : place] not in (b" ", b"\t", b"\n"):
            return "a word goes on behind a line's end"
        place = source.find(b"\\\n", place + 2)
    return ""

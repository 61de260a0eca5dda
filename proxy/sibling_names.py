"""What is ready for names whose sibling was asked about: records and answers with holes for what differs.

Siblings are names right below one parent. Rules that spell none of them out decide all alike, so that for two questions
that differ in number and first label everything else is the same: how the rest of the name reads, what goes on record,
what is answered. A client that asks for many names asks for siblings most often, and it waits for each thing that is
done before an answer; after a pause, when nothing is in the processor's caches, several times as long.
"""

from __future__ import annotations

import os

from doorward.allowlists.decision import Unsaid
from doorward.allowlists.host import Name
from doorward.proxy.carried_data import NOISE_FROM
from doorward.proxy.name_judgement import about_name
from doorward.proxy.record_form import HOLE, PLAIN, Form
from doorward.start_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from doorward.allowlists.decision import Decision
    from doorward.proxy.dns_message import Question
    from doorward.proxy.policy import Policy
    from doorward.proxy.records import Item

_REMEMBERED: Final = 256  # kinds of questions
_LONGEST_NAME: Final = 253  # RFC 1035 §2.3.4
_LABEL_AT: Final = 13  # behind the header and the first label's length (RFC 1035 §4.1)
_DATA_AT: Final = 12  # in an answer's record: behind the pointer, type, class, seconds and length (RFC 1035 §4.1.3)
_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz0123456789_-"  # as `allowlists.host` takes them

# Stands for what differs while a text is made ready. No other text holds it, and a shell takes it as it takes a name.
_MARK: Final = f"HOLE{os.urandom(8).hex()}"
_PROCESS: Final = "\x02"  # where the process goes


class Ready:
    """What all questions of one kind have in common. `policy`: under which; `wire_length` is that of their names
    without the first label."""

    __slots__ = ("_answer", "_form", "_holes", "_process", "_suffix", "_text", "allowed", "kind", "policy",
                 "wire_length")  # fmt: skip

    def __init__(
        self,
        policy: Policy,
        question: Question,
        decision: Decision,
        items: list[Item],
        reply: bytes,
        data: bytes | None,
    ) -> None:
        """Of one of them: the rules' decision about its name, what was put on record, and the answer with `data` in it.
        Raises ValueError where that is not of the form known here."""
        self.policy = policy
        self.kind = question.kind
        self.allowed = data is not None  # the answer is an address
        first = question.labels[0]
        self._suffix = question.name[len(first) :].lower().decode("ascii")
        self.wire_length = len(question.raw) - 4 - 1 - len(first)
        if [item["type"] for item in items] != (["network"] if self.allowed else ["network", "refusal"]):
            raise ValueError("another kind of record")
        if self._suffix.encode("ascii").translate(None, PLAIN):
            raise ValueError("another kind of name")
        marked = [f"\t{item['type']}\t{_marked(item['payload'], decision)}" for item in items]
        self._text, self._holes = _open("".join(marked))
        self._process = ""
        self._form = Form("")  # with that process in it
        # what stands before the question, behind it, and behind the data
        behind = reply[_LABEL_AT - 1 + len(question.raw) :]
        to = _DATA_AT if self.allowed else len(behind)
        self._answer = reply[2 : _LABEL_AT - 1], behind[:to], behind[to + len(data or b"") :]

    def read(self, data: bytes) -> tuple[str, bytes] | None:
        """The name a question is about, and the same as it came but for case; None for one that has to be read in
        full."""
        size = data[_LABEL_AT - 1]
        label = data[_LABEL_AT : _LABEL_AT + size].lower()
        # a longer label may carry data
        if not 0 < size < NOISE_FROM or label.translate(None, _LETTERS):
            return None
        name = label.decode("ascii") + self._suffix
        if len(name) > _LONGEST_NAME or self.policy.rules.decided_alone(name):
            return None
        if not self.allowed and label == b"www":  # about which more is said (`wording.not_allowed`)
            return None
        return name, data[_LABEL_AT - 1 : _LABEL_AT + size + self.wire_length].lower()

    def record(self, name: str, connection: str, process: str, address: str) -> tuple[Form, list[str]]:
        """The record of one more, as `Sink.submit_form` takes it. `process` is JSON."""
        if process is not self._process:
            self._process, self._form = process, Form(self._text.replace(_PROCESS, process))
        said = name, connection, address
        return self._form, [said[hole] for hole in self._holes]

    def reply(self, query: bytes, data: bytes) -> bytes:
        """The answer, with `data`."""
        before, behind, end = self._answer
        length = _LABEL_AT + query[_LABEL_AT - 1] + self.wire_length + 4
        return query[:2] + before + query[_LABEL_AT - 1 : length] + behind + data + end


class Siblings:
    """What is ready in one run."""

    def __init__(self) -> None:
        self._ready: dict[bytes, Ready] = {}

    def find(self, data: bytes, policy: Policy) -> Ready | None:
        """What is ready for a question, if anything is."""
        ready = self._ready.get(_kind(data)) if len(data) > _LABEL_AT else None
        return ready if ready is not None and ready.policy is policy else None

    def learn(
        self,
        data: bytes,
        policy: Policy,
        question: Question,
        decision: Decision,
        items: list[Item],
        reply: bytes,
        answer: bytes | None,
    ) -> None:
        """One was judged, `decision` being what rules say about its name and nothing else having been looked at."""
        if len(question.labels) < 2 or not isinstance(decision.said, Unsaid):
            return
        if policy.rules.decided_alone(question.name.lower().decode("ascii")):
            return
        try:
            ready = Ready(policy, question, decision, items, reply, answer)
        except ValueError:  # e.g. nobody found out who asked
            return
        self._ready[_kind(data)] = ready
        if len(self._ready) > _REMEMBERED:
            del self._ready[next(iter(self._ready))]


def _kind(data: bytes) -> bytes:
    """A message without its number and the first label."""
    return data[2 : _LABEL_AT - 1] + data[_LABEL_AT + data[_LABEL_AT - 1] :]


def _marked(payload: dict[str, Any], decision: Decision) -> str:
    """The JSON of a payload with marks for what differs. Raises ValueError for one without a process."""
    if "process" not in payload:
        raise ValueError("nobody found out who asked")
    marked = {**payload, "host": _MARK, "connection": f"{_MARK}.connection", "process": f"{_MARK}.process"}
    if payload.get("address") is not None:
        marked["address"] = f"{_MARK}.address"
    if "message" in payload:
        assert isinstance(decision.said, Unsaid)
        words = decision.said.about(decision.host, Name(_MARK)).words()
        marked["message"], marked["hint"] = about_name(words, _MARK, decision.port), words.hint
    return dumps(marked)


def _open(marked: str) -> tuple[str, list[int]]:
    """The same with holes, and of each what goes there: 0 for the name, 1 for the connection, 2 for the address."""
    first, *rest = marked.replace(f'"{_MARK}.process"', _PROCESS).split(_MARK)
    holes = []
    text = first
    for part in rest:
        what = 1 if part.startswith(".connection") else 2 if part.startswith(".address") else 0
        holes.append(what)
        text += HOLE + part.removeprefix(("", ".connection", ".address")[what])
    return text, holes

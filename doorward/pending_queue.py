"""The pending queue from the side that answers: what waits, and an answer to it."""

from __future__ import annotations

import json
import os
import socket

from doorward.errors import EngineError
from doorward.gates.answer import Reply
from doorward.pending import socket_address
from doorward.question import Question, question_from
from doorward.sessions.home import Home, StoreError
from doorward.sessions.regular_file import open_regular

_ANSWER_TIME_S = 10.0
"""How long the waiting side may take to write an answer down."""


class TooLate(Exception):
    """Nobody waits for this answer any more."""


def waiting(home: Home) -> list[Question]:
    """Every question that somebody waits on, oldest first. What a dead run has left is tidied away."""
    found = []
    for name in _names(home):
        question = _read(home, name)
        if question is None or not _is_alive(home, name):
            _tidy(home, name)
        else:
            found.append(question)
    return sorted(found, key=lambda question: (question.asked_at, question.id))


def answer(home: Home, question: Question, reply: Reply) -> str:
    """Give an answer. Returns "" if it was taken, else why not. Raises TooLate, EngineError."""
    message = json.dumps({"answer": str(reply.answer), "scope": str(reply.scope)}).encode("ascii") + b"\n"
    heard = b""
    try:
        with _connected(home, question.id) as connection:
            connection.settimeout(_ANSWER_TIME_S)
            connection.sendall(message)
            while not heard.endswith(b"\n") and (data := connection.recv(4096)):
                heard += data
    except TimeoutError:
        raise EngineError(
            "the run that asked has not taken the answer in time", "see its rollout with `doorward show`"
        ) from None
    except OSError:
        raise TooLate from None
    if not heard:
        raise TooLate  # somebody else's answer came first
    document = json.loads(heard)
    return "" if document["taken"] else str(document["why"])


def _names(home: Home) -> list[str]:
    try:
        entries = os.listdir(home.approvals)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise EngineError(f"cannot read {home.approvals}: {error.strerror}") from None
    return [entry.removesuffix(".json") for entry in entries if entry.endswith(".json")]


def _read(home: Home, name: str) -> Question | None:
    try:
        with open(open_regular(f"{home.approvals}/{name}.json"), "rb") as file:
            question = question_from(json.loads(file.read()))
    except (StoreError, OSError, ValueError, KeyError, TypeError):
        return None
    return question if question.id == name else None


def _is_alive(home: Home, name: str) -> bool:
    try:
        _connected(home, name).close()
    except BlockingIOError:
        return True  # its backlog is full
    except OSError:
        return False
    return True


def _connected(home: Home, name: str) -> socket.socket:
    """Raises OSError where nobody listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(home.approvals, name) as address:
            connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def _tidy(home: Home, name: str) -> None:
    for ending in (".json", ".sock"):
        try:
            os.unlink(f"{home.approvals}/{name}{ending}")
        except OSError:
            pass

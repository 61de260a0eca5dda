"""The payloads of a rollout: one builder for each, and the one table of what is kept and what is dropped.

`session_meta`, `turn_context`, `event_msg`, `response_item` and `compacted` have the shape that Codex (0.171) gives
them (its `codex-rs/protocol/src/protocol.rs`), so that it lists and reads our sessions; it ignores keys it does not
know and skips lines whose type it does not know. It lists a session only when an `event_msg` of kind `user_message`
is near its start, so each turn has one. `verdict`, `exec`, `network`, `refusal` and `observation` are ours.

A builder returns `(type, payload)`, ready for `Rollout.append(*item)`. Every payload of a turn carries `turn`.
Readers must take a key that is absent as unknown and ignore keys they do not know: that is how the format grows.
"""

from __future__ import annotations

import time

from doorward.named_tuple import NamedTuple
from doorward.sessions.line import Totals
from doorward.sessions.sha256 import sha256
from doorward.start_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    Payload = dict[str, Any]

    Item = tuple[str, Payload]
else:
    Payload = dict
    Item = tuple

FORMAT = 1
"""Raised only when an old reader would misread a new record."""


class Keeping(NamedTuple):
    """One row of the table."""

    kept: bool
    why: str


# Record types, and below them the kinds of `event_msg` (its payload's `type`).
RECORDS: Mapping[str, Keeping] = {
    "session_meta": Keeping(True, "what the session is: id, cwd, versions"),
    "turn_context": Keeping(True, "the policy a turn ran under"),
    "response_item": Keeping(True, "messages the model sees"),
    "compacted": Keeping(True, "what replaced earlier messages"),
    "event_msg": Keeping(True, "as the kinds below say"),
    "verdict": Keeping(True, "what the gates said, with every reason"),
    "exec": Keeping(True, "what was started, where, and what held it"),
    "network": Keeping(True, "each decision of the proxy"),
    "refusal": Keeping(True, "what a door refused, as its caller was told"),
    "observation": Keeping(True, "what the caller got back, final output included"),
}
EVENTS: Mapping[str, Keeping] = {
    "task_started": Keeping(True, "turn boundary"),
    "task_complete": Keeping(True, "turn boundary"),
    "turn_aborted": Keeping(True, "turn boundary"),
    "thread_rolled_back": Keeping(True, "changes what the model sees"),
    "context_compacted": Keeping(True, "changes what the model sees"),
    "user_message": Keeping(True, "message"),
    "agent_message": Keeping(True, "message"),
    "agent_reasoning": Keeping(True, "message"),
    "token_count": Keeping(True, "what the turn used"),
    "thread_name_updated": Keeping(True, "a rename"),
    "imported": Keeping(True, "where the records before it came from"),
    "connection_opened": Keeping(True, "network decision, written before the first byte passes"),
    "malformed_request": Keeping(True, "a request nobody can judge, refused as such"),
    "http_exchange": Keeping(True, "an inspected request and its response, where inspect.record asks for them"),
    "inspection_not_trusted": Keeping(True, "a client that turned the inspecting certificate down"),
    "credential_used": Keeping(True, "a credential that was put into a request, by its name"),
    "published": Keeping(True, "a server inside that the host can reach"),
    "published_connection": Keeping(True, "what was done there"),
    "proxy_fault": Keeping(True, "a fault of the proxy's own, which closed what it was about"),
    "capture_unavailable": Keeping(True, "that programs which ignore the proxy reach nothing"),
    "approval_asked": Keeping(True, "that somebody was asked, and what about"),
    "approval_answered": Keeping(True, "who answered what, before it takes effect"),
    "review": Keeping(True, "what a reviewer said about a risky action"),
    "hook_started": Keeping(True, "a hook that is about to run"),
    "hook_ended": Keeping(True, "how it ended, and what it said"),
    "hook_refused": Keeping(True, "a hook that was not run, and why"),
    "agent_hook": Keeping(True, "what a coding agent was answered about a tool, before it saw it"),
    "agent_went_round": Keeping(True, "a command that an agent did not run through doorward, as it was handed"),
    "agent_message_delta": Keeping(False, "streaming; the whole message follows"),
    "agent_message_content_delta": Keeping(False, "streaming; the whole message follows"),
    "agent_reasoning_delta": Keeping(False, "streaming; the whole text follows"),
    "reasoning_content_delta": Keeping(False, "streaming; the whole text follows"),
    "exec_command_output_delta": Keeping(False, "streaming; the observation holds the output"),
    "exec_approval_request": Keeping(False, "a prompt's text; the verdict holds question and answer"),
    "apply_patch_approval_request": Keeping(False, "a prompt's text; the verdict holds question and answer"),
    "request_user_input": Keeping(False, "a prompt's text"),
    "warning": Keeping(False, "advice to who watches"),
    "stream_error": Keeping(False, "retried; a final failure is an observation"),
    "mcp_startup_update": Keeping(False, "start-up progress"),
    "mcp_startup_complete": Keeping(False, "start-up progress"),
}
_KEPT_WHEN_UNKNOWN = Keeping(True, "not known here: nothing is dropped by accident")

# Codex renamed these and reads both spellings.
_BOUNDARIES: Mapping[str, Literal["started", "ended"]] = {
    "task_started": "started",
    "turn_started": "started",
    "task_complete": "ended",
    "turn_complete": "ended",
    "turn_aborted": "ended",
}


def keeping(type: str, payload: Mapping[str, Any]) -> Keeping:
    """The row of the table that a record falls under."""
    if type == "event_msg":
        return EVENTS.get(_kind(payload), _KEPT_WHEN_UNKNOWN)
    return RECORDS.get(type, _KEPT_WHEN_UNKNOWN)


def _kind(payload: Mapping[str, Any]) -> str:
    kind = payload.get("type")
    return kind if isinstance(kind, str) else ""


def turn_change(type: str, payload: Mapping[str, Any]) -> Literal["started", "ended"] | None:
    """Whether a record begins a turn, or ends one."""
    return _BOUNDARIES.get(_kind(payload)) if type == "event_msg" else None


def advanced(totals: Totals, type: str, payload: Mapping[str, Any]) -> Totals:
    """The session's totals after one more record."""
    if type == "network":
        return totals
    if type == "refusal":
        return Totals(totals.turn, totals.open, totals.refused + 1, totals.name)
    change = turn_change(type, payload)
    if change == "started":
        turn = payload.get("turn")
        return totals._replace(turn=turn if isinstance(turn, int) else totals.turn + 1, open=True)
    if change == "ended":
        return totals._replace(open=False)
    if type == "event_msg" and payload.get("type") == "thread_name_updated":
        name = payload.get("thread_name")
        return totals._replace(name=name if isinstance(name, str) else None)
    return totals


def turn_id(session: str, turn: int) -> str:
    """Codex names turns by a string; ours can be told from session and number, also when nobody wrote it down."""
    return f"{session}#{turn}"


def session_meta(
    session: str,
    *,
    timestamp: str,
    cwd: str,
    name: str | None = None,
    version: str = "",
    meta: Mapping[str, Any] | None = None,
) -> Item:
    """The first record. `meta` adds or replaces keys, e.g. `git` = `{"commit_hash", "branch", "repository_url"}`."""
    payload: Payload = {
        "id": session,
        "timestamp": timestamp,
        "cwd": cwd,
        "originator": "doorward",
        "cli_version": version,
        # one of Codex's words; its default list shows interactive sources only, and ours are not
        "source": "exec",
        "name": name,
        "format": FORMAT,
    }
    payload.update(meta or {})
    return "session_meta", payload


def turn_start(
    session: str,
    turn: int,
    *,
    argv: Sequence[str],
    cwd: str,
    approval_policy: str,
    sandbox_policy: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    message: str | None = None,
    version: str = "",
) -> tuple[Item, Item, Item]:
    """`task_started`, `turn_context` and the turn's `user_message`, to be appended in this order.

    `sandbox_policy` is Codex's shape, see `codex_sandbox_policy`. `settings` is ours and free: what else decided the
    turn (network mode, rules, features). `message` is what a person would call the turn; default: the command line.
    """
    identifier = turn_id(session, turn)
    started: Payload = {
        "type": "task_started",
        "turn_id": identifier,
        "started_at": int(time.time()),
        "model_context_window": None,
        "collaboration_mode_kind": "default",
        "turn": turn,
    }
    context: Payload = {
        "turn_id": identifier,
        "cwd": cwd,
        "approval_policy": approval_policy,
        "sandbox_policy": dict(sandbox_policy),
        # Codex wants both; no model is asked here
        "model": "",
        "summary": "auto",
        "turn": turn,
        "doorward": {"version": version, "format": FORMAT, **(settings or {})},
    }
    said: Payload = {
        "type": "user_message",
        "message": command_line(argv) if message is None else message,
        "images": [],
        "local_images": [],
        "text_elements": [],
        "turn": turn,
    }
    return ("event_msg", started), ("turn_context", context), ("event_msg", said)


def codex_sandbox_policy(mode: str, *, writable_roots: Sequence[str] = (), network_access: bool = False) -> Payload:
    """`read-only`, `workspace-write` or `danger-full-access` as Codex writes it in `turn_context`."""
    if mode == "workspace-write":
        return {
            "type": mode,
            "writable_roots": list(writable_roots),
            "network_access": network_access,
            # /tmp and TMPDIR inside are private folders, not the host's
            "exclude_tmpdir_env_var": True,
            "exclude_slash_tmp": True,
        }
    return {"type": mode}


def verdict(
    turn: int,
    verdict: Mapping[str, Any],
    *,
    argv: Sequence[str],
    cwd: str,
    kind: str = "shell",
    writes: Sequence[str] = (),
    network_to: Sequence[tuple[str, int]] = (),
    needs_feature: str | None = None,
) -> Item:
    """`verdict` is `{"verdict", "gate", "reasons"}`; the action it is about stands beside it, to be judged again."""
    action: Payload = {
        "kind": kind,
        "argv": list(argv),
        "cwd": cwd,
        "writes": list(writes),
        "network_to": [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in network_to],
        "needs_feature": needs_feature,
    }
    return "verdict", {"turn": turn, "action": action, **verdict}


def exec(
    turn: int,
    *,
    argv: Sequence[str],
    cwd: str,
    policy_digest: str,
    enforcement: Mapping[str, str],
    environment: Sequence[Mapping[str, Any]],
    fingerprint_key: str | None,
    withheld: Sequence[str] = (),
    limits: Mapping[str, str] | None = None,
    notices: Sequence[str] = (),
    output: Literal["recorded", "redacted", "not-recorded"] = "recorded",
    terminal: bool = False,
    sealed: Mapping[str, str] | None = None,
) -> Item:
    """What is about to start; written before it does. `enforcement` is `{"filesystem", "network", "process",
    "syscalls"}`, each `kernel`, `env-only` or `none`; `environment` and `fingerprint_key` come from `environment.py`.
    `withheld` are names of variables the command does not get, `limits` says of each that is set what holds it,
    `notices` what is weaker than it looks; `sealed` is an encrypted copy of the environment (`sealing.py`).
    """
    payload: Payload = {
        "turn": turn,
        "argv": list(argv),
        "cwd": cwd,
        "policy_digest": policy_digest,
        "enforcement": dict(enforcement),
        "environment": list(environment),
        "fingerprint_key": fingerprint_key,
        "withheld": list(withheld),
        "limits": dict(limits or {}),
        "notices": list(notices),
        "output": output,
        "terminal": terminal,
    }
    if sealed is not None:
        payload["sealed_environment"] = dict(sealed)
    return "exec", payload


def network(turn: int, record: Mapping[str, Any]) -> Item:
    """One decision of the proxy, its keys as the proxy gives them."""
    return "network", {"turn": turn, **record}


def refusal(turn: int, body: Mapping[str, Any]) -> Item:
    """One refusal, its keys in the order the refused client was told them."""
    return "refusal", {"turn": turn, **body}


def of_proxy(
    turn: int, kind: str, payload: Mapping[str, Any] | None, text: str = ""
) -> tuple[str, Mapping[str, Any], str]:
    """An item of the proxy (a `network`, a `refusal` or an event) and its payload as JSON. `text` is what `payload` was
    decoded from, and most of that; "" where it may not stand in a rollout. `payload` may be None for a `network` or a
    `refusal` that is known to have no turn; it is then empty in what is returned, too."""
    if payload is None:
        return kind, {}, f'{{"turn":{turn},{text[1:]}'
    if not text or not payload or "turn" in payload:
        type, payload = (
            network(turn, payload)
            if kind == "network"
            else refusal(turn, payload) if kind == "refusal" else event(turn, payload)
        )
        return type, payload, dumps(payload)
    # as the three builders have it
    if kind == "network" or kind == "refusal":
        return kind, payload, f'{{"turn":{turn},{text[1:]}'
    return "event_msg", payload, f'{text[:-1]},"turn":{turn}}}'


def event(turn: int, payload: Mapping[str, Any]) -> Item:
    """An `event_msg` of another kind; `payload["type"]` says which."""
    return "event_msg", {**payload, "turn": turn}


def observation(
    turn: int,
    *,
    exit_code: int,
    success: bool = True,
    signal: int | None = None,
    output: Mapping[str, Any] | None = None,
    refusals: Sequence[int] = (),
    enforcement: Mapping[str, str] | None = None,
    duration_s: float = 0.0,
    notes: Sequence[str] = (),
    limits_hit: Sequence[Mapping[str, Any]] = (),
    hints: Sequence[Mapping[str, Any]] = (),
) -> Item:
    """What the caller gets back. `output` is `OutputRecord.to_json()`, None when it was not recorded; `refusals` are
    the ordinals of this turn's refusal records; `notes` are plain sentences (a time-out, a proxy that died);
    `limits_hit` are `{"limit", "value", "by", "message"}`, `hints` are `{"cause", "message", "remedy"}`."""
    return "observation", {
        "turn": turn,
        "success": success,
        "exit_code": exit_code,
        "signal": signal,
        "duration_s": round(duration_s, 3),
        "refusals": list(refusals),
        "enforcement": None if enforcement is None else dict(enforcement),
        "notes": list(notes),
        "limits_hit": [dict(each) for each in limits_hit],
        "hints": [dict(each) for each in hints],
        "output": None if output is None else dict(output),
    }


def turn_end(session: str, turn: int, *, duration_s: float = 0.0, last_message: str | None = None) -> Item:
    """The end of a turn that ran to its end, whatever its exit code."""
    return "event_msg", {
        "type": "task_complete",
        "turn_id": turn_id(session, turn),
        "last_agent_message": last_message,
        "completed_at": int(time.time()),
        "duration_ms": round(duration_s * 1000),
        "turn": turn,
    }


def turn_interrupted(session: str, turn: int) -> Item:
    """Closes a turn whose writer is gone."""
    return "event_msg", {
        "type": "turn_aborted",
        "turn_id": turn_id(session, turn),
        "reason": "interrupted",
        "turn": turn,
    }


def renamed(session: str, name: str) -> Item:
    """A new name from here on."""
    return "event_msg", {"type": "thread_name_updated", "thread_id": session, "thread_name": name}


def imported(source: str, *, size: int, sha256: str) -> Item:
    """Everything before it was taken over from a file, byte for byte."""
    return "event_msg", {"type": "imported", "source": source, "bytes": size, "sha256": sha256}


def message(role: Literal["user", "assistant", "developer"], text: str, *, turn: int | None = None) -> Item:
    """A message the model sees."""
    part = "output_text" if role == "assistant" else "input_text"
    payload: Payload = {"type": "message", "role": role, "content": [{"type": part, "text": text}]}
    if turn is not None:
        payload["turn"] = turn
    return "response_item", payload


def compacted(text: str, replacement: Sequence[Mapping[str, Any]] | None = None) -> Item:
    """Earlier messages were replaced by `text`, or by the `response_item` payloads in `replacement`."""
    payload: Payload = {"message": text}
    if replacement is not None:
        payload["replacement_history"] = [dict(item) for item in replacement]
    return "compacted", payload


def policy_digest(policy: Mapping[str, Any]) -> str:
    """`sha256:` and the hash of a policy in canonical JSON (sorted keys, no blanks, ASCII)."""
    text = dumps(policy, sort_keys=True)
    return "sha256:" + sha256(text.encode("ascii")).hexdigest()


def command_line(argv: Sequence[str]) -> str:
    """`argv` as one would type it in a POSIX shell."""
    return " ".join(_quoted(word) for word in argv)


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")


def _quoted(word: str) -> str:
    # as shlex.quote, which the start-up path does not import
    if word and _PLAIN.issuperset(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"

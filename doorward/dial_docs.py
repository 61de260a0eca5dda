"""Writes docs/dial.md from the resolver: `python -m doorward.dial_docs > docs/dial.md`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from doorward.gates.action import Action
from doorward.gates.approval_key import approval_key
from doorward.gates.dial import ApprovalPolicy, Dial, NetworkMode, SandboxMode, Trust
from doorward.gates.policy_match import PolicyDecision, PolicyMatch
from doorward.gates.resolver import resolve
from doorward.gates.review import Review, ReviewStatus
from doorward.gates.risk_rater import rate
from doorward.gates.verdict import Effect

WORKSPACE = "/home/u/project"

_HEAD = """\
# The dial

<!-- Written by `python -m doorward.dial_docs`, which asks the resolver for every cell; do not edit by hand. -->

What `doorward run` and `doorward check` say, for every position of every switch. **allow** runs; *ask* puts it to a
person, and where there is none it is refused ([approvals.md](approvals.md)); deny does not run. Behind an ask or a deny
stands the gate that decided.

In all tables the workspace is `/home/u/project`, and what is not said stands on its default: `workspace-write`,
`on-request`, no rules, nothing trusted, the guardian off.
"""

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("ls",),
    ("git", "status"),
    ("touch", "notes.txt"),
    ("make",),
    ("npm", "run", "test"),
    ("sh", "-c", "ls && cat a"),
    ("sh", "-c", "ls && rm -rf build"),
    ("rm", "-rf", "build"),
    ("git", "push", "--force"),
    ("curl", "https://example.com/"),
    ("cat", "/home/u/.ssh/id_ed25519"),
    ("tee", "/etc/hosts"),
    ("sudo", "id"),
)


def action(*argv: str, **fields: object) -> Action:
    """`argv` in the workspace, found where the system keeps it."""
    given = {"kind": "shell", "argv": argv, "cwd": WORKSPACE, "env": {"PATH": "/usr/bin:/bin"}}
    return Action(**{**given, "program": f"/usr/bin/{argv[0]}", **fields})  # type: ignore[arg-type]


def dial(**fields: object) -> Dial:
    """The defaults but for `fields`."""
    return Dial(WORKSPACE, **{"locate": _located, **fields})  # type: ignore[arg-type]


def _located(name: str, path: str, cwd: str) -> str | None:
    """Every program lies where the system keeps it: the page is the same on every machine."""
    return f"/usr/bin/{name}"


def cell(setting: Dial, asked: Action) -> str:
    """The verdict, and for all but an allow the gate."""
    verdict = resolve(setting, asked)
    if verdict.verdict is Effect.ALLOW:
        return "**allow**"
    if verdict.verdict is Effect.ASK:
        return f"*ask* ({verdict.gate})"
    return f"deny ({verdict.gate})"


def render() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_positions(), *_guardian(), *_trust(), *_features(), *_hooks(), *_policy(), *_network(),
                      *_approvals(), *_sentences()])  # fmt: skip


def _positions() -> Iterable[str]:
    for mode in SandboxMode:
        yield f"## `{mode}`\n"
        yield _table(
            "command",
            [f"`-a {policy}`" for policy in ApprovalPolicy],
            COMMANDS,
            [partial(_with, sandbox_mode=mode, approval_policy=policy) for policy in ApprovalPolicy],
        )
    yield "## `workspace-write` with `--add-dir /etc/hosts`\n"
    yield _table(
        "command",
        [f"`-a {policy}`" for policy in ApprovalPolicy],
        [("tee", "/etc/hosts")],
        [partial(_with, writable_roots=("/etc/hosts",), approval_policy=policy) for policy in ApprovalPolicy],
    )
    yield "## `--dangerously-bypass-approvals-and-sandbox`\n"
    yield "Allows everything but what a `forbidden` rule, a feature that is off or hook trust denies; see below.\n"
    yield _table(
        "command",
        ["bypassed"],
        [("tee", "/etc/hosts"), ("sudo", "id")],
        [partial(_with, bypass_approvals_and_sandbox=True)],
    )


def _with(asked: Action, **fields: object) -> str:
    return cell(dial(**fields), asked)


def _guardian() -> Iterable[str]:
    on: dict[str, Any] = {"approval_policy": "never", "features": frozenset({"guardian_approval"})}
    statuses = (
        ("says yes", ReviewStatus.ALLOWED),
        ("says no", ReviewStatus.DENIED),
        ("is silent", ReviewStatus.TIMED_OUT),
        ("talks nonsense", ReviewStatus.UNREADABLE),
        ("crashes", ReviewStatus.FAILED),
        ("said no too often", ReviewStatus.STOPPED),
    )
    yield "## The guardian, under `-a never`\n"
    yield _table(
        "command",
        ["off", "on, no reviewer", "`guardian.rater`", *(f"reviewer {what}" for what, _ in statuses)],
        [("ls",), ("make",), ("rm", "-rf", "build"), ("rm", "-rf", "."), ("npm", "publish"), ("sudo", "id")],
        [
            partial(_with, approval_policy="never"),
            partial(_with, **on),
            partial(_with, **on, reviewer=rate),
            *(partial(_with, **on, reviewer=partial(_reviewed, status)) for _, status in statuses),
        ],
    )


def _reviewed(status: ReviewStatus, asked: Action, risks: Sequence[str]) -> Review:
    return Review(status)


def _trust() -> Iterable[str]:
    yield "## Trust in the project, under `-a never`\n"
    yield _table(
        "command",
        [f"{state}" for state in Trust],
        [("ls",), ("touch", "notes.txt"), ("make",), ("rm", "-rf", "build")],
        [partial(_with, approval_policy="never", project_trust=state) for state in Trust],
    )


def _features() -> Iterable[str]:
    yield "## A feature that is needed\n"
    asked = (("ls",), ("tee", "/etc/hosts"))
    yield _table(
        "command with `--needs-feature web_search`",
        ["off", "on", "off, bypassed"],
        asked,
        [
            lambda each: cell(dial(), each._replace(needs_feature="web_search")),
            lambda each: cell(dial(features=frozenset({"web_search"})), each._replace(needs_feature="web_search")),
            lambda each: cell(dial(bypass_approvals_and_sandbox=True), each._replace(needs_feature="web_search")),
        ],
    )


def _hooks() -> Iterable[str]:
    yield "## Hooks (`--kind hook`)\n"

    def hook(each: Action, **fields: object) -> str:
        return cell(dial(**fields), each._replace(kind="hook", hook_hash="sha256:1"))

    yield _table(
        "hook",
        [
            *("nothing trusted", "project trusted", "project untrusted", "its hash trusted", "another hash trusted"),
            *("`--dangerously-bypass-hook-trust`", "approvals and sandbox bypassed"),
        ],
        [("./hook",), ("tee", "/etc/hosts")],
        [
            partial(hook),
            partial(hook, project_trust="trusted"),
            partial(hook, project_trust="untrusted"),
            partial(hook, trusted_hooks=frozenset({"sha256:1"})),
            partial(hook, trusted_hooks=frozenset({"sha256:2"})),
            partial(hook, bypass_hook_trust=True),
            partial(hook, bypass_approvals_and_sandbox=True),
        ],
    )


def _policy() -> Iterable[str]:
    yield "## Policy rules ([policy.md](policy.md))\n"
    yield "A rule that matches the command says:\n"

    def ruled(each: Action, decision: PolicyDecision | None, **fields: object) -> str:
        matches = () if decision is None else (PolicyMatch(decision, "rule", "default.rules:1"),)
        return cell(dial(policy=lambda _: matches, **fields), each)

    settings: tuple[tuple[str, dict[str, Any]], ...] = (
        ("`-a on-request`", {}),
        ("`-a untrusted`", {"approval_policy": "untrusted"}),
        ("`-a never`", {"approval_policy": "never"}),
        ("bypassed", {"bypass_approvals_and_sandbox": True}),
    )
    for name, fields in settings:
        yield _table(
            name,
            ["no rule", *(f"`{decision}`" for decision in PolicyDecision)],
            [("ls",), ("make",), ("rm", "-rf", "build"), ("tee", "/etc/hosts")],
            [partial(ruled, decision=decision, **fields) for decision in (None, *PolicyDecision)],
        )


def _network() -> Iterable[str]:
    yield "## A declared connection (`--network-to`)\n"

    def connecting(each: Action, answer: str, **fields: object) -> str:
        asked = each._replace(network_to=(("example.com", 443),))
        return cell(dial(decide_host=lambda host, port: answer, **fields), asked)

    yield "An undeclared connection never keeps a command from starting: the proxy decides when it comes.\n"
    yield _table(
        "`ls` with the network",
        ["in the allowlist", "not in it", "not in it, `-a never`"],
        [(mode,) for mode in NetworkMode],
        [
            lambda each: connecting(_ls(each), "allow", network=each.argv[0]),
            lambda each: connecting(_ls(each), "deny", network=each.argv[0]),
            lambda each: connecting(_ls(each), "deny", network=each.argv[0], approval_policy="never"),
        ],
    )


def _ls(each: Action) -> Action:
    return action("ls")


def _approvals() -> Iterable[str]:
    yield "## An approval given earlier in the session\n"
    yield "`npm run test` was approved; under `-a untrusted`, in a project marked untrusted, with the guardian on:\n"
    strict = dial(
        approval_policy="untrusted", project_trust="untrusted", features=frozenset({"guardian_approval"})
    )
    approved = strict._replace(approvals=frozenset({approval_key(strict, action("npm", "run", "test"))}))
    rows = [
        ("`npm run test`", action("npm", "run", "test")),
        ("`bash -lc 'npm run test'`", action("bash", "-lc", "npm run test")),
        ("`npm run lint`", action("npm", "run", "lint")),
        ("`npm run test`, in another folder", action("npm", "run", "test", cwd=f"{WORKSPACE}/sub")),
        ("`npm run test`, with a connection", action("npm", "run", "test", network_to=(("a.test", 443),))),
    ]
    yield _rows("action", ["verdict"], [(name, [cell(approved, each)]) for name, each in rows])


def _sentences() -> Iterable[str]:
    yield "## What is said\n"
    yield "The sentence of the gate that decided, and what would change it:\n"
    found = []
    for argv in (("tee", "/etc/hosts"), ("rm", "-rf", "build"), ("git", "push", "--force"), ("sudo", "id")):
        deciding = resolve(dial(), action(*argv)).deciding
        found.append((_code(argv), [deciding.sentence, f"`{deciding.remedy}`" if deciding.remedy else ""]))
    yield _rows("command", ["why", "remedy"], found)


def _table(
    title: str, columns: Sequence[str], commands: Iterable[tuple[str, ...]], cells: Sequence[Callable[[Action], str]]
) -> str:
    return _rows(title, columns, [(_code(argv), [each(action(*argv)) for each in cells]) for argv in commands])


def _rows(title: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    lines = [f"| {' | '.join((title, *columns))} |", f"|{'---|' * (len(columns) + 1)}"]
    lines += [f"| {' | '.join((name, *cells))} |" for name, cells in rows]
    return "\n".join([*lines, ""])


def _code(argv: Sequence[str]) -> str:
    from doorward.sessions.items import command_line

    return f"`{command_line(argv)}`"


if __name__ == "__main__":
    sys.stdout.write(render())

"""A rules file (Starlark, as Codex's execpolicy reads it) evaluated into rules, its examples run.

What a file can call: `prefix_rule`, `host_executable`, `network_rule`, and Starlark's standard functions. There is no
`load`, no file and no network. A loop without an end is cancelled at the deadline; a huge allocation is not, so the
caller runs this in a process whose memory is bounded.
"""

import re
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from doorward.gates.policy_match import PolicyDecision
from doorward.gates.policy_rules import NetworkRule, Policy, PrefixRule, begins_with, policy_of
from doorward.named_tuple import NamedTuple

_PRELUDE_NAME: Final = "<doorward>"
# Parameters and their types as Codex declares them (parser.rs, `policy_builtins`). The first line of `call_stack` that
# belongs to the file is where the rule stands.
_PRELUDE: Final = """
def prefix_rule(pattern: list, decision: str = "allow", match: list = [], not_match: list = [],
        justification: str | None = None, **unknown):
    _prefix_rule(call_stack(strip_frames=1), list(unknown.keys()), pattern, decision, match, not_match, justification)

def host_executable(name: str, paths: list, **unknown):
    _host_executable(call_stack(strip_frames=1), list(unknown.keys()), name, paths)

def network_rule(host: str, protocol: str, decision: str,
        justification: str | None = None, **unknown):
    _network_rule(call_stack(strip_frames=1), list(unknown.keys()), host, protocol, decision, justification)
"""
_PROTOCOLS: Final = {
    "http": "http",
    "https": "https",
    "https_connect": "https",
    "http-connect": "https",
    "socks5_tcp": "socks5_tcp",
    "socks5_udp": "socks5_udp",
}


class PolicyFileError(Exception):
    """A rules file that cannot be used. `line` counts from 1, None where there is none."""

    def __init__(self, file: str, line: int | None, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}" if line is not None else f"{file}: {message}")
        self.file = file
        self.line = line
        self.message = message


class Source(NamedTuple):
    """One rules file: its path as it is to be named, and its text."""

    file: str
    text: str


def evaluate(sources: Iterable[Source], seconds: float) -> Policy:
    """The rules of all files together. Raises PolicyFileError for the first mistake, and where evaluating them takes
    longer than `seconds`."""
    deadline = time.monotonic() + seconds
    prefix: list[PrefixRule] = []
    hosts: dict[str, list[str]] = {}
    network: list[NetworkRule] = []
    for source in sources:
        reading = _Reading(source, hosts)
        reading.run(deadline, seconds)
        reading.run_examples()
        prefix += reading.prefix
        network += reading.network
    return policy_of(prefix, hosts, network)


class _Refused(Exception):
    """A value that no rule can have."""


class _Example(NamedTuple):
    rules: list[PrefixRule]
    words: list[str]
    matches: bool
    line: int


class _Reading:
    """One file while it is evaluated."""

    def __init__(self, source: Source, hosts: dict[str, list[str]]) -> None:
        self._source = source
        self._hosts = hosts
        self.prefix: list[PrefixRule] = []
        self.network: list[NetworkRule] = []
        self._examples: list[_Example] = []
        self._mistake: PolicyFileError | None = None
        # lines by the text of a stack: a loop makes the same one again and again
        self._line_in_file = re.compile(rf"^  \* {re.escape(source.file)}:(\d+), ", re.MULTILINE)

    def run(self, deadline: float, seconds: float) -> None:
        import starlark  # 8 ms, and only where a rules file is read

        dialect = starlark.Dialect.extended()
        dialect.enable_f_strings = True
        dialect.enable_load = False
        dialect.enable_types = starlark.DialectTypes.ENABLE
        names = starlark.Globals.extended_by([starlark.LibraryExtension.CallStack])
        module = starlark.Module()
        for name in ("prefix_rule", "host_executable", "network_rule"):
            module.add_callable(f"_{name}", self._recorder(getattr(self, f"_{name}")))
        try:
            starlark.eval(module, starlark.parse(_PRELUDE_NAME, _PRELUDE, dialect), names)
            tree = starlark.parse(self._source.file, self._source.text, dialect)
            options = starlark.EvalOptions(check_cancelled=lambda: time.monotonic() > deadline)
            starlark.eval_with(options, module, tree, names)
        except starlark.StarlarkError as error:
            if self._mistake is not None:
                raise self._mistake from None
            raise self._told(str(error), seconds) from None

    def run_examples(self) -> None:
        """Raises PolicyFileError for the first example that does not do what it was written for."""
        for example in self._examples:
            program, arguments = example.words[0], example.words[1:]
            names = [program]
            if program.startswith("/"):
                name = program.rpartition("/")[2]
                listed = self._hosts.get(name)
                if listed is None or program in listed:
                    names.append(name)
            # a path falls back to its base name only where no rule names the path
            matched = any(
                any(rule.first == name and begins_with(arguments, rule.rest) is True for rule in example.rules)
                for name in names
            )
            if matched != example.matches:
                what = "does not match" if example.matches else "matches"
                key = "match" if example.matches else "not_match"
                shown = " ".join(example.words)
                raise PolicyFileError(
                    self._source.file,
                    example.line,
                    f"the {key} example {shown!r} {what} the rule {example.rules[0].text}",
                )

    def _recorder(self, record: Any) -> Any:
        def called(stack: str, unknown: Sequence[str], *values: Any) -> None:
            found = self._line_in_file.findall(stack)
            line = int(found[-1]) if found else 1
            try:
                if unknown:
                    raise _Refused(f"there is no parameter {unknown[0]!r}")
                record(line, *values)
            except _Refused as refused:
                self._mistake = PolicyFileError(self._source.file, line, str(refused))
                raise

        return called

    def _prefix_rule(
        self,
        line: int,
        pattern: list[object],
        decision: str,
        match: list[object],
        not_match: list[object],
        justification: str | None,
    ) -> None:
        if decision not in list(PolicyDecision):
            raise _Refused(f"the decision is one of allow, prompt, forbidden, not {decision!r}")
        tokens = [_token(each) for each in pattern]
        if not tokens:
            raise _Refused("the pattern is empty; it needs at least the program")
        reason = _justified(justification)
        rules = [PrefixRule(first, tokens[1:], decision, reason, self._source.file, line) for first in tokens[0]]
        self.prefix += rules
        for wanted, examples in ((False, not_match), (True, match)):
            self._examples += [_Example(rules, _example(each), wanted, line) for each in examples]

    def _host_executable(self, line: int, name: str, paths: list[object]) -> None:
        if not name or "/" in name or name in (".", ".."):
            raise _Refused(f"the name of a host_executable is a bare file name, not {name!r}")
        listed: list[str] = []
        for path in paths:
            if not isinstance(path, str):
                raise _Refused(f"the paths of a host_executable are text, not {type(path).__name__}")
            if not path.startswith("/"):
                raise _Refused(f"the paths of a host_executable are absolute, not {path!r}")
            if path.rpartition("/")[2] != name:
                raise _Refused(f"the path {path!r} does not end in the name {name!r}")
            if path not in listed:
                listed.append(path)
        self._hosts[name] = listed

    def _network_rule(self, line: int, host: str, protocol: str, decision: str, justification: str | None) -> None:
        if protocol not in _PROTOCOLS:
            raise _Refused(f"the protocol is one of http, https, socks5_tcp, socks5_udp, not {protocol!r}")
        wanted = "forbidden" if decision == "deny" else decision
        if wanted not in list(PolicyDecision):
            raise _Refused(f"the decision is one of allow, prompt, deny, not {decision!r}")
        self.network.append(
            NetworkRule(_host(host), _PROTOCOLS[protocol], wanted, _justified(justification), self._source.file, line)
        )

    def _told(self, text: str, seconds: float) -> PolicyFileError:
        """Starlark's message as one line with its place in this file."""
        message = next(
            (line.removeprefix("error: ") for line in text.splitlines() if line.startswith("error: ")),
            text.strip().splitlines()[0] if text.strip() else "it cannot be read",
        )
        message = message.replace(f"`{_PRELUDE_NAME}.", "`")
        if message == "Evaluation cancelled":
            message = f"it is not done after {seconds:g} s; does a loop never end?"
        found = re.findall(rf"^ *(?:--> |\* ){re.escape(self._source.file)}:(\d+)\b", text, re.MULTILINE)
        return PolicyFileError(self._source.file, int(found[-1]) if found else None, message)


def _token(value: object) -> list[str]:
    """The alternatives at one place of a pattern."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise _Refused(f"a part of a pattern is text or a list of texts, not {type(value).__name__}")
    if not value:
        raise _Refused("a list of alternatives in a pattern is empty")
    for each in value:
        if not isinstance(each, str):
            raise _Refused(f"an alternative in a pattern is text, not {type(each).__name__}")
    return value


def _example(value: object) -> list[str]:
    if isinstance(value, str):
        words = _split(value)
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        words = value
    else:
        raise _Refused("an example is text or a list of texts")
    if not words:
        raise _Refused("an example is empty")
    return words


def _split(text: str) -> list[str]:
    """`text` as words. Most examples need no shell rules, which cost thirty times as much."""
    if not any(char in text for char in "'\"\\#"):
        return text.split()
    import shlex

    try:
        return shlex.split(text)
    except ValueError:
        raise _Refused(f"the example {text!r} has a quote that does not end") from None


def _justified(text: str | None) -> str:
    if text is not None and not text.strip():
        raise _Refused("a justification is there and says nothing")
    return text or ""


def _host(text: str) -> str:
    """The host of a network rule: as Codex normalises it (rule.rs), a port after it dropped."""
    host = text.strip()
    if any(part in host for part in ("://", "/", "?", "#")):
        raise _Refused(f"a host stands without scheme and path, not as {text!r}")
    if host.startswith("["):
        host, closed, rest = host[1:].partition("]")
        if not closed or (rest and not re.fullmatch(r":[0-9]+", rest)):
            raise _Refused(f"{text!r} is no address in brackets")
    elif re.fullmatch(r"[^:]+:[0-9]+", host):
        host = host.partition(":")[0]
    host = host.rstrip(".").strip().lower()
    if not host:
        raise _Refused("the host is empty")
    if "*" in host:
        raise _Refused("a network_rule names one host, no wildcard; `doorward allowlist add` takes patterns")
    if any(char.isspace() for char in host):
        raise _Refused(f"there is a blank in the host {text!r}")
    return host

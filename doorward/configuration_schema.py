"""Every configuration key there is: one row each, from which checking, error texts and docs/configuration.md come.

A key that nothing reads must not be here. To add one, add a row.
"""

from __future__ import annotations

from doorward.gates.features import FEATURES, STAGES
from doorward.named_tuple import NamedTuple
from doorward.plain_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Literal


class Kind(StrEnum):
    """What a value must be."""

    CHOICE = "one of"
    SWITCH = "true or false"
    SECONDS = "seconds"
    COUNT = "whole number"
    SIZE = "size"
    DURATION = "duration"
    URL = "URL"
    URL_PATH = "URL with a path"
    TEXT = "text"
    COMMAND = "array of words, a command"
    PATH = "path"
    RULES = "array of rules"
    PATHS = "array of paths"
    NAMES = "array of names"
    PORTS = "array of ports"
    ADDRESSES = "table name = address"
    HOOKS = "array of tables {command, timeout}"
    DIGESTS = "array of hashes"


ARRAYS: Final = frozenset({Kind.RULES, Kind.PATHS, Kind.NAMES, Kind.HOOKS, Kind.DIGESTS, Kind.PORTS})
"""Kinds whose entries of all layers are put together."""


class Project(StrEnum):
    """What a trusted project's own file may do with a key."""

    SET = "yes"
    TIGHTEN = "only stricter"
    NOTHING = "no"


class Key(NamedTuple):
    """One row. `choices` go from the loosest to the strictest; `default` None means that the key is unset, what then
    holds is in `doc`. `option` is the command-line option that sets it. `home_only`: only $DOORWARD_HOME/config.toml
    may set it, since it says which other files count."""

    name: str
    kind: Kind
    default: object
    doc: str
    choices: tuple[str, ...] = ()
    option: str = ""
    project: Project = Project.NOTHING
    home_only: bool = False


_SECONDS: Final = Kind.SECONDS
_COUNT: Final = Kind.COUNT

KEYS: Final = (
    Key(
        "sandbox_mode",
        Kind.CHOICE,
        "workspace-write",
        "What a command may write: nothing, the workspace and private temporary folders, or everything",
        ("danger-full-access", "workspace-write", "read-only"),
        "--sandbox",
        Project.TIGHTEN,
    ),
    Key(
        "approval_policy",
        Kind.CHOICE,
        "on-request",
        "When somebody is asked: never, after a refusal, about risky commands, about all but known read-only ones",
        ("never", "on-failure", "on-request", "untrusted"),
        "--ask-for-approval",
        Project.TIGHTEN,
    ),
    Key(
        "require",
        Kind.CHOICE,
        "full",
        "Whether a layer that this machine cannot enforce stops the run, or is only stated",
        ("best-effort", "full"),
        "--require",
        Project.TIGHTEN,
    ),
    Key(
        "network.mode",
        Kind.CHOICE,
        None,
        "Nothing, what the rules allow, of that only requests that read (limited), or everything. Unset it follows "
        "`sandbox_mode`: read-only off, workspace-write proxied, danger-full-access full",
        ("full", "proxied", "limited", "off"),
        "--network",
        Project.TIGHTEN,
    ),
    Key(
        "network.observe",
        Kind.SWITCH,
        False,
        "Only watch: what no rule allows is let through and recorded. Deny rules and the guard of local addresses hold",
        option="--observe",
    ),
    Key(
        "network.allow",
        Kind.RULES,
        (),
        "Who may be reached: names, addresses, presets; or a table such as "
        '`{host = "mirror.test", methods = ["GET"], paths = ["/pub/**"]}`',
        option="--allow",
        project=Project.SET,
    ),
    Key(
        "network.deny",
        Kind.RULES,
        (),
        "Who may not be reached; beats every allow of every layer",
        option="--deny",
        project=Project.SET,
    ),
    Key(
        "network.hosts",
        Kind.ADDRESSES,
        None,
        "Pins a name to an address, like a hosts file. A project may add names, not move those of a lower layer",
        project=Project.SET,
    ),
    Key(
        "network.transparent",
        Kind.SWITCH,
        True,
        "Whether connections of programs that know no proxy are captured, and names answered, inside the sandbox",
    ),
    Key(
        "network.loopback",
        Kind.PORTS,
        (),
        'Ports of this machine\'s loopback that appear at the same port inside; "all" follows what has a server here',
        option="--allow-loopback",
    ),
    Key(
        "network.publish",
        Kind.PORTS,
        (),
        'Servers inside that this machine reaches on its loopback: `8000`, `"8000:18000"` (inside, here), or "auto"',
        option="--publish",
    ),
    Key("network.upstream_proxy", Kind.URL, None, "The HTTP or HTTPS proxy that allowed connections go through"),
    Key(
        "network.upstream_resolves",
        Kind.NAMES,
        (),
        "Domains whose names only the upstream proxy can resolve; they are handed to it unresolved",
    ),
    Key("network.limits.request_line", _COUNT, 8192, "Bytes of a request line; beyond: 414"),
    Key("network.limits.head", _COUNT, 65536, "Bytes of a request or response head; beyond: 431 or 502"),
    Key("network.limits.header_count", _COUNT, 256, "Header lines in one head; beyond: 431 or 502"),
    Key("network.limits.trailers", _COUNT, 16384, "Bytes of a set of trailers; beyond: 431 or 502"),
    Key("network.limits.chunk_line", _COUNT, 1024, "Bytes of a chunk-size line; beyond: 400 or 502"),
    Key("network.limits.hello", _COUNT, 65536, "Bytes of TLS records read for one ClientHello; beyond: closed"),
    Key("network.limits.head_time", _SECONDS, 10.0, "From the first byte of a head or handshake to its last"),
    Key("network.limits.first_bytes_time", _SECONDS, 3.0, "Wait for a tunnel's first bytes"),
    Key("network.limits.resolve_time", _SECONDS, 5.0, "Silence of the resolver; beyond: 504"),
    Key("network.limits.dial_time", _SECONDS, 10.0, "From the first connection attempt to the last; beyond: 502"),
    Key("network.limits.reply_time", _SECONDS, 60.0, "From a request to the first byte of its reply; beyond: 504"),
    Key("network.limits.idle_time", _SECONDS, 300.0, "Between two requests, and of a body that has stalled"),
    Key("network.limits.tunnel_idle_time", _SECONDS, 3600.0, "A tunnel or upgraded connection that moves no byte"),
    Key("network.limits.pooled_time", _SECONDS, 30.0, "How long an upstream connection is kept for another request"),
    Key("network.limits.connections", _COUNT, 4096, "Client connections at once"),
    Key("network.limits.pooled", _COUNT, 64, "Idle upstream connections kept"),
    Key(
        "inspect.all",
        Kind.SWITCH,
        False,
        "Look into every tunnel, not only where a rule or a credential needs it",
        option="--inspect",
    ),
    Key(
        "inspect.python",
        Kind.PATH,
        None,
        "The python of an environment with mitmproxy, where this one has none; it runs the inspection worker",
    ),
    Key(
        "inspect.record",
        Kind.CHOICE,
        "off",
        "What of inspected requests and responses becomes records: nothing, heads, heads and bounded bodies",
        ("off", "headers", "bodies"),
    ),
    Key("credentials.*.env", Kind.TEXT, None, "The variable outside that holds the credential"),
    Key("credentials.*.file", Kind.TEXT, None, "Or the file; no command can read it then"),
    Key("credentials.*.command", Kind.COMMAND, None, "Or the command that prints it, such as a password manager's"),
    Key("credentials.*.keyring", Kind.TEXT, None, "Or SERVICE/USER in the desktop's keyring"),
    Key(
        "credentials.*.hosts",
        Kind.RULES,
        (),
        "To whom it is sent at most, inside TLS; as in rules, but they allow nothing. Unset, rules that name it say so",
    ),
    Key(
        "credentials.*.place",
        Kind.CHOICE,
        "header",
        "Where in a request it goes; with aws it is the secret key that requests are signed with (Signature Version 4)",
        ("header", "basic", "query", "cookie", "aws"),
    ),
    Key("credentials.*.name", Kind.TEXT, None, "The header (`Authorization` unless given), parameter or cookie"),
    Key(
        "credentials.*.variable",
        Kind.TEXT,
        None,
        "The variable inside that holds what stands for it; unset it is the name of `env`",
    ),
    Key(
        "filesystem.write",
        Kind.PATHS,
        (),
        "Folders and files that may be written besides the workspace",
        option="--add-dir",
    ),
    Key(
        "filesystem.read_only",
        Kind.PATHS,
        (),
        "Paths or globs that may not be written, although they lie in a writable folder",
        option="--read-only",
        project=Project.SET,
    ),
    Key(
        "filesystem.deny_read",
        Kind.PATHS,
        (),
        "Paths or globs that cannot even be read",
        option="--deny-read",
        project=Project.SET,
    ),
    Key(
        "filesystem.allow_unix",
        Kind.PATHS,
        (),
        "Unix sockets of this machine that may be reached",
        option="--allow-unix",
    ),
    Key(
        "macos.local_binding",
        Kind.SWITCH,
        False,
        "On macOS: servers may be bound on localhost, and every port there be dialled, those of other programs too",
    ),
    Key(
        "macos.trust_service",
        Kind.SWITCH,
        True,
        "On macOS: the system's trust service may be asked, without which Go programs verify no certificate",
    ),
    Key(
        "env.inherit",
        Kind.CHOICE,
        "all",
        "Which variables go in: all but those that look like credentials or start something, a handful, none",
        ("all", "core", "none"),
        project=Project.TIGHTEN,
    ),
    Key(
        "env.pass",
        Kind.NAMES,
        (),
        "Variables that go in whatever they look like",
        option="--pass-env",
    ),
    Key(
        "sandbox.explain",
        Kind.SWITCH,
        False,
        "Watch calls that change something, and say at the end of a run that failed which of them the sandbox refused",
        option="--explain-denials",
    ),
    Key(
        "limits.memory",
        Kind.SIZE,
        None,
        "Memory: of the whole run where a control group is delegated, else of each process. Bytes, or text such as "
        '`"512M"`, `"2GiB"` (powers of 1024)',
        option="--memory",
    ),
    Key(
        "limits.pids",
        _COUNT,
        None,
        "Processes and threads at once",
        option="--pids",
    ),
    Key(
        "limits.cpu_time",
        Kind.DURATION,
        None,
        'Processor time of the whole run; then it is ended. Seconds, or text such as `"90s"`, `"5m"`, `"1h"`',
        option="--cpu-time",
    ),
    Key(
        "limits.files",
        _COUNT,
        None,
        "Open files of each process; 16 or more",
        option="--files",
    ),
    *(
        Key(
            f"features.{feature.name}",
            Kind.SWITCH,
            feature.default,
            f"{feature.summary[0].upper()}{feature.summary[1:]} ({feature.stage})",
            option="--enable, --disable",
        )
        for feature in FEATURES
    ),
    Key(
        "approvals.queue",
        Kind.SWITCH,
        False,
        "Where no terminal can be asked, questions wait in the queue for `doorward approvals`; hosts that no rule "
        "names are then asked about as well",
    ),
    Key("approvals.timeout", _SECONDS, 300.0, "How long a question waits in the queue; after that nobody means no"),
    Key(
        "approvals.notify",
        Kind.COMMAND,
        None,
        "Called with the question as JSON on its standard input when one arrives in the queue. It runs outside the "
        "sandbox",
    ),
    Key("approvals.desktop", Kind.SWITCH, False, "Show a desktop notification (notify-send) when one arrives"),
    Key(
        "guardian.command",
        Kind.COMMAND,
        None,
        "The reviewer of risky actions while the feature `guardian_approval` is on: the action comes as JSON on "
        'standard input, and it answers with exactly one `{"decision": "allow"|"deny", "reason": TEXT}` on standard '
        "output and exit status 0. It runs outside the sandbox",
    ),
    Key("guardian.timeout", _SECONDS, 30.0, "How long a reviewer may take; it is asked twice before that is a no"),
    Key(
        "guardian.endpoint",
        Kind.URL_PATH,
        None,
        "Or a model that is asked: the base URL of an OpenAI-compatible API, such as `https://api.example.com/v1`. Its "
        "host must be in `network.allow`",
    ),
    Key("guardian.model", Kind.TEXT, None, "The model's name at the endpoint"),
    Key(
        "guardian.key_env",
        Kind.TEXT,
        None,
        "The variable that holds the endpoint's key. It is withheld from commands, unless `env.pass` names it",
    ),
    Key(
        "guardian.rater",
        Kind.SWITCH,
        False,
        "Or the built-in rater: it allows what harms little, denies what harms much, and leaves the rest to a person",
    ),
    *(
        Key(f"hooks.{event}", Kind.HOOKS, (), doc, project=Project.SET)
        for event, doc in (
            ("session_start", "Commands that run inside the sandbox when a new session begins"),
            (
                "before_exec",
                "Before a command: they get it as JSON on standard input. Exit status 0 lets it go on; "
                '`{"decision": "ask"|"deny", "reason": TEXT}` on standard output, any other exit status, or silence '
                "beyond `timeout` (30 s) tightens the verdict",
            ),
            ("after_exec", "After a command, with its exit code"),
            ("on_refusal", "After a turn in which something was refused, with every refusal"),
        )
    ),
    Key(
        "hooks.trusted",
        Kind.DIGESTS,
        (),
        "The hooks you have trusted, by their content; `doorward trust --hooks` writes it. In a trusted project hooks "
        "need not be here",
        home_only=True,
    ),
    Key(
        "replay.redact",
        Kind.CHOICE,
        "show",
        "Where credentials are taken out of outputs: in what is shown of a rollout, or before it is written",
        ("show", "write"),
        project=Project.TIGHTEN,
    ),
    Key(
        "replay.env",
        Kind.CHOICE,
        "fingerprints",
        "What a rollout has of variables that are not harmless: a keyed fingerprint each, or an encrypted copy too",
        ("fingerprints", "sealed"),
    ),
    Key(
        "replay.seal_to",
        Kind.TEXT,
        None,
        "The public key that `replay.env = \"sealed\"` encrypts to; `doorward sessions seal-key FILE` makes a pair",
    ),
    Key(
        "feature_stages.*",
        Kind.CHOICE,
        None,
        "An embedding application's own feature: how far it has come. It is then switched under `[features]` like any "
        "other, off until it is enabled",
        STAGES,
    ),
    Key(
        "policy.import_codex",
        Kind.SWITCH,
        False,
        "Whether the rules Codex keeps (`$CODEX_HOME/rules`, and a trusted project's `.codex/rules`) count too; they "
        "are only read",
    ),
    Key(
        "projects.*.trust_level",
        Kind.CHOICE,
        None,
        "What you think of the folder that stands for `*` and all below it. Unset is a third state, unknown: the "
        "project's own configuration and hooks are not read, but it is not held against it",
        ("trusted", "untrusted"),
        home_only=True,
    ),
)

KEY: Final = {key.name: key for key in KEYS}

NETWORK_OF_MODE: Final[dict[str, Literal["off", "proxied", "full"]]] = {
    "read-only": "off",
    "workspace-write": "proxied",
    "danger-full-access": "full",
}
"""The network mode where none was given, by `sandbox_mode` (DESIGN §6)."""

Tree = dict[str, "Key | Tree"]


def tree() -> Tree:
    """The rows as nested tables; `*` stands for any name."""
    root: Tree = {}
    for key in KEYS:
        *tables, last = key.name.split(".")
        node = root
        for table in tables:
            below = node.setdefault(table, {})
            assert isinstance(below, dict)
            node = below
        node[last] = key
    return root

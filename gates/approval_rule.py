"""What "always" would write: one Codex-compatible rule, or the reason why none is offered.

A rule allows everything that begins with its words, in every folder, until it is removed. So it is never offered for a
program that runs, fetches or becomes what its arguments say: there "begins with" would mean "anything".
"""

import json
from collections.abc import Sequence
from typing import Final

from doorward.gates.known_commands import SHELLS
from doorward.gates.places import inside
from doorward.gates.plain_script import unwrapped
from doorward.gates.wording import plain
from doorward.named_tuple import NamedTuple

_INTERPRETERS: Final = frozenset(
    (
        *("awk", "bun", "bunx", "cscript", "deno", "elixir", "emacs", "erl", "ex", "expect", "gawk", "gdb", "ghci"),
        *("groovy", "guile", "irb", "java", "jshell", "julia", "lua", "luajit", "mawk", "nano", "nawk", "node"),
        *("nvim", "osascript", "perl", "php", "pipx", "powershell", "pwsh", "pypy", "python", "r", "racket", "rscript"),
        *("nodejs", "npx", "ruby", "sed", "sqlite", "tclsh", "ts-node", "tsx", "uvx", "vi", "view", "vim", "wish"),
        *("wscript",),
    )
)
_WRAPPERS: Final = frozenset(
    (
        *("busybox", "toybox"),
        *("bwrap", "builtin", "chrt", "cmd", "command", "doorward", "entr", "env", "eval", "exec", "fakeroot", "find"),
        *("firejail", "flock", "ionice", "ltrace", "nice", "nohup", "nsenter", "parallel", "rlwrap", "script"),
        *("setarch", "setsid", "stdbuf", "strace", "taskset", "time", "timeout", "tmux", "screen", "unbuffer"),
        *("unshare", "watch", "xargs"),
    )
)
_NETWORK: Final = frozenset(
    (
        *("aria", "axel", "curl", "dig", "ftp", "host", "http", "https", "lftp", "lynx", "mosh", "nc", "ncat"),
        *("netcat", "nslookup", "openssl", "ping", "rclone", "rsh", "rsync", "scp", "sftp", "socat", "ssh", "telnet"),
        *("tftp", "w3m", "wget", "xh"),
    )
)
_PRIVILEGE: Final = frozenset(
    (
        *("chroot", "docker", "doas", "gosu", "kubectl", "machinectl", "mount", "nerdctl", "pkexec", "podman", "run0"),
        *("runuser", "setpriv", "su", "sudo", "sudoedit", "systemctl", "systemd-run", "umount"),
    )
)
_KINDS: Final = (
    (SHELLS, "a shell"),
    (_INTERPRETERS, "an interpreter"),
    (_WRAPPERS, "a wrapper that runs what it is given"),
    (_NETWORK, "a network tool"),
    (_PRIVILEGE, "a tool that gives another user's rights"),
)
_LONGEST: Final = 4096


class Offer(NamedTuple):
    """`rule` is the line that would be written, "" where none is offered; `sentence` says what it would do, or why
    not."""

    rule: str
    sentence: str


def offered_rule(argv: Sequence[str], planted: Sequence[str]) -> Offer:
    """The rule for `argv`, or for the command in a shell's script. `planted` are the folders the sandboxed side can
    write to: a program in them may be another one tomorrow."""
    words = unwrapped(argv)
    if not words:
        return Offer("", "there is no command to write a rule about")
    program = words[0]
    name = program.rpartition("/")[2].lower().removesuffix(".exe")
    for known, what in _KINDS:
        if name in known or name.rstrip("0123456789.-") in known:
            return Offer("", f"{plain(program)} is {what}: a rule for it would allow far more than this; allow it once")
    if "/" in program and (not program.startswith("/") or any(inside(program, folder) for folder in planted)):
        return Offer("", f"{plain(program)} lies where a sandboxed command can replace it; allow it for this session")
    if not all(word.isprintable() for word in words) or sum(map(len, words)) > _LONGEST:
        return Offer("", "its words are too long, or hold characters that no rule should; allow it for this session")
    pattern = json.dumps(list(words), ensure_ascii=False)
    return Offer(
        f'prefix_rule(pattern={pattern}, decision="allow")',
        "allows every command that begins with exactly these words, in every folder, until the line is removed; the "
        "sandbox and the network rules still hold it",
    )

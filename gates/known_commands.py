"""The commands doorward knows: which only read, and which write to the targets they name. A table to read and edit.

Unknown is the safe side: a command that is not here, or is used with an option that is not here, is never taken
for read-only, and what it writes is left to the kernel. Options are listed as GNU and BSD tools spell them; a
long option also counts where it is abbreviated.
"""

from __future__ import annotations

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class ReadOnly(NamedTuple):
    """A command that only reads, unless one of these is used."""

    unless_short: str = ""
    """Letters of short options, alone or in a cluster: `-o`, `-uo`."""
    unless_long: tuple[str, ...] = ()
    """Long options without their dashes."""
    unless_words: tuple[str, ...] = ()
    """Whole arguments."""
    unless_env: tuple[str, ...] = ()
    """Variables that make it run or write something; one that ends in `*` is a prefix."""
    most_operands: int | None = None
    """More operands than this and it writes (`uniq IN OUT`)."""
    only: tuple[str, ...] | None = None
    """If given, the only arguments with which it just reads."""
    operands_begin: str = ""
    """If given, how every operand must begin (`date +%s` prints, `date 0101` sets the clock)."""


_PLAIN: Final = ReadOnly()

READ_ONLY: Final[dict[str, ReadOnly]] = {
    # text and files
    "cat": _PLAIN,
    "head": _PLAIN,
    "tail": _PLAIN,
    "tac": _PLAIN,
    "rev": _PLAIN,
    "nl": _PLAIN,
    "wc": _PLAIN,
    "cut": _PLAIN,
    "tr": _PLAIN,
    "paste": _PLAIN,
    "comm": _PLAIN,
    "cmp": _PLAIN,
    "diff": _PLAIN,
    "fold": _PLAIN,
    "column": _PLAIN,
    "od": _PLAIN,
    "hexdump": _PLAIN,
    "strings": _PLAIN,
    "cksum": _PLAIN,
    "md5sum": _PLAIN,
    "sha1sum": _PLAIN,
    "sha256sum": _PLAIN,
    "sha512sum": _PLAIN,
    "b2sum": _PLAIN,
    "base64": ReadOnly(unless_short="o", unless_long=("output",)),
    "uniq": ReadOnly(most_operands=1),
    "sort": ReadOnly(unless_short="oT", unless_long=("output", "compress-program", "temporary-directory")),
    "file": ReadOnly(unless_short="CzZ", unless_long=("compile", "uncompress", "uncompress-noreport")),
    "grep": _PLAIN,
    "egrep": _PLAIN,
    "fgrep": _PLAIN,
    # --pre and --hostname-bin start a program, -z starts decompressors found on PATH
    "rg": ReadOnly(
        unless_short="z", unless_long=("pre", "hostname-bin", "search-zip"), unless_env=("RIPGREP_CONFIG_PATH",)
    ),
    # folders
    "ls": _PLAIN,
    "pwd": _PLAIN,
    "stat": _PLAIN,
    "du": _PLAIN,
    "df": _PLAIN,
    "tree": ReadOnly(unless_short="oR"),
    "basename": _PLAIN,
    "dirname": _PLAIN,
    "realpath": _PLAIN,
    "readlink": _PLAIN,
    "find": ReadOnly(
        unless_words=(
            "-exec",
            "-execdir",
            "-ok",
            "-okdir",
            "-delete",
            "-fls",
            "-fprint",
            "-fprint0",
            "-fprintf",
        )
    ),
    # the machine and the session
    "arch": _PLAIN,
    "date": ReadOnly(unless_short="s", unless_long=("set",), operands_begin="+"),
    "free": _PLAIN,
    "groups": _PLAIN,
    "hostname": ReadOnly(only=("-f", "-s", "-d", "-i", "-I", "--fqdn", "--short", "--domain")),
    "id": _PLAIN,
    "locale": _PLAIN,
    "nproc": _PLAIN,
    "printenv": _PLAIN,
    "ps": _PLAIN,
    "tty": _PLAIN,
    "uname": _PLAIN,
    "uptime": _PLAIN,
    "which": _PLAIN,
    "whoami": _PLAIN,
    # no effect but an answer
    "[": _PLAIN,
    "echo": _PLAIN,
    "expr": _PLAIN,
    "false": _PLAIN,
    "printf": _PLAIN,
    "seq": _PLAIN,
    "sleep": _PLAIN,
    "test": _PLAIN,
    "true": _PLAIN,
}

GIT_GLOBAL_HARMLESS: Final = frozenset({"--no-pager", "--no-optional-locks", "--literal-pathspecs"})
"""What may stand between `git` and its sub-command, besides `-C FOLDER`. The others name a program, a configuration
or another repository (`-c core.pager=x`, `--exec-path=.`, `--git-dir=..`), or start a pager (`-p`)."""

GIT_ENVIRONMENT: Final = (
    "GIT_CONFIG*",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_TRACE*",
    "GIT_WORK_TREE",
)

_DIFF: Final = ReadOnly(unless_long=("output", "ext-diff", "textconv"), unless_env=GIT_ENVIRONMENT)
_LOOK: Final = ReadOnly(unless_env=GIT_ENVIRONMENT)

GIT_READ_ONLY: Final[dict[str, ReadOnly]] = {
    "status": _LOOK,
    "log": _DIFF,
    "show": _DIFF,
    "diff": _DIFF,
    "blame": _DIFF,
    "shortlog": _DIFF,
    "describe": _LOOK,
    "for-each-ref": _LOOK,
    "ls-files": _LOOK,
    "ls-tree": _LOOK,
    "merge-base": _LOOK,
    "name-rev": _LOOK,
    "rev-list": _LOOK,
    "rev-parse": _LOOK,
    "cat-file": ReadOnly(unless_long=("textconv", "filters"), unless_env=GIT_ENVIRONMENT),
    "grep": ReadOnly(
        unless_short="O", unless_long=("open-files-in-pager", "ext-grep", "textconv"), unless_env=GIT_ENVIRONMENT
    ),
    "branch": ReadOnly(
        only=("-a", "-r", "-v", "-vv", "--all", "--list", "--remotes", "--show-current", "--verbose"),
        unless_env=GIT_ENVIRONMENT,
    ),
    "remote": ReadOnly(only=("-v", "--verbose"), unless_env=GIT_ENVIRONMENT),
    "tag": ReadOnly(only=("-l", "--list"), unless_env=GIT_ENVIRONMENT),
}


class Writer(NamedTuple):
    """A command that writes to the operands it names, as long as only these options are used."""

    targets: str
    """"all" operands, the "last" of at least two, or all "after-first"."""
    flags: str = ""
    """Short options without a value."""
    long_flags: tuple[str, ...] = ()
    """Long options without a value, or with one after `=`, that change nothing about the targets."""
    values: str = ""
    """Short options whose next argument is a value."""


WRITERS: Final[dict[str, Writer]] = {
    "tee": Writer("all", "aip", ("append", "ignore-interrupts", "output-error")),
    "touch": Writer("all", "acmh", ("no-create", "no-dereference", "date", "reference", "time"), "drt"),
    "truncate": Writer("all", "co", ("no-create", "io-blocks", "size", "reference"), "sr"),
    # no -p: `mkdir -p` of a folder that exists writes nothing
    "mkdir": Writer("all", "v", ("verbose", "mode"), "m"),
    "rmdir": Writer("all", "v", ("verbose", "ignore-fail-on-non-empty")),
    "rm": Writer(
        "all", "rRfivdI", ("recursive", "force", "interactive", "verbose", "dir", "one-file-system", "preserve-root")
    ),
    "unlink": Writer("all"),
    "shred": Writer("all", "fuvxz", ("force", "remove", "verbose", "exact", "zero", "iterations", "size"), "ns"),
    "cp": Writer(
        "last",
        "adfHiLlnPpRruvx",
        ("archive", "force", "interactive", "no-clobber", "preserve", "recursive", "update", "verbose"),
    ),
    "mv": Writer("all", "finuv", ("force", "interactive", "no-clobber", "update", "verbose")),
    "ln": Writer("last", "sfnivr", ("symbolic", "force", "no-dereference", "interactive", "verbose", "relative")),
    "chmod": Writer("after-first", "Rcfv", ("recursive", "changes", "quiet", "silent", "verbose")),
    "chown": Writer("after-first", "Rcfvh", ("recursive", "changes", "quiet", "silent", "verbose", "no-dereference")),
    "chgrp": Writer("after-first", "Rcfvh", ("recursive", "changes", "quiet", "silent", "verbose", "no-dereference")),
}

SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "ash", "busybox"})
"""Programs whose argument is a script. Without a grammar a script is not understood."""

HARMLESS_TARGETS: Final = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
)
"""Writing to these changes no file."""

HARMLESS_FOLDERS: Final = ("/dev/fd/", "/proc/self/fd/")
"""Already open descriptors; the sandbox inherits none but 0, 1 and 2."""

SYSTEM_FOLDERS: Final = frozenset(
    {"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"}
)
"""Where a program called by its full path is the one its name says."""

"""The commands doorward knows, each with a reason. The one table to read and edit; what its columns mean is in
command_entry.py.

- `READ_ONLY` (and `GIT_READ_ONLY`): they change nothing, unless an option that is listed makes them.
- `WRITERS`: they write to the targets they name.
- `WRAPPERS`, `SHELLS`: they run a command that stands in their arguments.
- `RISKY`: deleting, history, privilege, disks, other machines, publishing. They are asked about.
- `INTERPRETERS`, `CREDENTIAL_FILES`: what is risky to feed, and to read.

Unknown is the safe side: a command that is not here, or is used with an option that is not here, is never taken
for read-only, and what it writes is left to the kernel. Options are listed as GNU and BSD tools spell them; a
long option also counts where it is abbreviated. Commands of PowerShell and cmd are in lower case: those do not care.
"""

from __future__ import annotations

from doorward.gates.command_entry import ReadOnly, Risk, Wrapper, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_PLAIN: Final = ReadOnly()
"""It prints, and has no option that writes a file or starts a program."""

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
    "base64": ReadOnly(unless_short="o", unless_long=("output",), because="-o writes a file"),
    "uniq": ReadOnly(most_operands=1, because="its second operand is a file it writes"),
    "sort": ReadOnly(
        unless_short="oT",
        unless_long=("output", "compress-program", "temporary-directory"),
        because="-o writes a file, and --compress-program starts a program",
    ),
    "file": ReadOnly(
        unless_short="CzZ",
        unless_long=("compile", "uncompress", "uncompress-noreport"),
        because="-C writes a file, and -z starts a decompressor",
    ),
    "jq": _PLAIN,
    "grep": _PLAIN,
    "egrep": _PLAIN,
    "fgrep": _PLAIN,
    "rg": ReadOnly(
        unless_short="z",
        unless_long=("pre", "hostname-bin", "search-zip"),
        unless_env=("RIPGREP_CONFIG_PATH",),
        because="--pre and --hostname-bin start a program, -z the decompressors on PATH, and so may its configuration",
    ),
    # folders
    "ls": _PLAIN,
    "pwd": _PLAIN,
    "stat": _PLAIN,
    "du": _PLAIN,
    "df": _PLAIN,
    "tree": ReadOnly(unless_short="oR", because="-o and -R write files"),
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
        ),
        because="-exec and -ok start a program, -delete deletes, and the -fprint family writes a file",
    ),
    # the machine and the session
    "arch": _PLAIN,
    "date": ReadOnly(unless_short="s", unless_long=("set",), operands_begin="+", because="-s sets the clock"),
    "env": _PLAIN,
    "free": _PLAIN,
    "groups": _PLAIN,
    "hostname": ReadOnly(
        only=("-f", "-s", "-d", "-i", "-I", "--fqdn", "--short", "--domain"), because="an operand sets the name"
    ),
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
    # what a shell does to itself
    ":": _PLAIN,
    "break": _PLAIN,
    "cd": _PLAIN,
    "continue": _PLAIN,
    "exit": _PLAIN,
    "popd": _PLAIN,
    "pushd": _PLAIN,
    "read": _PLAIN,
    "return": _PLAIN,
    "set": _PLAIN,
    "shift": _PLAIN,
    "type": _PLAIN,
    "wait": _PLAIN,
    # PowerShell and cmd
    "dir": _PLAIN,
    "findstr": _PLAIN,
    "get-childitem": _PLAIN,
    "get-content": _PLAIN,
    "get-date": _PLAIN,
    "get-item": _PLAIN,
    "get-location": _PLAIN,
    "get-process": _PLAIN,
    "measure-object": _PLAIN,
    "select-string": _PLAIN,
    "test-path": _PLAIN,
    "ver": _PLAIN,
    "where": _PLAIN,
    "write-host": _PLAIN,
    "write-output": _PLAIN,
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

_DIFF: Final = ReadOnly(
    unless_long=("output", "ext-diff", "textconv"),
    unless_env=GIT_ENVIRONMENT,
    because="--output writes a file, --ext-diff and --textconv start a program",
)
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

SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh"})
"""Programs whose argument is a script. Those of the Bourne family are read with a grammar, the last three are not."""

POWERSHELLS: Final = frozenset({"powershell", "pwsh"})
CMD: Final = "cmd"
"""Windows' shells; their names in any case, with or without `.exe`."""

INTERPRETERS: Final = SHELLS | POWERSHELLS | {
    *("awk", "bun", "deno", "ipython", "irb", "lua", "luajit", "node", "nodejs", "osascript", "perl", "php"),
    *("python", "python2", "python3", "pypy", "pypy3", "raku", "Rscript", "ruby", "tclsh", "wish"),
}  # fmt: skip
"""Programs that run what they read from a pipe."""

WRAPPERS: Final[dict[str, Wrapper]] = {
    "env": Wrapper(
        "sets variables", "i0v", "uC", ("ignore-environment", "null", "debug"), ("unset", "chdir"), assignments=True
    ),
    "command": Wrapper("takes no function of that name", "p"),
    "builtin": Wrapper("takes the shell's own command"),
    "exec": Wrapper("ends the shell for it", "cl", "a"),
    "coproc": Wrapper("runs beside the shell"),
    "nohup": Wrapper("outlives the terminal"),
    "setsid": Wrapper("makes a session of its own", "cfw", "", ("ctty", "fork", "wait")),
    "nice": Wrapper("lowers its priority", "0123456789", "n", (), ("adjustment",)),
    "ionice": Wrapper("lowers its priority for disks", "t", "cn", ("ignore",), ("class", "classdata")),
    "chrt": Wrapper("changes its scheduling", "bfiorR", "", operands=1),
    "taskset": Wrapper("picks processors", "ac", "", ("all-tasks", "cpu-list"), operands=1),
    "stdbuf": Wrapper("changes its buffers", "", "ioe", (), ("input", "output", "error")),
    "timeout": Wrapper(
        "ends it after a time",
        "fpv",
        "ks",
        ("foreground", "preserve-status", "verbose"),
        ("kill-after", "signal"),
        operands=1,
    ),
    "time": Wrapper("measures it", "apqv", "f", ("append", "portability", "quiet", "verbose"), ("format",)),
    "unbuffer": Wrapper("gives it a terminal", "p"),
    "caffeinate": Wrapper("keeps the machine awake", "dimsu", "t"),
    "xvfb-run": Wrapper("gives it a display", "a", "nswe", ("auto-servernum",), ("server-num", "server-args")),
    "busybox": Wrapper("has many commands in one"),
    "toybox": Wrapper("has many commands in one"),
    "sudo": Wrapper(
        "gives it another user's rights",
        "AbEHknPS",
        "ugpCcDhRrTtU",
        ("askpass", "background", "preserve-env", "set-home", "non-interactive", "stdin", "reset-timestamp"),
        ("user", "group", "prompt", "chdir", "chroot", "host", "role", "type", "command-timeout"),
        assignments=True,
    ),
    "doas": Wrapper("gives it another user's rights", "nL", "uC"),
    "setpriv": Wrapper(
        "changes its rights", "", "", ("no-new-privs", "clear-groups", "init-groups"), ("reuid", "regid")
    ),
    "chroot": Wrapper("gives it another root", "", "", ("skip-chdir",), ("userspec", "groups"), operands=1),
    "flock": Wrapper(
        "holds a lock for it", "enosuxF", "wE", ("exclusive", "nonblock", "shared", "unlock", "close"), ("wait",), 1
    ),
    "strace": Wrapper("watches its system calls", "cCdfFhiqrtTvVwxyzZ", "abeEIoOpPsSuX"),
    "xargs": Wrapper(
        "adds what it reads to the words",
        "0rtpxo",
        "adEILnPRsS",
        ("null", "no-run-if-empty", "verbose", "interactive", "exit"),
        ("arg-file", "delimiter", "max-args", "max-lines", "max-procs", "max-chars", "replace"),
        adds="many",
    ),
    "parallel": Wrapper(
        "adds what it reads to the words", "0kXm", "jNn", ("null", "keep-order"), ("jobs",), adds="many"
    ),
    "watch": Wrapper(
        "runs it again and again",
        "bcdegptwC",
        "nq",
        ("beep", "color", "differences", "errexit", "chgexit", "precise", "no-title", "no-wrap"),
        ("interval", "equexit"),
        adds="script",
    ),
}
"""Programs that start the command they are given."""

BUILTINS: Final = frozenset(
    {
        *(":", ".", "[", "alias", "break", "builtin", "cd", "command", "continue", "echo", "eval", "exec", "exit"),
        *(
            "export",
            "false",
            "popd",
            "printf",
            "pushd",
            "pwd",
            "read",
            "return",
            "set",
            "shift",
            "test",
            "trap",
            "true",
        ),
        *("type", "umask", "unset", "wait"),
    }
)
"""Names that a shell runs itself, whatever PATH holds (POSIX.1-2024, 2.15 and 1.7; bash(1))."""

FOLLOWED: Final = SHELLS | POWERSHELLS | WRAPPERS.keys() | {CMD, "find", "ssh", "eval", "su", "runuser", "trap"}
"""Programs in whose arguments other commands are looked for."""

REMOTE_VALUES: Final = "bcDeEFiIJlLmopQRSwW"
"""Options of ssh(1) with a value; the first operand is the host, what follows is a command for its shell."""
REMOTE_RUNS: Final = ("proxycommand", "localcommand", "permitlocalcommand", "knownhostscommand", "match", "include")
"""Settings of ssh_config(5) that start a program here, in lower case."""

EXECUTING: Final = {"-exec": (";", "+"), "-execdir": (";", "+"), "-ok": (";",), "-okdir": (";",)}
"""What in find(1) starts a command, and the words that end it."""

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

# --- what is asked about: matched by base name, wherever the program lies --------------------------------------------

_DELETES: Final = "deletes for good"
_REWRITES: Final = "rewrites or drops history"
_DISCARDS: Final = "throws away work that was not committed"
_PRIVILEGE: Final = "runs with another user's rights"
_DISK: Final = "changes disks or mounts"
_REMOTE: Final = "opens a connection to another machine"
_MACHINE: Final = "changes the state of the machine"
_ACCOUNTS: Final = "changes accounts or who may do what"
_SCHEDULES: Final = "leaves something that runs later"
_PUBLISHES: Final = "publishes to others"
_REMOTE_STATE: Final = "deletes what others use"
_RUNS_TEXT: Final = "runs text as a command"


def _always(because: str) -> tuple[Risk, ...]:
    return (Risk(because),)


RISKY: Final[dict[str, tuple[Risk, ...]]] = {
    # deleting
    "rm": _always(_DELETES),
    "unlink": _always(_DELETES),
    "shred": _always(_DELETES),
    "srm": _always(_DELETES),
    "del": _always(_DELETES),
    "erase": _always(_DELETES),
    "rd": _always(_DELETES),
    "remove-item": _always(_DELETES),
    "clear-content": _always(_DELETES),
    "ri": _always(_DELETES),
    "find": (Risk(_DELETES, arguments=("-delete",)),),
    "rsync": (Risk(_DELETES, long=("delete", "remove-source-files")),),
    # history
    "git": (
        Risk(_REWRITES, words=("push",), short="fd", long=("force", "force-with-lease", "mirror", "delete", "prune")),
        Risk(_REWRITES, words=("push",), arguments=("+*", ":*")),
        Risk(_REWRITES, words=("rebase",)),
        Risk(_REWRITES, words=("filter-branch",)),
        Risk(_REWRITES, words=("filter-repo",)),
        Risk(_REWRITES, words=("commit",), long=("amend",)),
        Risk(_REWRITES, words=("reflog", "expire")),
        Risk(_REWRITES, words=("reflog", "delete")),
        Risk(_REWRITES, words=("gc",), long=("prune",)),
        Risk(_REWRITES, words=("update-ref",), short="d"),
        Risk(_REWRITES, words=("branch",), short="dD", long=("delete",)),
        Risk(_REWRITES, words=("tag",), short="d", long=("delete",)),
        Risk(_DISCARDS, words=("reset",), long=("hard", "merge", "keep")),
        Risk(_DISCARDS, words=("clean",)),
        Risk(_DISCARDS, words=("checkout",), short="f", long=("force",)),
        Risk(_DISCARDS, words=("checkout",), arguments=("--", ".")),
        Risk(_DISCARDS, words=("restore",)),
        Risk(_DISCARDS, words=("switch",), short="f", long=("force", "discard-changes")),
        Risk(_DISCARDS, words=("stash", "drop")),
        Risk(_DISCARDS, words=("stash", "clear")),
        Risk(_DISCARDS, words=("worktree", "remove")),
    ),
    # another user's rights
    "sudo": _always(_PRIVILEGE),
    "su": _always(_PRIVILEGE),
    "doas": _always(_PRIVILEGE),
    "pkexec": _always(_PRIVILEGE),
    "runuser": _always(_PRIVILEGE),
    "chroot": _always(_PRIVILEGE),
    "nsenter": _always(_PRIVILEGE),
    "unshare": _always(_PRIVILEGE),
    "setcap": _always(_PRIVILEGE),
    "runas": _always(_PRIVILEGE),
    # text that becomes a command
    "invoke-expression": _always(_RUNS_TEXT),
    "iex": _always(_RUNS_TEXT),
    # disks and mounts
    "dd": (Risk("writes to a device", arguments=("of=/dev/*",)),),
    "mkfs": _always(_DISK),
    "fdisk": _always(_DISK),
    "sfdisk": _always(_DISK),
    "parted": _always(_DISK),
    "wipefs": _always(_DISK),
    "blkdiscard": _always(_DISK),
    "mkswap": _always(_DISK),
    "losetup": _always(_DISK),
    "mount": (Risk(_DISK, unless=("-l",)),),
    "umount": _always(_DISK),
    "cryptsetup": _always(_DISK),
    "diskutil": _always(_DISK),
    "diskpart": _always(_DISK),
    "format": _always(_DISK),
    "format-volume": _always(_DISK),
    "clear-disk": _always(_DISK),
    # other machines
    "ssh": _always(_REMOTE),
    "scp": _always(_REMOTE),
    "sftp": _always(_REMOTE),
    "mosh": _always(_REMOTE),
    "rsh": _always(_REMOTE),
    "telnet": _always(_REMOTE),
    "nc": _always(_REMOTE),
    "ncat": _always(_REMOTE),
    "netcat": _always(_REMOTE),
    "socat": _always(_REMOTE),
    "enter-pssession": _always(_REMOTE),
    "invoke-command": _always(_REMOTE),
    # the machine
    "shutdown": _always(_MACHINE),
    "reboot": _always(_MACHINE),
    "halt": _always(_MACHINE),
    "poweroff": _always(_MACHINE),
    "systemctl": (
        Risk(
            _MACHINE,
            arguments=(
                *("daemon-reload", "disable", "edit", "enable", "isolate", "kill", "link", "mask", "poweroff"),
                *("reboot", "reload*", "restart", "set-default", "start", "stop", "suspend", "try-restart", "unmask"),
            ),
        ),
    ),
    "service": (Risk(_MACHINE, arguments=("start", "stop", "restart", "reload")),),
    "launchctl": _always(_MACHINE),
    "sysctl": (Risk(_MACHINE, unless=("-a", "-n")),),
    "modprobe": _always(_MACHINE),
    "insmod": _always(_MACHINE),
    "rmmod": _always(_MACHINE),
    "iptables": (Risk(_MACHINE, unless=("-L", "-S", "--list")),),
    "ip6tables": (Risk(_MACHINE, unless=("-L", "-S", "--list")),),
    "nft": (Risk(_MACHINE, unless=("list",)),),
    "ufw": _always(_MACHINE),
    "useradd": _always(_ACCOUNTS),
    "usermod": _always(_ACCOUNTS),
    "userdel": _always(_ACCOUNTS),
    "groupadd": _always(_ACCOUNTS),
    "groupdel": _always(_ACCOUNTS),
    "passwd": _always(_ACCOUNTS),
    "chpasswd": _always(_ACCOUNTS),
    "visudo": _always(_ACCOUNTS),
    "takeown": _always(_ACCOUNTS),
    "icacls": _always(_ACCOUNTS),
    "net": (Risk(_ACCOUNTS, words=("user",)), Risk(_ACCOUNTS, words=("localgroup",))),
    "reg": (Risk(_MACHINE, arguments=("add", "delete", "import", "restore")),),
    "sc": (Risk(_MACHINE, arguments=("config", "create", "delete", "start", "stop")),),
    "bcdedit": _always(_MACHINE),
    "set-executionpolicy": _always(_MACHINE),
    "stop-computer": _always(_MACHINE),
    "restart-computer": _always(_MACHINE),
    "schtasks": _always(_SCHEDULES),
    "register-scheduledtask": _always(_SCHEDULES),
    "crontab": (Risk(_SCHEDULES, unless=("-l",)),),
    "at": _always(_SCHEDULES),
    # publishing and shared state
    "npm": (Risk(_PUBLISHES, words=("publish",)), Risk(_REMOTE_STATE, words=("unpublish",))),
    "pnpm": (Risk(_PUBLISHES, words=("publish",)),),
    "yarn": (Risk(_PUBLISHES, words=("publish",)), Risk(_PUBLISHES, words=("npm", "publish"))),
    "cargo": (Risk(_PUBLISHES, words=("publish",)), Risk(_REMOTE_STATE, words=("yank",))),
    "twine": (Risk(_PUBLISHES, words=("upload",)),),
    "poetry": (Risk(_PUBLISHES, words=("publish",)),),
    "flit": (Risk(_PUBLISHES, words=("publish",)),),
    "hatch": (Risk(_PUBLISHES, words=("publish",)),),
    "uv": (Risk(_PUBLISHES, words=("publish",)),),
    "gem": (Risk(_PUBLISHES, words=("push",)), Risk(_REMOTE_STATE, words=("yank",))),
    "docker": (Risk(_PUBLISHES, words=("push",)), Risk(_DELETES, words=("system", "prune"))),
    "podman": (Risk(_PUBLISHES, words=("push",)), Risk(_DELETES, words=("system", "prune"))),
    "helm": (Risk(_PUBLISHES, words=("push",)), Risk(_REMOTE_STATE, words=("uninstall",))),
    "mvn": (Risk(_PUBLISHES, arguments=("deploy", "deploy:*")),),
    "gh": (Risk(_PUBLISHES, words=("release", "create")), Risk(_REMOTE_STATE, words=("repo", "delete"))),
    "aws": (Risk(_REMOTE_STATE, words=("s3", "rm")), Risk(_REMOTE_STATE, words=("s3", "rb"))),
    "redis-cli": (Risk(_REMOTE_STATE, arguments=("flushall", "flushdb", "FLUSHALL", "FLUSHDB")),),
    "dropdb": _always(_REMOTE_STATE),
    "kubectl": (Risk(_REMOTE_STATE, words=("delete",)),),
    "terraform": (Risk(_REMOTE_STATE, words=("destroy",)), Risk("changes what others use", words=("apply",))),
}

RISKY_BEGINNINGS: Final[dict[str, Risk]] = {"mkfs.": Risk(_DISK)}
"""Programs known by how their name begins."""

VALUE_OPTIONS: Final[dict[str, frozenset[str]]] = {
    "git": frozenset(
        {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"}
    ),
    "docker": frozenset({"-H", "-c", "-l", "--host", "--context", "--config", "--log-level"}),
    "podman": frozenset({"-c", "--connection", "--identity", "--log-level", "--root", "--url"}),
    "kubectl": frozenset({"-n", "-s", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "--server"}),
    "helm": frozenset({"-n", "--namespace", "--kube-context", "--kubeconfig"}),
    "npm": frozenset({"-C", "-w", "--prefix", "--registry", "--workspace"}),
    "pnpm": frozenset({"-C", "-F", "--dir", "--filter", "--registry"}),
    "yarn": frozenset({"--cwd", "--registry"}),
    "cargo": frozenset({"-C", "-Z", "--config", "--color"}),
    "gh": frozenset({"-R", "--repo"}),
    "uv": frozenset({"--directory", "--project", "--config-file", "--cache-dir", "--color"}),
    "poetry": frozenset({"-C", "-P", "--directory", "--project"}),
}
"""Options of the program itself whose value is the next argument, so that the sub-command is found behind them."""

CREDENTIAL_FILES: Final = (
    ".ssh/id_",
    ".ssh/identity",
    ".gnupg/",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".aws/credentials",
    ".azure/",
    ".config/gcloud/",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".kube/config",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
)
"""Parts of a path that hold keys and passwords. A part that begins with a dot counts only at a path's part."""

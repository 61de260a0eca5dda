"""The commands doorward asks about: destructive, privileged, publishing, reaching out. A table to read and edit.

Matched by base name, wherever the program lies; one match too many costs a question, one too few an accident.
"""

from __future__ import annotations

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class Risk(NamedTuple):
    """One way a program is risky. All that is given must hold; `because` completes "PROGRAM …"."""

    because: str
    words: tuple[str, ...] = ()
    """The sub-command: the first operands after the program's own options."""
    short: str = ""
    """Letters of short options, any of which suffices."""
    long: tuple[str, ...] = ()
    """Long options without dashes, any of which suffices (as does a letter of `short`)."""
    arguments: tuple[str, ...] = ()
    """Whole arguments, or how one begins where the text ends in `*`; any suffices."""


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


def _always(because: str) -> tuple[Risk, ...]:
    return (Risk(because),)


RISKY: Final[dict[str, tuple[Risk, ...]]] = {
    # deleting
    "rm": _always(_DELETES),
    "unlink": _always(_DELETES),
    "shred": _always(_DELETES),
    "srm": _always(_DELETES),
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
    "mount": _always(_DISK),
    "umount": _always(_DISK),
    "cryptsetup": _always(_DISK),
    "diskutil": _always(_DISK),
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
    "sysctl": _always(_MACHINE),
    "modprobe": _always(_MACHINE),
    "insmod": _always(_MACHINE),
    "rmmod": _always(_MACHINE),
    "iptables": _always(_MACHINE),
    "ip6tables": _always(_MACHINE),
    "nft": _always(_MACHINE),
    "ufw": _always(_MACHINE),
    "useradd": _always(_ACCOUNTS),
    "usermod": _always(_ACCOUNTS),
    "userdel": _always(_ACCOUNTS),
    "groupadd": _always(_ACCOUNTS),
    "groupdel": _always(_ACCOUNTS),
    "passwd": _always(_ACCOUNTS),
    "chpasswd": _always(_ACCOUNTS),
    "visudo": _always(_ACCOUNTS),
    "crontab": _always(_SCHEDULES),
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

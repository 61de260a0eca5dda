"""Which tools a project uses, seen from the names of its files, and the configuration that is proposed for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit

from doorward.named_tuple import NamedTuple

_SIGNS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("npm", ("package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock")),
    ("pip", ("requirements*.txt", "pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "uv.lock", "poetry.lock")),
    ("conda", ("environment.yml", "environment.yaml", "conda-lock.yml")),
    ("cargo", ("Cargo.toml", "Cargo.lock")),
    ("go", ("go.mod", "go.work")),
    ("rubygems", ("Gemfile", "*.gemspec")),
    ("composer", ("composer.json",)),
    ("maven", ("pom.xml",)),
    ("gradle", ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradlew")),
    ("nuget", ("*.sln", "*.csproj", "*.fsproj", "Directory.Packages.props")),
    ("terraform", ("*.tf", ".terraform.lock.hcl")),
    ("playwright", ("playwright.config.ts", "playwright.config.js", "playwright.config.mjs")),
    ("docker", ("Dockerfile", "Containerfile", "compose.yaml", "compose.yml", "docker-compose.yml")),
)
_SECRETS: Final = (".env", ".env.*", ".netrc", ".npmrc", ".pypirc", "*.pem", "*.key", "*.p12", "id_rsa", "id_ed25519")
_NO_SECRETS: Final = (".env.example", ".env.sample", ".env.template", ".env.dist")


class Tool(NamedTuple):
    """A preset that fits, and the files that say so."""

    preset: str
    because: tuple[str, ...]


def tools_of(names: Iterable[str]) -> list[Tool]:
    """The tools whose files stand in the project's own folder, in a fixed order."""
    there = sorted(names)
    found = []
    for preset, patterns in _SIGNS:
        because = tuple(name for name in there if any(fnmatchcase(name, pattern) for pattern in patterns))
        if because:
            found.append(Tool(preset, because))
    return found


def secrets_of(names: Iterable[str]) -> list[str]:
    """Files of the project's own folder that commonly hold secrets."""
    return sorted(
        name
        for name in names
        if any(fnmatchcase(name, pattern) for pattern in _SECRETS) and name not in _NO_SECRETS
    )


def fetch_preset(remote: str) -> str | None:
    """`git-fetch:HOST/OWNER/REPO` for a remote over HTTPS; None for any other."""
    try:
        parts = urlsplit(remote)
        port = parts.port
    except ValueError:
        return None
    path = parts.path.strip("/").removesuffix(".git")
    if parts.scheme != "https" or not parts.hostname or not path:
        return None
    return f"git-fetch:{parts.hostname}{'' if port is None else f':{port}'}/{path}"


def proposal(tools: Sequence[Tool], secrets: Sequence[str], fetch: str | None) -> str:
    """The text of `.doorward/config.toml`, every line explained."""
    lines = [
        "# What commands of this project may do behind doorward: https is closed but for what stands here.",
        "# Read only where the project is trusted: `doorward trust`. It adds to your own configuration and can make it",
        "# stricter, never looser. `doorward allowlist show` prints the rules in effect.",
        "",
        "[network]",
        "# Hosts, addresses and presets that may be reached. A preset asks the tool what it is configured for:",
        "# `doorward allowlist presets --expand` prints what each stands for on this machine.",
        "allow = [",
    ]
    lines += [f'  "@{tool.preset}",  # {", ".join(tool.because[:3])}' for tool in tools]
    if fetch is not None:
        lines += [
            f'  # "@{fetch}",  # to clone and fetch this repository, not push; needs inspection',
        ]
    lines += [
        '  # "api.example.com",       # ports 80 and 443',
        '  # "db.example.com:5432",   # this port only',
        "]",
        "# Hosts that may never be reached, whatever else allows them.",
        "deny = []",
        "",
        "[filesystem]",
        "# Paths or globs that commands cannot even read.",
    ]
    if secrets:
        lines += ["deny_read = [", *(f'  "{name}",' for name in secrets), "]"]
    else:
        lines.append('deny_read = []  # such as ".env", "**/*.key"')
    lines += [
        "# Paths or globs in this folder that commands may read but not change.",
        'read_only = []  # such as "migrations/"',
        "",
        "# To find out what the project needs instead of guessing:",
        "#   doorward run --observe --name build -- make",
        "#   doorward allowlist learn build",
        "",
    ]
    return "\n".join(lines)

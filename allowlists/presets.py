"""Presets: `@name` in an allow list stands for the hosts that a tool on this machine is already configured to use.
Those that only read from such hosts are in `read_only.py`.

A preset reads the tool's own configuration, so a private mirror is found; where there is none to read, a dated list
serves (`preset_hosts.toml`). It is expanded outside the sandbox, by whoever gives it `Tools`; here is no socket and no
process.

- Every host comes with its port and with why it is there; each becomes one exact allow rule.
- A name is pinned for the run to the addresses it has at expansion, private ones included (`pins_for`).
- Link-local and metadata addresses are never opened this way; loopback only where the tool's own configuration names
  it (`127.0.0.1`, `localhost`), not where a page or a resolver led there.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from doorward.allowlists.addresses import AddressClass, IPAddress, classify, pinnable, unmap
from doorward.allowlists.host import Address, Host, authority_text
from doorward.allowlists.special_purpose import METADATA_NAMES
from doorward.named_tuple import NamedTuple

#: Name and one line for a person; each lives in `preset_NAME.py`.
PRESETS: dict[str, str] = {
    "pip": "the package indexes pip is configured for, and the file hosts they link to",
    "pip-install": "the same hosts, to read from only",
    "npm": "the registries npm is configured for",
    "npm-install": "the same hosts, to read from only",
    "git-fetch": "git-fetch:HOST/OWNER/REPO, clone and fetch from there, and no push",
    "git": "the hosts git's settings name; the public forges with +shared",
    "cargo": "crates.io, or what replaces it, and the registries of Cargo's settings",
    "go": "the module proxy and checksum database of go env",
    "docker": "Docker Hub and its mirrors; layers of images with +shared",
    "conda": "the channels conda is configured for",
    "huggingface": "the Hugging Face hub, or HF_ENDPOINT; large files with +shared",
    "maven": "Maven Central, or its mirror, and the repositories of ~/.m2/settings.xml",
    "gradle": "Gradle's distributions and plugins, and Maven Central",
    "rubygems": "the gem server, and the sources of gem",
    "composer": "Packagist, or its mirror; archives with +shared",
    "nuget": "the sources of dotnet nuget",
    "apt": "the sites apt is configured for",
    "dnf": "the repositories dnf is configured for",
    "apk": "the repositories of /etc/apk/repositories",
    "terraform": "Terraform's registry and mirrors; releases of others with +shared",
    "playwright": "the browsers Playwright downloads",
}


class Page(NamedTuple):
    """What a fetch brought. `url` is the last one, `via` those that redirected before it, the first asked for included.

    `content_type` may carry parameters; `body` may be cut at a size of the fetcher's choosing.
    """

    url: str
    content_type: str
    body: bytes
    via: tuple[str, ...] = ()


class Tools(Protocol):
    """The outside world, as a preset may use it."""

    def run(self, argv: Sequence[str]) -> str | None:
        """Standard output of the program, with the user's own environment; None when it is missing or fails."""

    def read(self, path: str) -> str | None:
        """Text of a file of the user's, up to some size; `~` is the home folder; None where it cannot be read."""

    def fetch(self, url: str, *, ca_file: str | None = None, verify: bool = True) -> Page:
        """GET with redirects followed. User-info in the URL is for Basic authentication. Raises OSError."""


class PresetHost(NamedTuple):
    """`configured` is True when the tool's configuration itself names this host and port."""

    host: Host
    port: int
    why: str
    configured: bool

    @property
    def entry(self) -> str:
        """The allow rule."""
        return authority_text(self.host, self.port)


class Fingerprint(NamedTuple):
    """What an expansion depends on: it stays good while none of this changes.

    `programs` as looked up in PATH; `files` whether they exist or not; `variables` by name, `PIP_*` for a prefix.
    """

    programs: tuple[str, ...]
    files: tuple[str, ...]
    variables: tuple[str, ...]


class PresetExpansion(NamedTuple):
    """`hosts` may be empty (everything local); `notices` are for the person. No field holds a credential."""

    name: str
    hosts: tuple[PresetHost, ...]
    notices: tuple[str, ...]
    fingerprint_inputs: Fingerprint


class PresetUnavailable(Exception):
    """The preset cannot be expanded here. `reason` and `remedy` are one sentence each."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}"


def preset_name(entry: str) -> str | None:
    """`pip` for `@pip`; None for an entry that is a rule."""
    return entry[1:] if entry.startswith("@") else None


def expand(name: str, tools: Tools) -> PresetExpansion:
    """The hosts; for a preset that only reads from them, the same. Raises PresetUnavailable; also for a name that is
    no preset."""
    name = name.removesuffix("-install")
    if name == "pip":
        from doorward.allowlists import preset_pip  # each preset is read only when asked for

        return preset_pip.expand(tools)
    if name == "npm":
        from doorward.allowlists import preset_npm

        return preset_npm.expand(tools)
    if name == "git-fetch":
        raise PresetUnavailable(
            "@git-fetch names no repository", "write @git-fetch:HOST/OWNER/REPO, or name the host with --allow"
        )
    if name.removesuffix("+shared") in PRESETS:
        from doorward.allowlists import preset_listed

        return preset_listed.expand(name, tools)
    known = ", ".join(f"@{each}" for each in PRESETS)
    raise PresetUnavailable(f"there is no preset @{name}", f"the presets are {known}")


def pins_for(host: PresetHost, addresses: Iterable[IPAddress]) -> tuple[IPAddress, ...]:
    """The addresses a preset's name is pinned to, out of those the machine's resolver gives; () for a literal."""
    if isinstance(host.host, Address):
        return ()
    return tuple(dict.fromkeys(ip for ip in map(unmap, addresses) if pinnable(ip)))


def may_be_preset(host: Host, *, configured: bool) -> bool:
    """False for a host that no preset opens, whatever links to it."""
    if not isinstance(host, Address):
        return host.text not in METADATA_NAMES and (configured or host.text != "localhost")
    return pinnable(host.ip) or (configured and classify(host.ip) is AddressClass.LOOPBACK)

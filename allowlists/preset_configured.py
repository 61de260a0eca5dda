"""What tools say of themselves: the addresses a tool is configured for, asked of the tool or read in its own files.

One function a tool. Each gives an `Asked`: with `instead`, what is configured takes the place of the listed hosts, as a
mirror does; without, it comes to them. None: the tool is not here, or says nothing, and the list of `preset_hosts.toml`
serves.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable

from doorward.allowlists.presets import Tools
from doorward.named_tuple import NamedTuple


class Asked(NamedTuple):
    """`urls` with why each is there; `files`, `variables` and `programs` as in `presets.Fingerprint`."""

    urls: tuple[tuple[str, str], ...]
    instead: bool
    programs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ("HOME",)
    notices: tuple[str, ...] = ()


Asking = Callable[[Tools], Asked | None]


def apk(tools: Tools) -> Asked | None:
    """The repositories of /etc/apk/repositories (apk-repositories(5)); a line may begin with a @tag."""
    path = "/etc/apk/repositories"
    text = tools.read(path)
    if text is None:
        return None
    words = [word for line in text.splitlines() if not line.lstrip().startswith("#") for word in line.split()]
    urls = _each((word for word in words if "://" in word), "a repository apk is configured for")
    return Asked(urls, True, (), (path,))


def apt(tools: Tools) -> Asked | None:
    """Every site apt would fetch an index from (apt-get(8), indextargets)."""
    output = tools.run(["apt-get", "indextargets", "--format", "$(SITE)"])
    if output is None:
        return None
    why = "a site apt is configured for"
    files = ("/etc/apt/sources.list", "/etc/apt/sources.list.d", "/etc/apt/apt.conf", "/etc/apt/apt.conf.d")
    return Asked(_each(output.split(), why), True, ("apt-get",), files)


def cargo(tools: Tools) -> Asked | None:
    """Registries and the replacement of crates.io in Cargo's own file (The Cargo Book, Source Replacement)."""
    home = (tools.run(["printenv", "CARGO_HOME"]) or "").strip() or "~/.cargo"
    files = (f"{home}/config.toml", f"{home}/config")
    text = next((text for text in map(tools.read, files) if text is not None), None)
    try:
        settings = tomllib.loads(text or "")
    except tomllib.TOMLDecodeError as error:
        return Asked((), False, (), files, ("HOME", "CARGO_HOME"), (f"Cargo's settings cannot be read: {error}",))
    sources = _table(settings, "source")
    replaced = _replacement(sources, "crates-io")
    urls = list(_each(replaced, "what replaces crates.io in Cargo's settings"))
    for name, registry in _table(settings, "registries").items():
        index = registry.get("index") if isinstance(registry, dict) else None
        if isinstance(index, str):
            urls.append((index, f"the registry {name} in Cargo's settings"))
    return Asked(tuple(urls), bool(replaced), (), files, ("HOME", "CARGO_HOME"))


def composer(tools: Tools) -> Asked | None:
    """Composer's global repositories: the packagist mirror and private ones."""
    output = tools.run(["composer", "config", "--global", "--list", "--no-interaction"])
    if output is None:
        return None
    found = re.findall(r"\[repositories\.(\S+?)\.url\]\s+(\S+)", output)
    urls = tuple((url, f"the repository {name} in Composer's settings") for name, url in found)
    mirrored = any(name in ("packagist.org", "packagist") for name, _ in found)
    return Asked(urls, mirrored, ("composer",), ("~/.config/composer/config.json", "~/.composer/config.json"),
                 ("HOME", "COMPOSER_HOME"))  # fmt: skip


def conda(tools: Tools) -> Asked | None:
    """Channels as conda resolves them: URLs as they stand, names below `channel_alias`."""
    output = tools.run(["conda", "config", "--show", "channel_alias", "default_channels", "channels", "--json"])
    if output is None:
        return None
    settings = _json(output)
    channels = _texts(settings, "channels")
    urls: list[tuple[str, str]] = []
    if any("://" not in each and each != "defaults" for each in channels):
        urls += _each(_texts(settings, "channel_alias"), "where conda looks for channels by name")
    if "defaults" in channels or not channels:
        urls += _each(_texts(settings, "default_channels"), "a default channel of conda")
    urls += _each((each for each in channels if "://" in each), "a channel conda is configured for")
    return Asked(tuple(urls), bool(urls), ("conda",), ("~/.condarc", "~/.conda/.condarc"), ("HOME", "CONDA_*"))


def dnf(tools: Tools) -> Asked | None:
    """Base URLs, mirror lists and metalinks of the enabled repositories, of dnf 4 and dnf 5."""
    output = tools.run(["dnf", "repolist", "--enabled", "-v"]) or tools.run(["dnf", "repo", "info", "--enabled"])
    if output is None:
        return None
    found = re.findall(r"(?im)^\s*(?:repo-)?(base ?url|mirrors|metalink)\s*:\s*(\S+?),?(?:\s|$)", output)
    lists = any(kind.lower() in ("mirrors", "metalink") for kind, _ in found)
    notices = ("dnf takes packages from the mirrors that its lists name; allow the one you use by name",)
    urls = _each((url for _, url in found), "a repository dnf is configured for")
    files = ("/etc/yum.repos.d", "/etc/dnf/dnf.conf")
    return Asked(urls, True, ("dnf",), files, notices=notices if lists else ())


def docker(tools: Tools) -> Asked | None:
    """Mirrors of Docker Hub in the daemon's file; the hub is still asked where a mirror fails (dockerd(8))."""
    path = "/etc/docker/daemon.json"
    text = tools.read(path)
    mirrors = _texts(_json(text), "registry-mirrors") if text is not None else ()
    return Asked(_each(mirrors, "a mirror Docker is configured for"), False, (), (path,))


def git(tools: Tools) -> Asked | None:
    """The hosts that the person's own git settings name: URL rewrites, credential helpers, http options by host."""
    output = tools.run(["git", "config", "--global", "--name-only", "--get-regexp", r"^(url|credential|http)\..+\..+"])
    found = re.findall(r"(?m)^(?:url|credential|http)\.(https?://\S+)\.[^.\s]+$", output or "")
    files = ("~/.gitconfig", "~/.config/git/config")
    urls = _each(found, "a host the person's git settings name")
    return Asked(urls, True, ("git",), files, ("HOME", "XDG_CONFIG_HOME"))


def go(tools: Tools) -> Asked | None:
    """The module proxies and the checksum database of `go env` (The Go Module Reference)."""
    output = tools.run(["go", "env", "-json", "GOPROXY", "GOSUMDB"])
    if output is None:
        return None
    settings = _json(output)
    proxies = re.split(r"[,|]", str(settings.get("GOPROXY", "")))
    urls = list(_each((each for each in proxies if "://" in each), "a module proxy go is configured for"))
    database = str(settings.get("GOSUMDB", "")).split()
    if database and database[0] != "off":
        url = database[1] if len(database) > 1 else f"https://{database[0].partition('+')[0]}"
        urls.append((url, "its checksum database"))
    direct = "direct" in proxies
    notices = ("modules that go fetches from their own repositories (GOPROXY has `direct`) need those hosts by name",)
    return Asked(tuple(urls), True, ("go",), ("~/.config/go/env",), ("HOME", "GO*"), notices if direct else ())


def huggingface(tools: Tools) -> Asked | None:
    """HF_ENDPOINT, which the hub's client asks instead of the public hub."""
    endpoint = (tools.run(["printenv", "HF_ENDPOINT"]) or "").split()
    return Asked(_each(endpoint, "HF_ENDPOINT"), bool(endpoint), variables=("HF_ENDPOINT",))


def maven(tools: Tools) -> Asked | None:
    """Mirrors and repositories of ~/.m2/settings.xml; a mirror of `*` or `central` stands for Maven Central."""
    path = "~/.m2/settings.xml"
    text = tools.read(path)
    if text is None:
        return None
    from xml.etree import ElementTree

    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return Asked((), False, (), (path,), notices=(f"Maven's settings cannot be read: {error}",))
    urls: list[tuple[str, str]] = []
    instead = False
    for element in root.iter():
        kind = element.tag.rpartition("}")[2]
        said = {child.tag.rpartition("}")[2]: (child.text or "").strip() for child in element}
        if kind == "mirror" and said.get("url"):
            of = [word.strip() for word in said.get("mirrorOf", "").split(",")]
            instead = instead or ("!central" not in of and not {"*", "external:*", "central"}.isdisjoint(of))
            urls.append((said["url"], f"the mirror {said.get('id', '')} in Maven's settings"))
        elif kind in ("repository", "pluginRepository") and said.get("url"):
            urls.append((said["url"], f"the repository {said.get('id', '')} in Maven's settings"))
    return Asked(tuple(urls), instead, (), (path,))


def nuget(tools: Tools) -> Asked | None:
    """The enabled sources of the .NET command line."""
    output = tools.run(["dotnet", "nuget", "list", "source", "--format", "Short"])
    if output is None:
        return None
    urls = [line.split(None, 1)[1] for line in output.splitlines() if line.startswith("E ") and "://" in line]
    files = ("~/.nuget/NuGet/NuGet.Config", "~/.config/NuGet/NuGet.Config")
    return Asked(_each(urls, "a source NuGet is configured for"), bool(urls), ("dotnet",), files)


def playwright(tools: Tools) -> Asked | None:
    """PLAYWRIGHT_DOWNLOAD_HOST, from which browsers come instead."""
    host = (tools.run(["printenv", "PLAYWRIGHT_DOWNLOAD_HOST"]) or "").split()
    return Asked(_each(host, "PLAYWRIGHT_DOWNLOAD_HOST"), bool(host), variables=("PLAYWRIGHT_*",))


def rubygems(tools: Tools) -> Asked | None:
    """The sources of `gem`."""
    output = tools.run(["gem", "sources", "--list"])
    if output is None:
        return None
    urls = [line.strip() for line in output.splitlines() if "://" in line]
    return Asked(_each(urls, "a source gem is configured for"), False, ("gem",), ("~/.gemrc", "/etc/gemrc"))


def terraform(tools: Tools) -> Asked | None:
    """The network mirrors of Terraform's own file (`provider_installation`)."""
    named = (tools.run(["printenv", "TF_CLI_CONFIG_FILE"]) or "").strip()
    path = named or "~/.terraformrc"
    text = tools.read(path)
    found = re.findall(r'network_mirror\s*\{[^}]*?\burl\s*=\s*"([^"]+)"', text or "", re.DOTALL)
    urls = _each(found, "a mirror Terraform is configured for")
    return Asked(urls, False, (), (path,), ("HOME", "TF_CLI_CONFIG_FILE"))


ASKING: dict[str, Asking] = {
    "apk": apk, "apt": apt, "cargo": cargo, "composer": composer, "conda": conda, "dnf": dnf, "docker": docker,
    "git": git, "go": go, "huggingface": huggingface, "maven": maven, "nuget": nuget, "playwright": playwright,
    "rubygems": rubygems, "terraform": terraform,
}  # fmt: skip
"""By preset. Gradle has no settings of its own for where it downloads from: a build names its repositories."""


def _each(urls: Iterable[str], why: str) -> tuple[tuple[str, str], ...]:
    return tuple((url, why) for url in dict.fromkeys(urls))


def _replacement(sources: dict[str, object], name: str) -> list[str]:
    """Where the chain of `replace-with` leads; nothing where it ends in a folder, or goes round."""
    seen = set()
    while name not in seen:
        seen.add(name)
        source = sources.get(name)
        if not isinstance(source, dict):
            return []
        onward = source.get("replace-with")
        if not isinstance(onward, str):
            return [url for key in ("registry", "git") if len(seen) > 1 and isinstance(url := source.get(key), str)]
        name = onward
    return []


def _table(settings: dict[str, object], key: str) -> dict[str, object]:
    value = settings.get(key)
    return value if isinstance(value, dict) else {}


def _json(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _texts(settings: dict[str, object], key: str) -> tuple[str, ...]:
    value = settings.get(key)
    listed = value if isinstance(value, list) else [value]
    return tuple(each for each in listed if isinstance(each, str))

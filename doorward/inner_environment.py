"""The environment inside: what is passed on, what is withheld, and the proxy variables every client needs."""

from __future__ import annotations

from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

LOOPBACK_LITERALS: Final = "localhost,127.0.0.1,::1"
"""NO_PROXY inside. Literals only: bracketed forms and ranges crash or confuse clients."""

_CREDENTIAL_WORDS: Final = frozenset(
    ("TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD", "CREDENTIAL", "AUTH", "COOKIE", "PAT",
     "DSN")
)  # fmt: skip
"""A name whose last word is one of these (a plural S, and endings such as _FILE, left off) looks like a credential."""

_ENDINGS: Final = ("_ID", "_FILE", "_BASE64", "_JSON")

_CREDENTIAL_PARTS: Final = (
    *("SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "API_KEY", "PRIVATE_KEY", "PRIVATEKEY"),
    *("ACCESS_KEY", "ACCESSKEY", "ACCESS_TOKEN", "ACCESSTOKEN", "AUTH_TOKEN", "AUTHTOKEN", "TOKEN_"),
)
"""Anywhere in the name."""

_CREDENTIAL_STARTS: Final = (
    *("AWS_SESSION", "AWS_SECURITY", "AWS_ACCESS", "AWS_WEB_IDENTITY", "AWS_CONTAINER", "AZURE_", "ARM_CLIENT"),
    *("GOOGLE_APPLICATION", "CLOUDSDK_AUTH", "DBUS_"),
)

_CREDENTIAL_NAMES: Final = frozenset(
    ("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "KRB5CCNAME", "PGPASSFILE", "DOCKER_HOST",
     "DOCKER_AUTH_CONFIG", "KUBECONFIG", "DATABASE_URL", "REDIS_URL", "MONGO_URL", "MONGODB_URI", "MONGODB_URL",
     "POSTGRES_URL", "MYSQL_URL", "AMQP_URL", "RABBITMQ_URL", "DATABASE_URI")
)  # fmt: skip
"""Sockets of agents, files of credentials, and addresses that usually carry a password."""

_NOT_CREDENTIALS: Final = frozenset({"PWD", "OLDPWD", "SSH_TTY", "XAUTHORITY", "KEYBOARD_KEY"})

_LOADER_STARTS: Final = ("LD_", "DYLD_", "BASH_FUNC_")
_LOADER_NAMES: Final = frozenset(
    ("BASH_ENV", "ENV", "BASHOPTS", "GCONV_PATH", "GETCONF_DIR", "GIT_PROXY_COMMAND", "GLIBC_TUNABLES", "HOSTALIASES",
     "LOCALDOMAIN", "LOCPATH", "MALLOC_TRACE", "PERL5DB", "PROMPT_COMMAND", "PS4", "PYTHONINSPECT", "PYTHONSTARTUP",
     "RIPGREP_CONFIG_PATH", "SHELLOPTS")
)  # fmt: skip
"""Variables that make a loader, a shell or a runtime run or load something before the command itself."""

_PROXY_STARTS: Final = ("GLOBAL_AGENT_", "DOCKER_", "MAVEN_", "NPM_CONFIG_", "PNPM_CONFIG_", "YARN_", "CARGO_", "CGI_")
_PROXY_NAMES: Final = frozenset(
    ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY", "GRPC_PROXY", "NO_GRPC_PROXY", "RSYNC_PROXY",
     "SOCKS_PROXY", "WS_PROXY", "WSS_PROXY", "PIP_PROXY", "NODE_USE_ENV_PROXY")
)  # fmt: skip
"""Everything that could send a client to another proxy, or past ours. Replaced, never merged."""

_JAVA_OPTIONS: Final = frozenset(
    ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS", "MAVEN_OPTS", "GRADLE_OPTS", "ANT_OPTS",
     "SBT_OPTS", "LEIN_JVM_OPTS")
)  # fmt: skip
"""Options of a JVM. All but the first go before JAVA_TOOL_OPTIONS, so a proxy named there would win over ours."""

_JAVA_WORD: Final = r"""(?:"[^"]*"|'[^']*'|\S)+\s*"""
_JAVA_PROXY: Final = (
    r"""["']?-D(?:(?:https?|ftp)\.(?:proxy(?:Host|Port|User|Password|Set)|nonProxyHosts)"""
    r"""|socks(?:Proxy(?:Host|Port|Version)|NonProxyHosts)|java\.net\.useSystemProxies)(?![\w.])"""
)
"""A word of such options, and the start of one that names a proxy (java.net.doc-files, "Networking Properties")."""

_CORE: Final = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER")


class InnerEnvironment(NamedTuple):
    """`variables` is complete; `withheld` names (never values) what the caller had and the command does not get."""

    variables: dict[str, str]
    withheld: tuple[str, ...]


def looks_like_credential(name: str) -> bool:
    """True if a variable of this name is withheld unless it is passed by name. By the name alone: no value is guessed
    at."""
    if name in _NOT_CREDENTIALS:
        return False
    upper = name.upper()
    stem = upper
    for ending in _ENDINGS:
        stem = stem.removesuffix(ending)
    word = stem.rpartition("_")[2]
    return (
        word in _CREDENTIAL_WORDS
        or word.removesuffix("S") in _CREDENTIAL_WORDS
        or upper in _CREDENTIAL_NAMES
        or upper.startswith(_CREDENTIAL_STARTS)
        or any(part in upper for part in _CREDENTIAL_PARTS)
    )


def _starts_something(name: str, value: str) -> bool:
    return name in _LOADER_NAMES or name.startswith(_LOADER_STARTS) or value.startswith("() {")


def _names_a_proxy(name: str) -> bool:
    upper = name.upper()
    return upper in _PROXY_NAMES or (upper.startswith(_PROXY_STARTS) and upper.endswith("PROXY"))


def build(
    outer: Mapping[str, str], *, inherit: str = "all", passed: Iterable[str] = (), proxy_url: str | None = None
) -> InnerEnvironment:
    """The variables for inside.

    `inherit` is "all", "core" or "none"; `passed` names come in whatever they look like; `proxy_url` such as
    "http://127.0.0.1:3128" is written into every proxy variable, None removes them all.
    """
    wanted = frozenset(passed)
    variables: dict[str, str] = {}
    withheld: list[str] = []
    for name, value in outer.items():
        if _names_a_proxy(name):
            continue
        if name in wanted:
            variables[name] = value
        elif _starts_something(name, value) or looks_like_credential(name):
            withheld.append(name)
        elif inherit == "all" or (inherit == "core" and (name in _CORE or name.startswith("LC_"))):
            variables[name] = value
        else:
            withheld.append(name)
    for name in _JAVA_OPTIONS & variables.keys():
        variables[name] = _without_proxies(variables[name])
    if proxy_url is not None:
        variables.update(proxy_variables(proxy_url, variables.get("JAVA_TOOL_OPTIONS", "")))
    return InnerEnvironment(variables, tuple(sorted(withheld)))


def _without_proxies(java_options: str) -> str:
    """The options less every property that names a proxy; untouched if there is none."""
    if "prox" not in java_options.lower():
        return java_options
    import re  # rarely needed

    kept = re.sub(_JAVA_WORD, lambda word: "" if re.match(_JAVA_PROXY, word[0]) else word[0], java_options)
    return kept.strip()


def proxy_variables(url: str, java_options: str = "") -> dict[str, str]:
    """Proxy variables in every spelling clients read.

    Both cases with equal values, because some clients read only one. ALL_PROXY is http too: a socks scheme
    there breaks clients without a SOCKS library at construction (httpx), and the same port speaks SOCKS5
    for whoever names it. Gradle and Maven read system properties only, hence JAVA_TOOL_OPTIONS.
    """
    host, _, port = url.partition("://")[2].rstrip("/").rpartition(":")
    variables: dict[str, str] = {}
    for name in ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "grpc_proxy"):
        variables[name] = variables[name.upper()] = url
    for name in ("no_proxy", "no_grpc_proxy"):
        variables[name] = variables[name.upper()] = LOOPBACK_LITERALS
    variables["NODE_USE_ENV_PROXY"] = "1"
    bypass = LOOPBACK_LITERALS.replace(",", "|").replace("::1", "[::1]")
    properties = " ".join(f"-D{scheme}.proxyHost={host} -D{scheme}.proxyPort={port}" for scheme in ("http", "https"))
    variables["JAVA_TOOL_OPTIONS"] = f"{java_options} {properties} -Dhttp.nonProxyHosts={bypass}".strip()
    return variables

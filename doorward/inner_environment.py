"""The environment inside: what is passed on, what is withheld, and the proxy variables every client needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

LOOPBACK_LITERALS: Final = "localhost,127.0.0.1,::1"
"""NO_PROXY inside. Literals only: bracketed forms and ranges crash or confuse clients."""

_CREDENTIAL = re.compile(
    r"""(?x)
      (^|_) (TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|CREDENTIALS?|AUTH|COOKIE|PAT|DSN)
            (S|_ID|_FILE|_BASE64|_JSON)? $
    | SECRET | PASSWORD | PASSWD | PASSPHRASE | CREDENTIAL | API_?KEY | PRIVATE_?KEY | ACCESS_?KEY
    | ACCESS_?TOKEN | AUTH_?TOKEN | TOKEN_ | ^PGPASSFILE$
    | ^AWS_(SESSION|SECURITY|ACCESS|SECRET|WEB_IDENTITY|CONTAINER) | ^AZURE_ | ^ARM_CLIENT
    | ^GOOGLE_(APPLICATION|CREDENTIALS) | ^CLOUDSDK_AUTH
    | ^(SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|DBUS_.*|KRB5CCNAME)$
    | ^(DOCKER_HOST|DOCKER_AUTH_CONFIG|KUBECONFIG)$
    | ^NPM_CONFIG_.*(AUTH|TOKEN|PASSWORD)
    | ^(DATABASE|REDIS|MONGO(DB)?|POSTGRES|MYSQL|AMQP|RABBITMQ)_UR[IL]$
    """,
    re.IGNORECASE,
)
"""Names that look like credentials. Matching is on the name alone, so that no value needs to be guessed at."""

_NOT_CREDENTIALS: Final = frozenset({"PWD", "OLDPWD", "SSH_TTY", "XAUTHORITY", "KEYBOARD_KEY"})

_LOADER = re.compile(
    r"""(?x) ^( LD_.* | DYLD_.* | GCONV_PATH | LOCPATH | GETCONF_DIR | HOSTALIASES | LOCALDOMAIN | MALLOC_TRACE
    | GLIBC_TUNABLES | BASH_ENV | ENV | BASH_FUNC_.* | SHELLOPTS | BASHOPTS | PS4 | PROMPT_COMMAND | PERL5DB
    | PYTHONSTARTUP | PYTHONINSPECT | RIPGREP_CONFIG_PATH | GIT_PROXY_COMMAND )$"""
)
"""Variables that make a loader, a shell or a runtime run or load something before the command itself."""

_PROXY = re.compile(
    r"^((https?|ftp|all|no|grpc|no_grpc|rsync|socks)_proxy|npm_config_(https?_?-?)?proxy|npm_config_no_?proxy"
    r"|yarn_(https?_)?proxy|cargo_http_proxy|pip_proxy|node_use_env_proxy|global_agent_.*proxy|docker_.*_proxy|maven_.*_proxy)$",
    re.IGNORECASE,
)
"""Everything that could send a client to another proxy, or past ours. Replaced, never merged."""

_CORE: Final = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER")


class InnerEnvironment(NamedTuple):
    """`variables` is complete; `withheld` names (never values) what the caller had and the command does not get."""

    variables: dict[str, str]
    withheld: tuple[str, ...]


def looks_like_credential(name: str) -> bool:
    """True if a variable of this name is withheld unless it is passed by name."""
    return name not in _NOT_CREDENTIALS and _CREDENTIAL.search(name) is not None


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
        if _PROXY.match(name):
            continue
        if name in wanted:
            variables[name] = value
        elif value.startswith("() {") or _LOADER.match(name) or looks_like_credential(name):
            withheld.append(name)
        elif inherit == "all" or (inherit == "core" and (name in _CORE or name.startswith("LC_"))):
            variables[name] = value
    if proxy_url is not None:
        variables.update(proxy_variables(proxy_url, variables.get("JAVA_TOOL_OPTIONS", "")))
    return InnerEnvironment(variables, tuple(sorted(withheld)))


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

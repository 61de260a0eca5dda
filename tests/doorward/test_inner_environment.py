"""The environment inside: nothing that looks like a credential, proxy variables every client reads."""

from __future__ import annotations

import pytest

from doorward.inner_environment import build, looks_like_credential, proxy_variables

PROXY = "http://127.0.0.1:3128"


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN", "NPM_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID",
        "OPENAI_API_KEY", "DB_PASSWORD", "MYSQL_PWD", "PGPASSWORD", "SSH_AUTH_SOCK", "DATABASE_URL",
        "npm_config__authToken", "SECRET_SAUCE",
        "TWINE_PASSWORD", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_SECRET", "KUBECONFIG", "my_api_key",
    ],
)  # fmt: skip
def test_a_name_that_looks_like_a_credential_is_withheld(name: str) -> None:
    inner = build({name: "hunter2", "KEEP": "1"})
    assert name not in inner.variables
    assert inner.withheld == (name,)
    assert inner.variables["KEEP"] == "1"


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "PWD",
        "OLDPWD",
        "LANG",
        "KEYBOARD",
        "MONKEY",
        "TOKENIZERS_PARALLELISM",
        "PASSENGER",
        "HF_HUB_OFFLINE",
    ],
)
def test_ordinary_names_are_not_credentials(name: str) -> None:
    assert not looks_like_credential(name)


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "SHELLOPTS", "GLIBC_TUNABLES", "RIPGREP_CONFIG_PATH"]
)
def test_loader_and_shell_start_variables_are_withheld(name: str) -> None:
    assert build({name: "x"}).withheld == (name,)


def test_exported_functions_are_withheld_whatever_their_name() -> None:
    inner = build({"BASH_FUNC_ls%%": "() {  rm -rf /; }", "old_style": "() { :; }"})
    assert inner.variables == {}
    assert len(inner.withheld) == 2


def test_pass_env_brings_one_in_and_only_that_one() -> None:
    inner = build({"A_TOKEN": "a", "B_TOKEN": "b"}, passed=["A_TOKEN"])
    assert inner.variables == {"A_TOKEN": "a"}
    assert inner.withheld == ("B_TOKEN",)


@pytest.mark.parametrize(
    ("inherit", "withheld"),
    [("all", ("A_TOKEN",)), ("core", ("A_TOKEN", "EDITOR")), ("none", ("A_TOKEN", "EDITOR", "HOME"))],
)
def test_every_variable_that_stays_outside_is_named(inherit: str, withheld: tuple[str, ...]) -> None:
    """Proxy variables are no loss: they are replaced."""
    outer = {"A_TOKEN": "x", "EDITOR": "vi", "HOME": "/h", "HTTP_PROXY": "http://old.test"}
    assert build(outer, inherit=inherit).withheld == withheld


def test_inherit_core_and_none() -> None:
    outer = {"PATH": "/bin", "LC_ALL": "C", "EDITOR": "vi"}
    assert build(outer, inherit="core").variables == {"PATH": "/bin", "LC_ALL": "C"}
    assert build(outer, inherit="none").variables == {}


def test_both_cases_with_equal_values_replace_what_was_inherited() -> None:
    """P-EV-01, P-EV-15, P-EV-12."""
    outer = {
        "HTTP_PROXY": "http://stale:1", "https_proxy": "http://stale:2", "NO_PROXY": "*", "no_proxy": ".",
        "npm_config_proxy": "http://dead:9", "NPM_CONFIG_HTTPS_PROXY": "http://dead:9", "npm_config_https_proxy": "x",
    }  # fmt: skip
    inner = build(outer, proxy_url=PROXY).variables
    for name in ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy"):
        assert inner[name] == inner[name.upper()] == PROXY
    assert inner["NO_PROXY"] == inner["no_proxy"] == "localhost,127.0.0.1,::1"
    assert not [name for name in inner if name.lower().startswith("npm_config")]


def test_no_proxy_holds_literals_only() -> None:
    """P-EV-02, P-EV-05: no brackets, no ranges, and the three literals are always there."""
    entries = proxy_variables(PROXY)["NO_PROXY"].split(",")
    assert entries == ["localhost", "127.0.0.1", "::1"]


def test_no_socks_scheme_in_any_variable() -> None:
    """P-EV-07, P-EV-11."""
    assert not [value for value in proxy_variables(PROXY).values() if "socks" in value]


def test_java_options_carry_both_schemes_and_keep_an_inherited_value() -> None:
    """P-EV-10."""
    options = build({"JAVA_TOOL_OPTIONS": "-Xmx1g"}, proxy_url=PROXY).variables["JAVA_TOOL_OPTIONS"].split()
    assert options[0] == "-Xmx1g"
    properties = dict(word[2:].split("=", 1) for word in options[1:])
    assert properties["http.proxyHost"] == properties["https.proxyHost"] == "127.0.0.1"
    assert properties["http.proxyPort"] == properties["https.proxyPort"] == "3128"
    assert properties["http.nonProxyHosts"] == "localhost|127.0.0.1|[::1]"


@pytest.mark.parametrize(
    ("inherited", "kept"),
    [
        ("-Xmx1g", "-Xmx1g"),
        ("", ""),
        ('-Da="x  y"  -Dproxy.kind=none', '-Da="x  y"  -Dproxy.kind=none'),
        ("-Dhttp.proxyHost=corp.test -Xmx1g -Dhttp.proxyPort=8080", "-Xmx1g"),
        ("-Dhttps.proxyHost=corp.test -Dhttps.proxyUser=me -Dhttps.proxyPassword=hunter2", ""),
        ("""-Dhttp.nonProxyHosts="a b|c" '-DsocksProxyHost=corp.test' -Xss1m""", "-Xss1m"),
        ("-Djava.net.useSystemProxies=true -Dhttp.proxySet=true -Da=1", "-Da=1"),
        ("-Dhttp.proxyHostile=1", "-Dhttp.proxyHostile=1"),
        ("""-Da='-Dhttp.proxyHost=no "property" of its own'""", """-Da='-Dhttp.proxyHost=no "property" of its own'"""),
        ("""-Da=1 "unclosed -Dhttp.proxyHost=corp.test""", """-Da=1 "unclosed"""),
    ],
)
def test_a_proxy_among_inherited_java_options_is_left_behind(inherited: str, kept: str) -> None:
    """P-EV-10: every variable but JAVA_TOOL_OPTIONS would win over ours; its other options stay as they are."""
    for name in ("_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS", "JAVA_TOOL_OPTIONS"):
        assert build({name: inherited}).variables[name] == kept
    ours = build({"JAVA_TOOL_OPTIONS": inherited}, proxy_url=PROXY).variables["JAVA_TOOL_OPTIONS"]
    assert ours.startswith(f"{kept} -Dhttp.proxyHost=127.0.0.1".lstrip())
    assert "corp" not in ours


@pytest.mark.parametrize(
    "name", ["ws_proxy", "WSS_PROXY", "socks_proxy", "CGI_HTTP_PROXY", "pnpm_config_https_proxy", "YARN_HTTPS_PROXY"]
)
def test_rarer_names_of_a_proxy_are_left_behind(name: str) -> None:
    """P-EV-12: Python takes any scheme's variable, and a websocket client prefers its own."""
    assert build({name: "http://dead:9"}, proxy_url=PROXY).variables.get(name) is None


def test_what_only_sounds_like_a_proxy_stays() -> None:
    """GOPROXY is a list of module mirrors, no proxy to connect through."""
    outer = {"GOPROXY": "off", "GONOPROXY": "a.test", "MY_PROXY_MODE": "1"}
    assert build(outer).variables == outer


def test_without_a_proxy_no_proxy_variable_is_left() -> None:
    assert build({"http_proxy": "http://x:1", "NO_PROXY": "*"}).variables == {}


def test_node_reads_the_variables() -> None:
    assert proxy_variables(PROXY)["NODE_USE_ENV_PROXY"] == "1"

"""Programs in Node, Java and Go: each runtime's own way to the proxy, allowed and refused."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FETCH = "fetch(process.argv[1]).then(async r => console.log(r.status, (await r.text()).trim()))"


@pytest.fixture
def node_reads_variables(client: Callable[[str], str]) -> bool:
    """NODE_USE_ENV_PROXY came with 22.21 and 24.5 for fetch; before that it is not known."""
    said = subprocess.run([client("node"), "--version"], capture_output=True, check=True, timeout=30).stdout.decode()
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    return version >= (24, 0) or (22, 21) <= version < (23, 0)


def test_node_fetch(doorward: Any, web: Any, tls: Any, authority: Any, node_reads_variables: bool) -> None:
    for origin in (web, tls):
        for name in ("a.test", "b.test"):
            begin = time.monotonic()
            seen = doorward(*origin.reach(), "--", "node", "-e", FETCH, origin.url(name), env=authority.trusted())
            if not node_reads_variables and name == "b.test":
                # it looks the name up itself, which fails at once
                assert time.monotonic() - begin < 10
                assert (seen.status, set(seen.reasons)) == (1, {"not_allowed"})
                seen.says("TypeError: fetch failed", "[cause]: Error: getaddrinfo EAI_AGAIN")
            elif name == "a.test":
                assert (seen.status, seen.output.strip(), seen.reasons) == (0, "200 hello", [])
            else:
                assert seen.reasons == ["not_allowed"]
                assert "not_allowed" in seen.output
                assert "/" not in origin.paths[1:]


JAVA = """
import java.net.*;
import java.net.http.*;

public class Get {
    public static void main(String[] words) throws Exception {
        if (words[0].equals("client")) {
            var request = HttpRequest.newBuilder(URI.create(words[1])).build();
            var seen = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(seen.statusCode() + " " + seen.body());
        } else {
            var connection = (HttpURLConnection) new URL(words[1]).openConnection();
            System.out.println("hello " + new String(connection.getInputStream().readAllBytes()));
        }
    }
}
"""


@pytest.fixture
def java(doorward: Any, authority: Any, client: Callable[[str], str]) -> Any:
    """`java(origin, kind, name)`: one GET by java.net.http ("client") or HttpURLConnection ("connection")."""
    (doorward.workspace / "Get.java").write_text(JAVA)
    for words in (
        [client("javac"), "Get.java"],
        [client("keytool"), "-importcert", "-noprompt", "-file", str(authority.certificate), "-keystore", "trusted",
         "-storepass", "changeit"],
    ):  # fmt: skip
        subprocess.run(words, cwd=doorward.workspace, check=True, capture_output=True, timeout=120)
    trust = ("-Djavax.net.ssl.trustStore=trusted", "-Djavax.net.ssl.trustStorePassword=changeit")

    def get(origin: Any, kind: str, name: str) -> Any:
        return doorward(*origin.reach(), "--", "java", *trust, "Get", kind, origin.url(name))

    return get


def test_java_http_client(java: Any, web: Any, tls: Any) -> None:
    for origin in (web, tls):
        allowed = java(origin, "client", "a.test")
        assert (allowed.status, allowed.reasons) == (0, []), allowed.output
        allowed.says("Picked up JAVA_TOOL_OPTIONS:")
        assert allowed.output.rstrip().endswith("200 hello")
    plain = java(web, "client", "b.test")
    assert plain.reasons == ["not_allowed"]
    plain.says('"reason": "not_allowed"')
    tunnel = java(tls, "client", "b.test")
    assert (tunnel.status, tunnel.reasons) == (1, ["not_allowed"])
    tunnel.says("java.io.IOException: Tunnel failed, got: 403")
    assert f"to allow it: --allow b.test:{tls.port}" in tunnel.err
    assert web.paths == tls.paths == ["/"]


def test_java_url_connection(java: Any, web: Any, tls: Any) -> None:
    for origin in (web, tls):
        allowed = java(origin, "connection", "a.test")
        assert (allowed.status, allowed.reasons) == (0, []), allowed.output
        assert "hello hello" in allowed.output
    plain = java(web, "connection", "b.test")
    assert (plain.status, plain.reasons) == (1, ["not_allowed"])
    plain.says("java.io.IOException: Server returned HTTP response code: 403 for URL: http://b.test:")
    tunnel = java(tls, "connection", "b.test")
    assert tunnel.status == 1
    assert set(tunnel.reasons) == {"not_allowed"}
    tunnel.says('Unable to tunnel through proxy. Proxy returns "HTTP/1.1 403 Blocked (not_allowed): b.test:')
    assert web.paths == tls.paths == ["/"]


def test_java_takes_ours_before_inherited_properties(doorward: Any, java: Any, web: Any) -> None:
    """P-EV-10: a company's proxy in any of the variables a JVM reads is left behind, other options are kept."""
    dead = "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9 -Ddoorward.kept=1"
    env = {"JAVA_TOOL_OPTIONS": dead, "_JAVA_OPTIONS": dead, "JDK_JAVA_OPTIONS": dead}
    seen = doorward(*web.reach(), "--", "java", "Get", "client", web.url(), env=env)
    assert (seen.status, seen.reasons) == (0, []), seen.output
    assert seen.output.rstrip().endswith("200 hello")
    assert seen.output.count("-Ddoorward.kept=1") == 3


GO = """
package main

import ("fmt"; "io"; "net/http"; "os")

func main() {
	seen, problem := http.Get(os.Args[1])
	if problem != nil { fmt.Println(problem); os.Exit(1) }
	body, _ := io.ReadAll(seen.Body)
	fmt.Print(seen.Status, " ", string(body))
}
"""


@pytest.fixture
def go(doorward: Any, tmp_path: Path, client: Callable[[str], str]) -> str:
    """A small Go program, built outside."""
    (doorward.workspace / "get.go").write_text(GO)
    folders = {"HOME": str(tmp_path / "go"), "GOCACHE": str(tmp_path / "go" / "cache"), "PATH": doorward.env["PATH"]}
    subprocess.run(
        [client("go"), "build", "-o", "get", "get.go"], cwd=doorward.workspace, check=True, timeout=300,
        capture_output=True, env={**folders, "CGO_ENABLED": "0", "GO111MODULE": "off"},
    )  # fmt: skip
    return "./get"


def test_go(doorward: Any, go: str, web: Any, tls: Any, authority: Any) -> None:
    for origin in (web, tls):
        allowed = doorward(*origin.reach(), "--", go, origin.url(), env=authority.trusted())
        assert (allowed.status, allowed.output, allowed.reasons) == (0, "200 OK hello\n", [])
    plain = doorward(*web.reach(), "--", go, web.url("b.test"))
    assert (plain.status, plain.reasons) == (0, ["not_allowed"])
    plain.says("403 Blocked (not_allowed): b.test:", '"reason": "not_allowed"')
    tunnel = doorward(*tls.reach(), "--", go, tls.url("b.test"), env=authority.trusted())
    assert (tunnel.status, tunnel.reasons) == (1, ["not_allowed"])
    tunnel.says("Blocked (not_allowed): b.test:", "is in no allow rule - to allow it: --allow b.test:")
    assert web.paths == tls.paths == ["/"]


def test_go_never_proxies_loopback(doorward: Any, go: str, web: Any) -> None:
    """P-EV-06: 127.0.0.1 is the sandbox's own, so the host's server is not there, and that is told at once."""
    seen = doorward(*web.reach(), "--", go, f"http://127.0.0.1:{web.port}/")
    assert (seen.status, seen.reasons, web.paths) == (1, [], [])
    seen.says("connect: connection refused")


def test_maven_reads_the_properties(doorward: Any, web: Any, client: Callable[[str], str]) -> None:
    """P-EV-10: Maven goes through the proxy by JAVA_TOOL_OPTIONS alone, so it meets the rule."""
    maven = client("mvn")
    (doorward.workspace / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><parent><groupId>t</groupId><artifactId>none</artifactId>"
        "<version>1</version><relativePath/></parent><artifactId>demo</artifactId><repositories><repository>"
        f"<id>central</id><url>{web.url('b.test')}</url></repository></repositories></project>"
    )
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    user = f"-Duser.home={doorward.user}"
    # Maven ships with a block on plain http; an own empty settings file leaves it aside
    (doorward.workspace / "settings.xml").write_text("<settings/>")
    seen = doorward(
        *web.reach(), "--", maven, "-B", "-q", user, "-gs", "settings.xml", "-s", "settings.xml", "validate"
    )
    assert seen.status == 1
    assert set(seen.reasons) == {"not_allowed"}
    seen.says("[ERROR]", "status: 403 Blocked (not_allowed): b.test:")
    assert "is in no allow rule - to allow it: --allow b.test:" in seen.output

"""Variables by which clients inside find the authorities they are to trust, the inspection's among them.

Each client reads its own; most of those that read none read the system's bundle, which is replaced by a mount.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: OpenSSL (and so Go, Ruby, httpx, uv), requests, curl, Node, git, pip, cargo, Deno, the AWS tools, gRPC, Nix, Perl.
BUNDLE_VARIABLES = (
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT"),
    *("CARGO_HTTP_CAINFO", "DENO_CERT", "AWS_CA_BUNDLE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "NIX_SSL_CERT_FILE"),
    "PERL_LWP_SSL_CA_FILE",
)

#: What would lead past the bundle, or to another one.
WITHDRAWN = ("SSL_CERT_DIR", "NODE_TLS_REJECT_UNAUTHORIZED", "NODE_USE_SYSTEM_CA", "GIT_SSL_CAPATH")

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where distributions keep the bundle (Debian and its like, Fedora, openSUSE, Alpine)."""

_JAVA = (
    ("javax.net.ssl.trustStoreType", "PKCS12"),
    ("javax.net.ssl.trustStorePassword", "changeit"),  # Java's own: there is nothing secret in it (keytool(1))
)


def replaced_bundles(bundle: str) -> tuple[tuple[str, str], ...]:
    """Mounts of our bundle over the system's, as (source, target); links are followed."""
    found = dict.fromkeys(os.path.realpath(path) for path in SYSTEM_BUNDLES if os.path.isfile(path))
    return tuple((bundle, path) for path in found)


JAVA_STORES = ("/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts")
"""Where distributions keep the store of every Java (Debian and its like, Fedora)."""


def replaced_java_stores(store: str, env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Mounts of ours over those that Java reads by itself: the system's, and that of the `java` that is found."""
    from doorward.programs import which  # for few runs only

    homes = [env["JAVA_HOME"]] if env.get("JAVA_HOME") else []
    if (java := which("java", env.get("PATH", ""))) is not None:
        homes.append(os.path.dirname(os.path.dirname(os.path.realpath(java))))
    paths = [os.path.join(home, part, "lib/security/cacerts") for home in homes for part in ("", "jre")]
    found = dict.fromkeys(os.path.realpath(path) for path in (*JAVA_STORES, *paths) if os.path.isfile(path))
    return tuple((store, path) for path in found)


def trusting(variables: Mapping[str, str], bundle: str, java: str) -> dict[str, str]:
    """The variables with those that name the bundle: the system's path where that is replaced, else our own. `java` is
    a trust store, "" for none."""
    path = next((path for path in SYSTEM_BUNDLES if os.path.isfile(path)), bundle)
    found = {name: value for name, value in variables.items() if name not in WITHDRAWN}
    found |= dict.fromkeys(BUNDLE_VARIABLES, path)
    if java:
        found["JAVA_TOOL_OPTIONS"] = f"{found.get('JAVA_TOOL_OPTIONS', '')} {java_words(java)}".strip()
    return found


def java_words(store: str) -> str:
    """What of JAVA_TOOL_OPTIONS names a trust store. Words with blanks are quoted there (java(1))."""
    words = [f"-D{name}={value}" for name, value in (("javax.net.ssl.trustStore", store), *_JAVA)]
    return " ".join(f'"{word}"' if len(word.split()) > 1 else word for word in words)

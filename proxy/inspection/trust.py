"""What clients inside trust: the system's roots with ours behind them, as a bundle and as a Java trust store.

What the worker itself trusts are the system's roots alone.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping

from doorward.proxy.inspection.certificates import Authority, publish

#: Where distributions keep the bundle (Debian, Fedora, openSUSE, Alpine, FreeBSD).
SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
)

JAVA_PASSWORD = "changeit"
"""The password of Java's own trust stores: they hold nothing secret (keytool(1)). A store in the place of the one Java
reads by itself must have none, since it is opened without."""


def system_roots(named: str | None) -> bytes:
    """The roots that are trusted outside: a file that is named, else the system's bundle, else certifi's. Raises
    OSError where there is none."""
    for path in (named,) if named else SYSTEM_BUNDLES:
        try:
            with open(path, "rb") as file:
                found = file.read()
        except OSError:
            if named:
                raise
            continue
        if b"-----BEGIN CERTIFICATE-----" in found:
            return found
    import certifi

    with open(certifi.where(), "rb") as file:
        return file.read()


def certificates_of(bundle: bytes) -> list[bytes]:
    """The PEM blocks of a bundle."""
    return re.findall(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", bundle, re.DOTALL)


def write_trust(folder: str, authority: Authority, roots: bytes) -> Mapping[str, str]:
    """Bring the files in `folder` up to date; their paths as `bundle`, `ca`, `java`. Raises ImportError
    for an old `cryptography`."""
    bundle = roots.rstrip() + b"\n" + authority.pem
    state = hashlib.sha256(bundle).hexdigest()
    paths = {name: os.path.join(folder, file) for name, file in (("bundle", "bundle.pem"), ("ca", "ca.pem"))}
    stamp, java, cacerts = (os.path.join(folder, file) for file in ("state", "trust.p12", "cacerts"))
    try:
        with open(stamp, encoding="ascii") as file:
            known = file.read() == state and all(map(os.path.exists, (*paths.values(), java, cacerts)))
    except OSError:
        known = False
    if not known:
        publish(paths["ca"], authority.pem, 0o644)
        publish(paths["bundle"], bundle, 0o644)
        for path, password in ((java, JAVA_PASSWORD), (cacerts, None)):
            publish(path, _java_store(bundle, password), 0o644)
        publish(stamp, state.encode("ascii"), 0o644)
    return {**paths, "java": java}


def _java_store(bundle: bytes, password: str | None) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    make = getattr(pkcs12, "serialize_java_truststore", None)
    if make is None:
        raise ImportError("its cryptography is older than 45")
    entries = []
    for number, block in enumerate(certificates_of(bundle)):
        try:
            entries.append(pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(block), b"doorward-%d" % number))
        except ValueError:
            continue  # old roots are not all as RFC 5280 wants them
    if password is None:
        encryption = serialization.NoEncryption()
    else:
        encryption = serialization.BestAvailableEncryption(password.encode("ascii"))
    made: bytes = make(entries, encryption)
    return made

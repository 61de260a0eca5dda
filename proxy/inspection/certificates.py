"""The certificates inspected hosts are shown to the sandbox with: one authority a home, an issuer a run, short leaves.

- The authority (`ca.pem`, its key in `private/ca.key`, 0600) is trusted inside sandboxes alone, and signs issuers only.
- A run's issuer lives in the worker's memory. Where the run's rules name what is inspected it is constrained to those
  names (RFC 5280 §4.2.1.10, critical), so that its leaves are worth nothing for others.
- Leaves are valid for a day, for one name each. All keys are on P-256.
"""

from __future__ import annotations

import datetime
import fcntl
import ipaddress
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS = 3650
ISSUER_DAYS = 30  # a library's session may stay open that long
LEAF_HOURS = 24
_RENEW_DAYS = 60
_SKEW = datetime.timedelta(hours=1)  # clocks inside and outside are one, but a snapshot may be resumed
_LONGEST_COMMON_NAME = 64  # RFC 5280, ub-common-name


class Authority:
    """A home's authority: made at first use, renewed before it ends."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self._key = key

    @property
    def pem(self) -> bytes:
        """The certificate."""
        text: bytes = self.certificate.public_bytes(serialization.Encoding.PEM)
        return text

    def issuer(self, names: Sequence[str] | None) -> Issuer:
        """A run's issuer, for these names and all below them; None for any name."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder("doorward run", self.certificate.subject, key.public_key(), days=ISSUER_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_key_usage(signs=True), critical=True)
        builder = builder.add_extension(_key_identifier(self.certificate), critical=False)
        constraints = None if names is None else _constraints(names)
        if constraints is not None:
            builder = builder.add_extension(constraints, critical=True)
        return Issuer(builder.sign(self._key, hashes.SHA256()), key)


class Issuer:
    """Signs the leaves of one run."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self._key = key

    def leaf(self, host: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        """A certificate for a host name or an address, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        common = host if len(host) <= _LONGEST_COMMON_NAME else "doorward"
        builder = _builder(common, self.certificate.subject, key.public_key(), hours=LEAF_HOURS)
        name: x509.GeneralName
        try:
            name = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            name = x509.DNSName(host)
        builder = builder.add_extension(x509.SubjectAlternativeName([name]), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        builder = builder.add_extension(_key_identifier(self.certificate), critical=False)
        return builder.sign(self._key, hashes.SHA256()), key


@contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Nobody else makes anything in `folder` meanwhile: of two authorities clients would trust the later alone. Raises
    OSError."""
    os.makedirs(folder, 0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def authority(folder: str) -> Authority:
    """The authority kept in `folder`, which is private to its owner. Raises OSError."""
    private = os.path.join(folder, "private")
    for path in (folder, private):
        os.makedirs(path, 0o700, exist_ok=True)
    known = _load(folder)
    if known is not None:
        return known
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(f"doorward inspection {os.urandom(4).hex()}", None, key.public_key(), days=AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
    builder = builder.add_extension(_key_usage(signs=True), critical=True)
    made = Authority(builder.sign(key, hashes.SHA256()), key)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # one file for both, so that a key never stands beside another's certificate
    publish(os.path.join(private, "ca.key"), text + made.pem)
    return _load(folder) or made


def _load(folder: str) -> Authority | None:
    try:
        with open(os.path.join(folder, "private", "ca.key"), "rb") as file:
            text = file.read()
        certificate = x509.load_pem_x509_certificate(text)
        key = serialization.load_pem_private_key(text, None)
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        return None
    left = certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    return Authority(certificate, key) if left > datetime.timedelta(days=_RENEW_DAYS) else None


def publish(path: str, data: bytes, mode: int = 0o600) -> None:
    """Write a file in one step. Raises OSError."""
    fresh = f"{path}.{os.getpid()}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(data)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise


def _builder(
    common_name: str,
    issuer: x509.Name | None,
    public_key: ec.EllipticCurvePublicKey,
    *,
    days: int = 0,
    hours: int = 0,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "doorward"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + datetime.timedelta(days=days, hours=hours))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _key_identifier(certificate: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    found = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(found.value)


def _constraints(names: Sequence[str]) -> x509.NameConstraints | None:
    """A name takes in what is below it. Addresses are as their block, which is the address alone."""
    permitted: list[x509.GeneralName] = []
    for name in dict.fromkeys(names):
        try:
            permitted.append(x509.IPAddress(ipaddress.ip_network(name)))
        except ValueError:
            permitted.append(x509.DNSName(name))
    if not permitted:
        return None
    # a kind of name that is not mentioned is not constrained at all, so the other kind is given a block of nothing
    if not any(isinstance(each, x509.IPAddress) for each in permitted):
        return x509.NameConstraints(permitted, [x509.IPAddress(ipaddress.ip_network(each)) for each in _EVERY_ADDRESS])
    return x509.NameConstraints(permitted, None)


_EVERY_ADDRESS = ("0.0.0.0/0", "::/0")

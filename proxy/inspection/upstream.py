"""TLS on both sides of an inspected connection: the server verified as a careful client would, the client shown a leaf.

To the server: TLS 1.2 or later, its chain verified against the system's roots, its name or address against the
certificate's alternative names alone (RFC 9525), no partial wildcards. There is no way to switch this off.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from OpenSSL import SSL, crypto

from doorward.proxy.inspection.certificates import ISSUER_DAYS, LEAF_HOURS, Issuer
from doorward.proxy.inspection.trust import certificates_of

_FLAGS = SSL._lib.X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | getattr(SSL._lib, "X509_CHECK_FLAG_NEVER_CHECK_SUBJECT", 0)
_KEPT = 256  # leaves, each with its context
_RENEW = LEAF_HOURS * 3600 / 2
_RENEW_ISSUER = ISSUER_DAYS * 86400 / 2
_HTTP2, _HTTP1 = b"h2", b"http/1.1"


class ServerSide:
    """Contexts for connections to servers; one for all."""

    def __init__(self, roots: bytes) -> None:
        """`roots` is PEM."""
        context = _context(SSL.TLS_CLIENT_METHOD)
        store = context.get_cert_store()
        assert store is not None
        for block in certificates_of(roots):
            try:
                store.add_cert(crypto.load_certificate(crypto.FILETYPE_PEM, block))
            except crypto.Error:
                continue  # what OpenSSL cannot read vouches for nobody
        context.set_verify(SSL.VERIFY_PEER, None)
        self._context = context

    def connect(self, host: str, alpn: Sequence[bytes]) -> Any:
        """A connection object for a server of this name or address."""
        connection = SSL.Connection(self._context)
        parameters = SSL._lib.SSL_get0_param(connection._ssl)
        SSL._lib.X509_VERIFY_PARAM_set_hostflags(parameters, _FLAGS)
        try:
            packed = ipaddress.ip_address(host).packed
        except ValueError:
            name = host.encode("ascii")
            connection.set_tlsext_host_name(name)
            done = SSL._lib.X509_VERIFY_PARAM_set1_host(parameters, name, len(name))
        else:  # an address is no server name (RFC 6066 §3)
            done = SSL._lib.X509_VERIFY_PARAM_set1_ip(parameters, packed, len(packed))
        if done != 1:
            raise RuntimeError("OpenSSL does not take the name to verify")
        if alpn:
            connection.set_alpn_protos(list(alpn))
        connection.set_connect_state()
        return connection


class ClientSide:
    """Contexts for connections from clients; one a host, so that sessions can be resumed."""

    def __init__(self, make_issuer: Callable[[], Issuer], clock: Callable[[], float] = time.monotonic) -> None:
        """`make_issuer` is called now, and again when its certificate gets old: a door alone may run for months."""
        self._make_issuer = make_issuer
        self._clock = clock
        self._issuer = make_issuer()
        self._issued = clock()
        self._contexts: OrderedDict[str, tuple[float, Any]] = OrderedDict()

    def accept(self, host: str, alpn: bytes | None) -> Any:
        """A connection object; `alpn` is what the server chose, b"" for nothing, None if it is not known."""
        connection = SSL.Connection(self._for(host))
        connection.set_app_data(alpn)
        connection.set_accept_state()
        return connection

    def _for(self, host: str) -> Any:
        now = self._clock()
        if now - self._issued > _RENEW_ISSUER:
            self._issuer, self._issued = self._make_issuer(), now
        known = self._contexts.get(host)
        if known is not None and now - known[0] < _RENEW:
            self._contexts.move_to_end(host)
            return known[1]
        certificate, key = self._issuer.leaf(host)
        context = _context(SSL.TLS_SERVER_METHOD)
        context.use_certificate(certificate)
        context.use_privatekey(key)
        context.add_extra_chain_cert(self._issuer.certificate)
        context.set_alpn_select_callback(_select)
        context.set_session_id(b"doorward")
        self._contexts[host] = now, context
        while len(self._contexts) > _KEPT:
            self._contexts.popitem(last=False)
        return context


def _context(method: int) -> Any:
    context = SSL.Context(method)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(SSL.OP_NO_COMPRESSION | getattr(SSL, "OP_NO_RENEGOTIATION", 0))
    return context


def _select(connection: Any, offered: list[bytes]) -> Any:
    """The server's protocol if the client offers it: both sides then speak the same (RFC 7301 §3.2)."""
    chosen = connection.get_app_data()
    if chosen and chosen in offered:
        return chosen
    if not chosen and _HTTP1 in offered:
        return _HTTP1
    return SSL.NO_OVERLAPPING_PROTOCOLS

"""Judges what a tunnel's client sends first: bytes in, one finding out, no I/O.

The name a tunnel was asked for, the server name of a TLS ClientHello and the Host of a cleartext HTTP head must agree.

- A ClientHello without a server name is fine where an address was asked for, refused where a name was. The server name
  must be the asked name; where an address was asked for, a name the rules allow in its own right.
- A cleartext HTTP/1 head is told by its whole first line, whatever the method; before the line is whole by one of the
  known methods. Its Host must be what was asked for; a head that only a lenient server would understand is refused,
  since that server might find another Host in it.
- Other bytes pass raw on a port that the rule names; there the server may speak first, and the client may stay silent
  as long as it likes. On 80 and 443 opened by a rule without a port they do not pass; on 443 nothing but TLS does.
- `tls = "any"` lets a ClientHello without a name, and anything but TLS on 443, pass. Names that disagree never pass.
- What has begun like TLS or HTTP and is not whole in time is refused: else a pause would be a way round.
"""

from __future__ import annotations

from doorward.allowlists.host import Host, MalformedHost, Name, authority_text, parse_host
from doorward.named_tuple import NamedTuple
from doorward.proxy.client_hello import BadHello, ClientHello, HelloReader, NotTls
from doorward.proxy.http1 import BadMessage, RequestHead, RequestReader
from doorward.proxy.limits import Limits
from doorward.proxy.target import host_header, names_agree, parse_authority

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # RFC 9113 §3.4: not a head of HTTP/1
_BLANKS = b" \t\v\f\r"  # what a lenient server takes for the blank of a first line
_METHODS = frozenset(
    b"ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY "
    b"OPTIONS PATCH POST PRI PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND "
    b"UNLINK UNLOCK UNSUBSCRIBE".split()
)
_BEGINNINGS = frozenset(method[:size] for method in _METHODS for size in range(len(method) + 1))
_METHOD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-"


class Agreed(NamedTuple):
    """The bytes may go on."""


_AGREED = Agreed()


class Disagreement(NamedTuple):
    """The bytes must not go on. `said` is the name they gave, "" where they gave none."""

    sentence: str
    said: str


class FirstBytes:
    """Judges one tunnel. Feed it until `finding` is set; `data` then is all it was fed."""

    __slots__ = ("_allows", "_hello", "_limits", "_not_tls", "_raw_passes", "_reader", "_tls_any", "_tls_only",
    "content", "ended", "finding", "host", "port", "server_may_speak", "time_limit")  # fmt: skip

    def __init__(
        self,
        host: Host,
        port: int,
        limits: Limits,
        *,
        port_named: bool,
        tls_any: bool,
        allows: Callable[[Name], bool],
    ) -> None:
        self.host = host
        self.port = port
        self.time_limit = limits.first_bytes_time
        self.server_may_speak = server_may_speak(port, port_named=port_named, tls_any=tls_any)
        self.finding: Agreed | Disagreement | None = None
        self.ended = False
        self.content: str | None = None  # what it turned out to be: tls, http, or uninspected, which passed unread
        self._raw_passes = self.server_may_speak or (tls_any and port == 443)
        self._tls_only = port == 443 and not tls_any
        self._tls_any = tls_any
        self._allows = allows
        self._hello: HelloReader | None = None  # before the first byte
        self._not_tls = False
        self._reader: RequestReader | None = None
        self._limits = limits

    @property
    def is_tls(self) -> bool:
        """Whether what was fed is TLS, once `finding` is set."""
        return not self._not_tls

    @property
    def data(self) -> bytes:
        """Everything that was fed."""
        return b"" if self._hello is None else bytes(self._hello.data)

    def feed(self, data: bytes) -> None:
        """More bytes from the client."""
        hello = self._hello
        if hello is None:
            hello = self._hello = HelloReader(self._limits.hello)
        if self._not_tls:
            hello.data += data
            self._judge_text(data)
            return
        found = hello.feed(data)
        if isinstance(found, ClientHello):
            self._judge_hello(found)
        elif isinstance(found, BadHello):
            self._refuse(f"its ClientHello is not to be trusted: {found.sentence}")
        elif isinstance(found, NotTls):
            self._not_tls = True
            if self._tls_only:
                self._refuse("on port 443 it must begin with a TLS ClientHello, and it does not")
            else:
                self._judge_text(self.data)

    def eof(self) -> None:
        """The client sends no more."""
        self.ended = True
        if self._hello is None:
            self.finding = _AGREED  # nothing was said, nothing can disagree
        elif self.finding is None:
            self._unfinished("ended half way")

    def timed_out(self) -> None:
        """The first bytes did not come, or did not become whole, in time."""
        if self.finding is not None:
            return
        if self._hello is not None:
            self._unfinished(f"was not whole after {self.time_limit:g} s")
        else:
            self._refuse(f"its first bytes did not come within {self.time_limit:g} s")

    def _judge_hello(self, hello: ClientHello) -> None:
        self.content = "tls"
        problem = names_disagree(hello, self.host, tls_any=self._tls_any, allows=self._allows)
        if problem is None:
            self.finding = _AGREED
        else:
            self._refuse(*problem)

    def _judge_text(self, data: bytes) -> None:
        """Not TLS: a cleartext HTTP head, or anything else."""
        if self._reader is not None:
            self._judge_head(data)
            return
        whole = self.data
        line, whole_line, _ = whole.lstrip(b"\r\n").partition(b"\n")
        if whole_line and _names_a_version(line):
            if _H2_PREFACE.startswith(whole[: len(_H2_PREFACE)]):
                if len(whole) >= len(_H2_PREFACE):
                    self._judge_raw()
                return
            self._reader = RequestReader(self._limits)
            self._judge_head(whole)
        elif whole_line or not _begins_like_a_head(line):
            self._judge_raw()
        elif len(whole) > self._limits.request_line:
            self._refuse("it begins like an HTTP head with an overlong first line")

    def _judge_raw(self) -> None:
        if self._raw_passes:
            self.content = "uninspected"
            self.finding = _AGREED
        else:
            self._refuse("it begins with neither TLS nor an HTTP head, and no rule names the port")

    def _judge_head(self, data: bytes) -> None:
        assert self._reader is not None
        self.content = "http"
        try:
            events = self._reader.feed(data)
            if not events:
                return
            head = events[0]
            assert isinstance(head, RequestHead)
            header = host_header(head)
            if head.method == "CONNECT" or not head.target.startswith((b"/", b"*")):
                self._refuse(f"its HTTP head has the target {head.target[:100]!r}, which may name another host")
            elif header is None and isinstance(self.host, Name) and not self._tls_any:
                self._refuse("its HTTP head has no Host")
            elif header is None or self._host_agrees(header):
                self.finding = _AGREED
            else:
                said = header.decode("latin-1")
                self._refuse(f"its Host header names {said}", said)
        except BadMessage as error:
            self._refuse(f"its HTTP head is not to be trusted: {error.sentence}")

    def _host_agrees(self, header: bytes) -> bool:
        if names_agree(header, self.host, self.port, default_port=None):
            return True
        if isinstance(self.host, Name):
            return False
        said, port = parse_authority(header, self.port)
        return port == self.port and isinstance(said, Name) and self._allows(said)

    def _unfinished(self, how: str) -> None:
        if self.ended and self._not_tls and self._reader is None:
            self._judge_raw()  # what began like a head will never become one
        else:
            what = "HTTP head" if self._not_tls else "ClientHello"
            self._refuse(f"its {what} {how}")

    def _refuse(self, why: str, said: str = "") -> None:
        if self.finding is None:
            asked = authority_text(self.host, self.port)
            self.finding = Disagreement(f"the tunnel was opened to {asked}, but {why}", said)


def server_may_speak(port: int, *, port_named: bool, tls_any: bool) -> bool:
    """Whether the server may speak first, and the client stay silent as long as it likes."""
    return port_named and (port != 443 or tls_any)


def names_disagree(
    hello: ClientHello, host: Host, *, tls_any: bool, allows: Callable[[Name], bool]
) -> tuple[str, str] | None:
    """Why the server name of a hello does not agree with what was asked for, and that name; None where it does."""
    asked_name = isinstance(host, Name)
    if hello.server_name is None:
        return ("its ClientHello names no server", "") if asked_name and not tls_any else None
    try:
        said = parse_host(hello.server_name)
    except MalformedHost as error:
        return f"the server name of its ClientHello is malformed: {error}", hello.server_name
    if said == host or (not asked_name and isinstance(said, Name) and allows(said)):
        return None
    return f"its ClientHello names {hello.server_name}", hello.server_name


def _names_a_version(line: bytes) -> bool:
    """Whether `HTTP/`, in whatever case, stands behind a blank."""
    *before, _ = line.upper().split(b"HTTP/")
    return any(part[-1:] and part[-1] in _BLANKS for part in before)


def _begins_like_a_head(line: bytes) -> bool:
    """Whether more bytes may turn this into a first line with a known method."""
    word = line[: len(line) - len(line.lstrip(_METHOD))]
    if len(word) == len(line):
        return word in _BEGINNINGS
    return word in _METHODS and line[len(word)] in _BLANKS

"""Plain requests, which the door reads itself, carry no credential and nothing that stands for one."""

from __future__ import annotations

import binascii

from doorward.allowlists.decision import Decision, Reason, Source
from doorward.allowlists.host import authority_text
from doorward.proxy.admission import NotAdmitted
from doorward.proxy.http1_message import RequestHead


def leak_in_plain(secrets: tuple[tuple[str, str], ...], decision: Decision, head: RequestHead, target: bytes) -> None:
    """Raises NotAdmitted where one of the texts stands in the head, also inside Basic authentication."""
    texts = [target, *(value for _, value in head.headers)]
    for _, value in head.headers:
        scheme, _, rest = value.partition(b" ")
        if scheme.lower() == b"basic":
            try:
                texts.append(binascii.a2b_base64(rest))
            except binascii.Error:
                continue
    for name, secret in secrets:
        mark = secret.encode("ascii")
        if any(mark in text for text in texts):
            place = authority_text(decision.host, decision.port)
            message = f"the credential {name} was about to be sent to {place} without TLS"
            raise NotAdmitted(decision.refused(Reason.CREDENTIAL_LEAK, Source.MODE_GUARD, message))

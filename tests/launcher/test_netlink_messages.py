"""The messages of launcher/netlink_messages.py are those pyroute2 encodes: this is where they come from."""

import ipaddress
import re
import struct
import sys
import textwrap
from pathlib import Path

import pytest

from doorward.launcher import netlink_messages
from doorward.launcher.interface import TRANSPARENT_PORT

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or sys.byteorder != "little", reason="netlink is Linux's, and the messages little-endian"
)

# <linux/netlink.h>, <linux/netfilter/nf_tables.h>, <linux/netfilter.h>, <linux/rtnetlink.h>
REQUEST, ACK, CREATE, APPEND = 0x1, 0x4, 0x400, 0x800
NEWTABLE, NEWCHAIN, NEWRULE = 0, 3, 6
BATCH_BEGIN, BATCH_END = 0x10, 0x11
INET, OUTPUT, DSTNAT, ACCEPT = 1, 3, -100, 1
META_NFPROTO, META_L4PROTO = 15, 16
NETWORK, TRANSPORT = 1, 2
IPV4, IPV6, TCP = b"\x02", b"\x0a", b"\x06"
NEWADDR = 20
NEWROUTE, LOCAL_TABLE, LOCAL_TYPE, HOST_SCOPE, STATIC = 24, 255, 2, 254, 4


def encoded(message, kind, flags):
    message["header"].update({"type": kind, "flags": flags, "sequence_number": 0, "pid": 0})
    message.encode()
    return bytes(message.data)


OWN = ipaddress.ip_address("198.19.255.254"), ipaddress.ip_address("fd64:6f6f:7277::1")


def address(own):
    """`ip address add OWN dev lo` without a search for duplicates (IFA_F_NODAD)."""
    from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg

    message = ifaddrmsg()
    message.update(
        {"family": 2 if own.version == 4 else 10, "prefixlen": own.max_prefixlen, "flags": 0x02, "scope": 0, "index": 1}
    )
    message["attrs"] = [("IFA_LOCAL", str(own)), ("IFA_ADDRESS", str(own))]
    return encoded(message, NEWADDR, REQUEST | ACK | CREATE)


def route(family):
    """`ip route add local default dev lo`; `lo` is the first device of every namespace."""
    from pyroute2.netlink.rtnl.rtmsg import rtmsg

    message = rtmsg()
    message.update(
        {"family": family, "dst_len": 0, "table": LOCAL_TABLE, "type": LOCAL_TYPE, "scope": HOST_SCOPE, "proto": STATIC}
    )
    message["attrs"] = [("RTA_OIF", 1)]
    return encoded(message, NEWROUTE, REQUEST | ACK | CREATE)


def redirect():
    """One table, one chain, six rules."""
    from pyroute2.netlink.nfnetlink import nfgen_msg, nftsocket
    from pyroute2.nftables.expressions import genex, verdict

    def edge(kind):
        message = nfgen_msg()
        message.update({"nfgen_family": 0, "version": 0, "res_id": 10})
        return encoded(message, kind, REQUEST)

    def entry(make, kind, flags, attributes):
        message = make()
        message.update({"nfgen_family": INET, "version": 0, "res_id": 0})
        message["attrs"] = attributes
        return encoded(message, 10 << 8 | kind, REQUEST | CREATE | flags)

    def data(value):
        return {"attrs": [("NFTA_DATA_VALUE", value)]}

    def equal(value):
        return genex("cmp", {"sreg": 1, "op": 0, "data": data(value)})

    def meta(key, value):
        return [genex("meta", {"key": key, "dreg": 1}), equal(value)]

    def payload(base, offset, length):
        return genex("payload", {"dreg": 1, "base": base, "offset": offset, "len": length})

    mask = genex("bitwise", {"sreg": 1, "dreg": 1, "len": 4, "mask": data(b"\xff\0\0\0"), "xor": data(bytes(4))})
    port = genex("immediate", {"dreg": 1, "data": data(struct.pack(">H", TRANSPARENT_PORT))})
    rules = [
        # ip daddr 127.0.0.0/8 accept
        [*meta(META_NFPROTO, IPV4), payload(NETWORK, 16, 4), mask, equal(b"\x7f\0\0\0"), *verdict(ACCEPT)],
        # ip6 daddr ::1 accept
        [*meta(META_NFPROTO, IPV6), payload(NETWORK, 24, 16), equal(bytes(15) + b"\1"), *verdict(ACCEPT)],
        # ip daddr OWN accept; ip6 daddr OWN accept
        [*meta(META_NFPROTO, IPV4), payload(NETWORK, 16, 4), equal(OWN[0].packed), *verdict(ACCEPT)],
        [*meta(META_NFPROTO, IPV6), payload(NETWORK, 24, 16), equal(OWN[1].packed), *verdict(ACCEPT)],
        # tcp dport 53 accept
        [*meta(META_L4PROTO, TCP), payload(TRANSPORT, 2, 2), equal(struct.pack(">H", 53)), *verdict(ACCEPT)],
        # meta l4proto tcp redirect to :PORT
        [*meta(META_L4PROTO, TCP), port, genex("redir", {"reg_proto_min": 1})],
    ]
    table, chain = ("NFTA_RULE_TABLE", "doorward"), ("NFTA_RULE_CHAIN", "output")
    hook = {"attrs": [("NFTA_HOOK_HOOKNUM", OUTPUT), ("NFTA_HOOK_PRIORITY", DSTNAT)]}
    named = [("NFTA_CHAIN_TABLE", "doorward"), ("NFTA_CHAIN_NAME", "output"), ("NFTA_CHAIN_HOOK", hook)]
    chained = [*named, ("NFTA_CHAIN_POLICY", ACCEPT), ("NFTA_CHAIN_TYPE", "nat")]
    out = edge(BATCH_BEGIN)
    out += entry(nftsocket.nft_table_msg, NEWTABLE, 0, [("NFTA_TABLE_NAME", "doorward")])
    out += entry(nftsocket.nft_chain_msg, NEWCHAIN, 0, chained)
    for place, rule in enumerate(rules, 1):
        last = ACK if place == len(rules) else 0
        out += entry(
            nftsocket.nft_rule_msg, NEWRULE, APPEND | last, [table, chain, ("NFTA_RULE_EXPRESSIONS", rule)]
        )
    return out + edge(BATCH_END)


def source(name, value):
    """The lines that define a message, to be put into the file when the test fails."""
    lines = "\n".join(f'    "{line}"' for line in textwrap.wrap(value.hex(), 104))
    return f"{name} = bytes.fromhex(\n{lines}\n)\n"


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("ADDRESS_IPV4", lambda: address(OWN[0])), ("ADDRESS_IPV6", lambda: address(OWN[1])),
        ("ROUTE_IPV4", lambda: route(2)), ("ROUTE_IPV6", lambda: route(10)), ("REDIRECT", redirect),
    ],
)  # fmt: skip
def test_they_are_what_pyroute2_encodes(name, make):
    made = make()
    assert getattr(netlink_messages, name) == made, source(name, made)


def test_the_version_that_encoded_them_is_named():
    text = Path(netlink_messages.__file__).read_text()
    assert re.search(r"pyroute2 \d+\.\d+", text)

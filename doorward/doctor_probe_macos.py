"""What `doorward doctor` has a sandbox tell of itself on macOS, in a shell inside; see `doctor_checks`."""

from __future__ import annotations

from collections.abc import Mapping

# Inside: a write beside the workspace, a connection to a port of localhost where nobody listens ("refused" comes from
# the network, "not permitted" from the sandbox), a signal that does nothing to the process outside that waits.
PROBE = """
( : > "$1" ) 2>/dev/null && echo wrote-outside
( : < /dev/tcp/127.0.0.1/9 ) 2>&1 | grep -q refused && echo host-network
kill -0 "$PPID" 2>/dev/null && echo host-processes
echo probed
"""

LAYERS: Mapping[str, tuple[frozenset[str], str]] = {
    "filesystem": (frozenset({"wrote-outside"}), "writes outside the workspace are refused"),
    "network": (frozenset({"host-network"}), "no port can be dialled but the proxy's"),
    "process": (frozenset({"host-processes"}), "no signal reaches a process outside"),
    "syscalls": (frozenset(), "filtered"),
}

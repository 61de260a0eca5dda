"""Inspection as a run has it: the worker, what the command is told of it, what a person should hear afterwards."""

from __future__ import annotations

import os

from doorward.brokering import Brokering
from doorward.inspection_process import InspectionProcess
from doorward.trust_environment import trusting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from doorward.hint import Hint
    from doorward.inner_environment import InnerEnvironment
    from doorward.inspection_settings import Inspection
    from doorward.proxy_process import ProxyProcess


class RunInspection:
    """Made before the sandbox is; the worker comes up meanwhile."""

    def __init__(self, inspection: Inspection, proxy: ProxyProcess, *, other_user: bool = False) -> None:
        """`other_user`: the command's cannot look into this home. Raises UsageError for a credential that cannot be
        had, EngineError where the worker cannot be started."""
        self._inspection = inspection
        self._other_user = other_user
        self._brokered = Brokering().of(inspection.credentials, os.environ)
        work = {**inspection.work, "credentials": self._brokered.told}
        self._process = InspectionProcess(inspection.python, work, proxy.inspection)
        self._ready = False
        self._untrusted: dict[tuple[str, int], None] = {}

    def settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What the door is told, with what must pass in no plain request."""
        return {**settings, "inspection": {**self._inspection.settings, "secrets": self._brokered.secrets}}

    def await_files(self) -> None:
        """Wait for what clients inside are to trust, at a home's first inspected run; at later ones the command starts
        while the worker comes up, and its tunnels wait. Raises EngineError."""
        if not self._ready and not self._inspection.trusted():
            self._process.await_ready()
            self._ready = True

    def inside(self, inner: InnerEnvironment) -> InnerEnvironment:
        """The command's environment, with where to find whom to trust, and with placeholders."""
        java = "" if self._other_user or not os.path.exists(self._inspection.java) else self._inspection.java
        placeholders = self._brokered.placeholders
        variables = {**trusting(inner.variables, self._inspection.bundle, java), **placeholders}
        return inner._replace(
            variables=variables, withheld=tuple(name for name in inner.withheld if name not in placeholders)
        )

    def heard(self, event: Mapping[str, Any]) -> None:
        """Something the door told."""
        if event.get("type") == "inspection_not_trusted":
            self._untrusted[str(event["host"]), int(event["port"])] = None

    def hints(self) -> list[Hint]:
        """Where a client did not take our certificate since the last time, and the rule under which it need not."""
        untrusted, self._untrusted = self._untrusted, {}
        return [self._pinned(host, port) for host, port in untrusted]

    def _pinned(self, host: str, port: int) -> Hint:
        from doorward.hint import Hint  # for few runs only
        from doorward.summary import place_text

        place = place_text(host, None if port == 443 else port)
        why = (
            f"the client does not take the inspection's certificate for {host}: it brings its own list of authorities, "
            "or pins the server's key."
        )
        trust = "have it trust the file that SSL_CERT_FILE names"
        if self._inspection.has_credential_for(host, port):
            return Hint("pinned_certificate", f"{why} A credential's host is always inspected: {trust}")
        unread = f"--allow {place} lets its tunnel pass unread; or {trust}"
        if self._inspection.every:
            return Hint("pinned_certificate", f"{why} Without --inspect, {unread}", f"--allow {place}")
        if self._inspection.limited:
            remedy = f"--network proxied --allow {place}"
            return Hint("pinned_certificate", f"{why} {remedy} lets its tunnel pass unread; or {trust}", remedy)
        return Hint("pinned_certificate", f"{why} {unread[0].upper()}{unread[1:]}", f"--allow {place}")

    def notes(self) -> list[str]:
        """What came up since the last time, one sentence each."""
        found: list[str] = []
        if self._process.ended():
            why = f" ({failure})" if (failure := self._process.failure()) else ""
            found.append(f"the inspection worker died{why}; nothing that it must look into was let through then")
        return found

    def close(self) -> None:
        """End the worker."""
        self._process.close()

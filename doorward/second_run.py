"""`on-failure`: what a command was refused, as the options that would grant exactly that, and the plan with them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from doorward.named_tuple import NamedTuple
from doorward.plan import Plan
from doorward.summary import summarize

_MOST = 20
"""More grants than this are no answer to a question."""


class Grants(NamedTuple):
    """What one question offers."""

    hosts: tuple[str, ...]
    """Network rules."""
    paths: tuple[str, ...]
    """What may be written besides."""
    why: tuple[str, ...]
    """What was refused, for a person."""

    @property
    def options(self) -> tuple[str, ...]:
        """As they would be written on a command line."""
        hosts = [f"--allow {shlex.quote(host)}" for host in self.hosts]
        return (*hosts, *(f"--add-dir {shlex.quote(path)}" for path in self.paths))


def grants_for(refusals: Iterable[Mapping[str, Any]]) -> Grants | None:
    """The grants that the hints of these refusals name, or None: nothing was refused that an option would open, or too
    much of it."""
    refusals = list(refusals)
    found: dict[str, dict[str, None]] = {"--allow": {}, "--add-dir": {}}
    for refusal in refusals:
        try:
            words = shlex.split(str(refusal.get("hint") or ""))
        except ValueError:
            continue
        if len(words) == 2 and words[0] in found:
            found[words[0]][words[1]] = None
    count = sum(map(len, found.values()))
    if not 0 < count <= _MOST:
        return None
    why = tuple(line.strip() for line in summarize(refusals))
    return Grants(tuple(found["--allow"]), tuple(found["--add-dir"]), why)


def with_grants(plan: Plan, grants: Grants) -> Plan:
    """`plan` for one more run of the same command."""
    settings = dict(plan.proxy_settings)
    if plan.proxied:
        known = settings["allow"]
        assert isinstance(known, list)
        rows = [{"rule": host, "source": "flag", "where": "approved after a refusal"} for host in grants.hosts]
        settings["allow"] = [*known, *rows]
    write = (*plan.sandbox.write, *(os.path.realpath(path) for path in grants.paths))
    return plan._replace(proxy_settings=settings, sandbox=plan.sandbox._replace(write=write))

"""What the later gates weigh, worked out once: the writes and hosts of an action, its risks, earlier approvals."""

from __future__ import annotations

from os.path import join, normpath

from doorward.gates.action import Action
from doorward.gates.command_knowledge import Knowledge
from doorward.gates.dial import Dial
from doorward.gates.known_commands import HARMLESS_FOLDERS, HARMLESS_TARGETS
from doorward.gates.places import Ground, Place, inside, place_of
from doorward.gates.wording import plain
from doorward.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Write(NamedTuple):
    """One write that counts: as it was named, the canonical path, and where that lies."""

    named: str
    path: str
    place: Place


class Endpoint(NamedTuple):
    """One declared connection and what the allowlist says of it by name: allow, ask or deny."""

    host: str
    port: int
    answer: str

    @property
    def text(self) -> str:
        """As a rule would name it."""
        return f"[{plain(self.host)}]:{self.port}" if ":" in self.host else f"{plain(self.host)}:{self.port}"


class Findings(NamedTuple):
    """`changes` is False only for what is known to read only. `approved`: this very action was approved before."""

    knowledge: Knowledge
    writes: tuple[Write, ...]
    endpoints: tuple[Endpoint, ...]
    risks: tuple[str, ...]
    changes: bool
    approved: bool

    def without(self, covered: frozenset[int]) -> Findings:
        """What is left to weigh where rules speak for the parts that `covered` numbers (P-AP-10)."""
        rest = [known for number, known in enumerate(self.knowledge.parts) if number not in covered]
        spoken = {
            risk for number, known in enumerate(self.knowledge.parts) if number in covered for risk in known.risks
        }
        left = {risk for known in rest for risk in known.risks}
        return self._replace(
            knowledge=self.knowledge._replace(
                because=next((known.because for known in rest if not known.read_only and known.because), "")
            ),
            risks=tuple(risk for risk in self.risks if risk not in spoken or risk in left),
            changes=bool(self.writes) or bool(self.endpoints) or not all(known.read_only for known in rest),
        )


def findings_of(dial: Dial, action: Action) -> Findings:
    """Weigh `action`."""
    canonical = dial.canonical
    planted = tuple(canonical(folder) for folder in (dial.workspace, *dial.writable_roots, *dial.private_temp))
    knowledge = dial.knowledge(action, planted, dial.locate)
    grounds = (
        (Ground.PRIVATE_TEMP, dial.private_temp),
        (Ground.WORKSPACE, (dial.workspace,)),
        (Ground.ADDED, dial.writable_roots),
        (Ground.LISTED_READ_ONLY, dial.read_only),
        (Ground.HIDDEN, dial.hidden),
    )
    writes: list[Write] = []
    for named in dict.fromkeys((*action.writes, *knowledge.writes)):
        spelled = normpath(join(action.cwd, named))
        if spelled in HARMLESS_TARGETS or spelled.startswith(HARMLESS_FOLDERS):
            continue
        path = canonical(join(action.cwd, named))
        writes.append(Write(named, path, place_of(path, grounds, dial.home)))
    endpoints = tuple(Endpoint(host, port, dial.decide_host(host, port)) for host, port in action.network_to)
    return Findings(
        knowledge,
        tuple(writes),
        endpoints,
        _risks(dial.workspace, knowledge, writes, endpoints),
        changes=not knowledge.read_only or bool(writes) or bool(endpoints),
        approved=bool(dial.approvals) and _is_approved(dial, action),
    )


def _is_approved(dial: Dial, action: Action) -> bool:
    from doorward.gates.approval_key import approval_key  # only a session in which somebody approved something

    return approval_key(dial, action) in dial.approvals


def _risks(
    workspace: str, knowledge: Knowledge, writes: Sequence[Write], endpoints: Sequence[Endpoint]
) -> tuple[str, ...]:
    """What the sandbox and the proxy do not make harmless (DESIGN.md §4). What lands in the private temp is gone with
    the run; every other write outside the workspace is risky, also where `--add-dir` made it possible."""
    outside = [
        write for write in writes if write.place.ground is not Ground.PRIVATE_TEMP and not inside(write.path, workspace)
    ]
    beyond = [endpoint for endpoint in endpoints if endpoint.answer != "allow"]
    return (
        *knowledge.risks,
        *(f"it writes to {plain(write.named)}, outside the workspace" for write in outside),
        *(f"it connects to {endpoint.text}, which is not in the allowlist" for endpoint in beyond),
    )

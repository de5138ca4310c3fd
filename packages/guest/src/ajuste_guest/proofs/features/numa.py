"""Memory nodes: the guest has two, and allocates memory on the far one."""

from __future__ import annotations

from typing import Final

from ajuste.model.kernel import Sight
from ajuste.model.plan import MemoryNode
from ajuste_guest.proofs.feature import KernelFacts, KernelFeature, ProofFinding

NODES: Final = (MemoryNode(cpus=1, memory_mib=256, distances=(10, 31)), MemoryNode(memory_mib=128, distances=(31, 10)))
"""The memory nodes of the guest that makes all proofs."""

_DIRECTORY: Final = "/sys/devices/system/node"
_ONLINE: Final = f"{_DIRECTORY}/online"
_DISTANCES: Final = tuple(f"{_DIRECTORY}/node{number}/distance" for number in range(len(NODES)))
_FAR: Final = ("pages", "--policy", "remote", "--mib", "4", "--rounds", "0")


def _judge(facts: KernelFacts) -> ProofFinding:
    sights = [Sight(what=_ONLINE, found=facts.sight(_ONLINE))]
    if _ONLINE not in facts.reads:
        return ProofFinding(present=False, evidence=tuple(sights))
    sights += [Sight(what=path, found=facts.sight(path)) for path in _DISTANCES]
    placed = facts.figures(_FAR)
    words = (
        f"{placed.get('remote')} of {placed.get('pages')} pages are on the far node"
        if placed
        else facts.failed.get(_FAR, "")
    )
    sights.append(Sight(what="4 MiB asked for on the far node", found=words))
    distances = [facts.reads.get(path, "").split() for path in _DISTANCES]
    wanted = [[str(distance) for distance in node.distances] for node in NODES]
    works = bool(placed) and placed.get("remote") == placed.get("pages") and distances == wanted
    return ProofFinding(present=works, evidence=tuple(sights))


FEATURE: Final = KernelFeature(
    name="numa",
    title="NUMA: nodes of memory",
    judge=_judge,
    decided_by="NUMA",
    options=("NUMA", "ACPI_NUMA", "NUMA_BALANCING"),
    reads=(_ONLINE, *_DISTANCES),
    runs=(_FAR,),
)

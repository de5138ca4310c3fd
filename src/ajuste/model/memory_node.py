"""The nodes of a machine whose memory is not all equally near (NUMA)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, Strict

NEAREST: Final = 10
"""The distance of a node from itself (ACPI 6.5, section 5.2.17, System Locality Information Table)."""
FARTHEST: Final = 254
"""255 stands for a node that cannot be reached."""

_Whole = Annotated[int, Strict()]


class MemoryNode(BaseModel):
    """One node: CPUs, which are numbered from node to node, memory, and how far each node is from here."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    cpus: _Whole = Field(default=0, ge=0, le=64, description="CPUs of the node; one node at least has some.")
    memory_mib: _Whole = Field(ge=16, le=1048576, description="Memory of the node, in MiB.")
    distances: tuple[_Whole, ...] = Field(
        default=(),
        description="From this node to each, itself included: 10 to itself, more (up to 254) to others; "
        "20 if not given.",
    )


def nodes_in_words(nodes: Sequence[MemoryNode]) -> str:
    """For people."""
    return "; ".join(
        f"node {number}: {node.cpus} CPUs, {node.memory_mib} MiB"
        + (f", distances {' '.join(map(str, node.distances))}" if node.distances else "")
        for number, node in enumerate(nodes)
    )


def problem_of(nodes: Sequence[MemoryNode]) -> str:
    """What is wrong with a machine of these nodes, or nothing."""
    if len(nodes) == 1:
        return "a machine with nodes has two at least"
    if nodes and not any(node.cpus for node in nodes):
        return "one node at least must have CPUs"
    for number, node in enumerate(nodes):
        if node.distances and (problem := _problem_of_distances(node.distances, number, len(nodes))):
            return problem
    return ""


def _problem_of_distances(distances: tuple[int, ...], number: int, count: int) -> str:
    if len(distances) != count:
        return f"node {number} has {len(distances)} distances; there are {count} nodes"
    if distances[number] != NEAREST:
        return f"the distance of node {number} to itself is {NEAREST}, not {distances[number]}"
    far = [distance for other, distance in enumerate(distances) if other != number]
    if not all(NEAREST < distance <= FARTHEST for distance in far):
        return f"distances of node {number} to others are {NEAREST + 1} to {FARTHEST}"
    return ""

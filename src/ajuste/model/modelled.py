"""A modelled machine: caches, translations and a branch predictor by their sizes, and what each miss costs.

``native/lens`` looks up every access in them; time is computed here, by one formula, from what it counted.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, model_validator

from ajuste.model.base import BaseModel, ClosedModel
from ajuste.model.plan import NEAREST, MemoryNode
from ajuste.model.topology import Topology

_KIB: Final = 1024
_LEVELS_OF_WALK: Final = 4
_Few = Annotated[int, Field(ge=1, le=1_000)]
_Cycles = Annotated[int, Field(ge=0, le=100_000)]
_Count = Annotated[int, Field(ge=0, lt=2**64)]
Contents = Literal["inclusive", "non-inclusive", "exclusive"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ModelledCache(_Table):
    """A cache of the first level: what is in it costs no more than the instruction itself."""

    size_kib: Annotated[int, Field(ge=1, le=1 << 20)]
    ways: _Few

    def sets(self, line_bytes: int) -> int:
        return self.size_kib * _KIB // (line_bytes * self.ways)

    def problem(self, line_bytes: int, *, any_sets: bool = False) -> str:
        """Return why there is no such cache, else "". Only a shared one may find a set other than by bits."""
        bytes_, set_bytes = self.size_kib * _KIB, line_bytes * self.ways
        if bytes_ % set_bytes:
            return f"{self.size_kib} KiB are no whole number of sets of {self.ways} lines of {line_bytes} bytes"
        if not any_sets and not _is_power_of_two(bytes_ // set_bytes):
            return f"it has {bytes_ // set_bytes} sets; expected a power of two"
        return ""


class OuterCache(ModelledCache):
    """A cache behind the first level, one for so many ``cores``. ``contents``: whether it holds all that those before
    it hold (inclusive), what was fetched (non-inclusive), or what left them (exclusive).
    """

    cores: _Few = 1
    contents: Contents = "non-inclusive"
    latency_cycles: _Cycles


class Prefetcher(_Table):
    """A prefetcher of L2: where two neighbouring lines were asked for it has the next, in so many pages at once."""

    streams: _Few


class Translations(_Table):
    """A TLB. Fully associative where ``ways`` is left out."""

    entries: Annotated[int, Field(ge=1, le=1 << 16)]
    ways: _Few | None = None

    @property
    def in_a_set(self) -> int:
        return self.ways or self.entries

    @property
    def sets(self) -> int:
        return self.entries // self.in_a_set

    @property
    def problem(self) -> str:
        if self.entries % self.in_a_set:
            return f"{self.entries} entries are no whole number of sets of {self.ways}"
        return "" if _is_power_of_two(self.sets) else f"it has {self.sets} sets; expected a power of two"


class OuterTranslations(Translations):
    """A TLB of the second level."""

    latency_cycles: _Cycles


class Branches(_Table):
    """A gshare predictor that looks back ``history_bits`` branches, with a counter for each such history."""

    history_bits: Annotated[int, Field(ge=1, le=24)]
    miss_cycles: _Cycles


class Missed(NamedTuple):
    """Counts of misses: how often it was looked for further out than in L1 of instructions and of data, L2, LLC, TLB of
    the first level, of the second (the page tables are walked), and how many branches were predicted wrongly.
    ``remote`` lines came from the memory of another node; ``distance`` is by how much that was further than the
    nearest, in all (ACPI's SLIT). ``lost`` ones were there until another CPU stored to them. A walk to a page of 2 MiB
    reads one table less than to one of 4 KiB, and to one of 1 GiB two less: ``skipped_levels``, in all.
    """

    l1i: _Count = 0
    l1d: _Count = 0
    l2: _Count = 0
    llc: _Count = 0
    tlb: _Count = 0
    walks: _Count = 0
    branches: _Count = 0
    remote: _Count = 0
    distance: _Count = 0
    lost: _Count = 0
    skipped_levels: _Count = 0

    def plus(self, other: Missed) -> Missed:
        return Missed(*map(operator.add, self, other))


def all_missed(some: Iterable[Missed]) -> Missed:
    """Return the sum of ``some``."""
    return reduce(Missed.plus, some, Missed())


class TimePart(NamedTuple):
    """A part of the modelled time: what is waited for, and how long."""

    name: str
    seconds: float


class ModelledMachine(_Table):
    """A machine with what is known of it. ``instructions_per_cycle`` is how many are carried out where nothing misses;
    the latencies are what each miss adds. ``walk_cycles`` are those of a walk over four tables, to a page of 4 KiB.
    ``sources`` say where the figures are from.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: str
    sources: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
    cores: _Few
    frequency_mhz: Annotated[int, Field(ge=1, le=100_000)]
    instructions_per_cycle: Annotated[int, Field(ge=1, le=64)]
    line_bytes: Annotated[int, Field(ge=16, le=1024)] = 64
    memory_ns: Annotated[float, Field(ge=0, le=100_000, strict=False)]
    walk_cycles: _Cycles
    l1i: ModelledCache
    l1d: ModelledCache
    l2: OuterCache | None = None
    llc: OuterCache | None = None
    prefetcher: Prefetcher | None = None
    itlb: Translations
    dtlb: Translations
    large_itlb: Translations | None = None
    large_dtlb: Translations | None = None
    l2_itlb: OuterTranslations | None = None
    l2_dtlb: OuterTranslations | None = None
    l2_tlb: OuterTranslations | None = None
    branches: Branches | None = None

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        problems = [*self._problems()]
        if problems:
            raise ValueError(problems[0])
        return self

    def _problems(self) -> list[str]:
        line = self.line_bytes
        if not _is_power_of_two(line):
            return [f"line_bytes is {line}; expected a power of two"]
        caches: dict[str, ModelledCache | None] = {"l1i": self.l1i, "l1d": self.l1d, "l2": self.l2, "llc": self.llc}
        problems = {name: cache.problem(line, any_sets=name == "llc") for name, cache in caches.items() if cache}
        outer = {"l2": self.l2, "llc": self.llc}
        for name, cache in outer.items():
            if cache and self.cores % cache.cores:
                problems[name] = (
                    problems[name] or f"cores is {cache.cores}; expected a divisor of the machine's {self.cores}"
                )
        both = self.l2_tlb is not None and (self.l2_itlb or self.l2_dtlb)
        if both:
            problems["l2_tlb"] = "it is shared; it conflicts with l2_itlb and l2_dtlb"
        tlbs = ("itlb", "dtlb", "large_itlb", "large_dtlb", "l2_itlb", "l2_dtlb", "l2_tlb")
        for name in tlbs:
            tlb: Translations | None = getattr(self, name)
            if tlb and not problems.get(name):
                problems[name] = tlb.problem
        return [f"{name}: {problem}" for name, problem in problems.items() if problem]

    def problem_with(self, cpus: int, nodes: Sequence[MemoryNode] = (), topology: Topology | None = None) -> str:
        """Return why it does not fit a guest with so many CPUs; "" if it does. Each socket of a ``topology`` is one
        such machine; without one, each of the ``nodes``.
        """
        if topology is not None:
            return self._problem_with_socket(topology)
        return (
            next(filter(None, (self._problem_with(node.cpus) for node in nodes)), "")
            if nodes
            else (self._problem_with(cpus))
        )

    def cores_of_caches(self, topology: Topology | None) -> dict[str, int]:
        """Return how many cores share a cache of each outer level, by the ``topology`` if there is one."""
        cores = {name: cache.cores for name, cache in (("l2", self.l2), ("llc", self.llc)) if cache}
        if topology is None:
            return cores
        group = topology.cores_of_group
        return {name: group if name == "llc" else min(cores, group) for name, cores in cores.items()}

    def _problem_with_socket(self, topology: Topology) -> str:
        if topology.cores > self.cores:
            return f"the topology's cores is {topology.cores}; expected at most {self.cores}, as the machine has"
        group = topology.cores_of_group
        if self.llc and group > self.llc.cores:
            fits = (
                number
                for number in range(topology.dies, topology.cores + 1, topology.dies)
                if topology.cores % number == 0 and topology.cores // number <= self.llc.cores
            )
            return (
                f"the topology's llc_groups is {topology.groups}, so {group} cores share an LLC; expected at least "
                f"{next(fits)}, because the machine's LLC is for {self.llc.cores} at most"
            )
        if self.l2 and group > self.l2.cores and group % self.l2.cores:
            return f"{self.l2.cores} cores share one l2, which does not divide the {group} cores of an LLC group"
        return ""

    def _problem_with(self, cpus: int) -> str:
        if self.cores < cpus:
            return f"it has {self.cores} {'core' if self.cores == 1 else 'cores'}, the guest {cpus} CPUs"
        for name, cache in (("l2", self.l2), ("llc", self.llc)):
            if cache and cpus > cache.cores and cpus % cache.cores:
                return f"{cache.cores} cores share one {name}, which does not divide the guest's {cpus} CPUs"
        return ""

    def parts(self, instructions: int, missed: Missed) -> tuple[TimePart, ...]:
        """Return the modelled time of so many instructions. They are carried out at the same rate, and stop at each
        miss until it is served; misses of one level that the next one serves wait for that.
        """
        first = missed.l1i + missed.l1d
        in_second = (missed.tlb - missed.walks) * self.translation_cycles
        cycles = {
            "instructions": instructions / self.instructions_per_cycle,
            "L2": (first - missed.l2) * (self.l2.latency_cycles if self.l2 else 0),
            "LLC": (missed.l2 - missed.llc) * (self.llc.latency_cycles if self.llc else 0),
            "memory": missed.llc * self._memory_cycles,
            "other nodes": missed.distance / NEAREST * self._memory_cycles,
            "TLB": in_second + (missed.walks - missed.skipped_levels / _LEVELS_OF_WALK) * self.walk_cycles,
            "branches": missed.branches * (self.branches.miss_cycles if self.branches else 0),
        }
        return tuple(TimePart(name, count / (self.frequency_mhz * 1e6)) for name, count in cycles.items())

    def seconds(self, instructions: int, missed: Missed) -> float:
        return sum(part.seconds for part in self.parts(instructions, missed))

    @property
    def _memory_cycles(self) -> float:
        return self.memory_ns * self.frequency_mhz / 1000

    @property
    def translation_cycles(self) -> int:
        """Return the cost of a second-level translation; that for data where there are two."""
        second = self.l2_tlb or self.l2_dtlb or self.l2_itlb
        return second.latency_cycles if second else 0


class ModelledRow(ClosedModel):
    """The work of one function, role or all in a trial of the baseline and in one of the configuration, and what of it
    missed. ``file`` has the function; it is empty for the kernel, and for what is no function.
    """

    name: str
    file: str = ""
    baseline_instructions: _Count
    own_instructions: _Count
    baseline: Missed
    own: Missed

    def seconds(self, machine: ModelledMachine) -> tuple[float, float]:
        """Return the modelled time of the baseline and of the configuration."""
        return (
            machine.seconds(self.baseline_instructions, self.baseline),
            machine.seconds(self.own_instructions, self.own),
        )

    def difference(self, machine: ModelledMachine) -> float:
        """Return the difference in seconds; positive if the configuration's is longer."""
        before, after = self.seconds(machine)
        return after - before


class ModelledComparison(ClosedModel):
    """Two trials on a modelled machine. The rows of ``parts`` (tasks by role) add up to the whole of both;
    ``functions`` are those whose modelled time differs most, without what they called.
    """

    machine: ModelledMachine
    sentences: tuple[str, ...]
    parts: tuple[ModelledRow, ...]
    functions: tuple[ModelledRow, ...]


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0

"""Proof of the topology that a study gives its guests, by their own kernel."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ajuste.model.error import RunError
from ajuste.model.kernel import KernelImage, Proof, Sight
from ajuste.model.plan import Command, MemoryNode, Plan, node_distances
from ajuste.model.topology import CpuSet, Topology, cpu_list, parse_kernel_cpus, parse_mask
from ajuste_guest.proofs.feature import KernelFacts, KernelFeature, ProofFinding
from ajuste_guest.proofs.prove import Claim, judged, output_of, read_facts

if TYPE_CHECKING:
    from ajuste_guest.executor.guest import GuestOptions

_CPUS: Final = "/sys/devices/system/cpu"
_NODES: Final = "/sys/devices/system/node"
_ONLINE: Final = f"{_CPUS}/online"
_ISOLATED: Final = f"{_CPUS}/isolated"
_NODES_ONLINE: Final = f"{_NODES}/online"
_SIBLINGS: Final = "topology/core_siblings_list"
_DIES: Final = "topology/die_cpus_list"
_THREADS: Final = "topology/thread_siblings_list"
_OWN_CACHES: Final = tuple(f"cache/index{index}/shared_cpu_list" for index in range(3))
_LLC: Final = "cache/index3/shared_cpu_list"
DOMAINS: Final = "/proc/schedstat"

_EXPECTED: Final = "; expected "
_FEWER_CPUS: Final = ("nosmt", "nosmp", "maxcpus=", "nr_cpus=", "possible_cpus=")
_NO_NODES: Final = "numa=off"
_LOOK_NS: Final = 60_000_000_000


@dataclass(frozen=True)
class GuestPlaces:
    """The expected places of a guest's CPUs. ``arguments`` are words of its kernel's command line, some of which turn
    CPUs or nodes off. The kernel was built without scheduling domains of the levels ``without`` (SMT, MC).
    """

    topology: Topology
    nodes: tuple[MemoryNode, ...] = ()
    arguments: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()

    @property
    def by_node(self) -> tuple[CpuSet, ...]:
        """The CPUs of each node; without nodes all CPUs are one."""
        if not self.nodes:
            return (tuple(range(self.topology.cpus)),)
        ends = [sum(node.cpus for node in self.nodes[: number + 1]) for number in range(len(self.nodes))]
        return tuple(tuple(range(end - node.cpus, end)) for node, end in zip(self.nodes, ends, strict=True))

    def domains(self, balanced: Iterable[int]) -> dict[int, tuple[CpuSet, ...]]:
        """Return the spans of each CPU's scheduling domains, smallest first, among the CPUs ``balanced``: its siblings,
        those with the same LLC, those of the node, and those of nodes within each distance. The kernel leaves out
        domains that add no CPU (kernel/sched/topology.c).
        """
        among = frozenset(balanced)
        return {cpu: tuple(self._spans(cpu, among)) for cpu in sorted(among)}

    def _spans(self, cpu: int, among: frozenset[int]) -> Iterator[CpuSet]:
        before = 1
        for level in self._levels(cpu):
            span = tuple(other for other in _with(cpu, level) if other in among)
            if len(span) > before:
                before = len(span)
                yield span

    def _levels(self, cpu: int) -> Iterator[Sequence[CpuSet]]:
        if "SMT" not in self.without:
            yield self.topology.by_core
        if "MC" not in self.without:
            yield self.topology.by_group
        yield self.by_node
        if not self.nodes:
            return
        rows, homes = node_distances(self.nodes), self.by_node
        home = next(number for number, cpus in enumerate(homes) if cpu in cpus)
        for distance in sorted({distance for row in rows for distance in row}):
            near = (homes[number] for number, far in enumerate(rows[home]) if far <= distance)
            yield (tuple(sorted(member for cpus in near for member in cpus)),)


def topology_feature(places: GuestPlaces) -> KernelFeature:
    """Return the topology as a feature, present if the kernel shows all of it."""
    files = (_SIBLINGS, _DIES, _THREADS, *_OWN_CACHES, _LLC)
    return KernelFeature(
        name="topology",
        title="Topology of the CPUs",
        judge=partial(_judge, places),
        options=("SCHED_SMT", "SCHED_MC", "NUMA"),
        reads=(
            *(_ONLINE, _ISOLATED, _NODES_ONLINE),
            *(f"{_CPUS}/cpu{cpu}/{file}" for file in files for cpu in range(places.topology.cpus)),
            *(_of_node(number, file) for number in range(len(places.nodes)) for file in ("cpulist", "distance")),
        ),
    )


def prove_topology(image: KernelImage, topology: Topology, options: GuestOptions) -> Proof:
    """Boot the guest that ``options`` describe, and prove its topology.

    Raises RunError if the kernel shows another one, RequestError if it does not boot.
    """
    from ajuste_guest.executor.guest import GuestExecutor  # takes long to load, and few studies have a topology
    from ajuste_guest.executor.initramfs import GuestFiles

    arguments = options["kernel_arguments"]
    places = GuestPlaces(topology, options["nodes"], arguments, _levels_without(image.config))
    feature, reader = topology_feature(places), shutil.which("cat") or "/bin/cat"
    look = Plan(id="domains", workload=Command(argv=(reader, DOMAINS)), timeout_ns=_LOOK_NS)
    with GuestExecutor(image, files=GuestFiles(programs=(Path(reader),)), **options) as guest:
        options["say"](f"checking the topology that {image.spec} shows")
        facts = read_facts(guest, feature.reads)
        domains, why = output_of(guest.run(look))
    if domains is None:
        facts = replace(facts, unreadable={**facts.unreadable, DOMAINS: why})
    else:
        facts = replace(facts, reads={**facts.reads, DOMAINS: domains})
    proof = judged(image, [feature], [Claim(feature)], facts, arguments)
    if proof.broken:
        wrong = [f"{sight.what}: {sight.found}" for sight in proof.broken[0].evidence if _EXPECTED in sight.found]
        raise RunError(
            f"{image.spec} ({image.release}) does not show the topology ({topology.in_words}): {'. '.join(wrong)}",
            hint="change [target.topology] or --topology, or use another kernel",
        )
    return proof


def _levels_without(config: Path | None) -> frozenset[str]:
    text = config.read_text(errors="replace") if config is not None and config.is_file() else ""
    return frozenset(re.findall(r"^# CONFIG_SCHED_(SMT|MC) is not set$", text, re.MULTILINE))


def _judge(places: GuestPlaces, facts: KernelFacts) -> ProofFinding:
    topology = places.topology
    online = parse_kernel_cpus(facts.reads.get(_ONLINE, ""))
    wanted: Sequence[int] = range(topology.cpus)
    if any(word.startswith(_FEWER_CPUS) for word in places.arguments):
        wanted = online
    sights = [_sight(_ONLINE, cpu_list(online), cpu_list(wanted))]
    sharing = [(_SIBLINGS, topology.by_socket), (_DIES, _dies(topology, facts, online)), (_THREADS, topology.by_core)]
    sharing += [*((file, topology.by_core) for file in _OWN_CACHES), (_LLC, topology.by_group)]
    for file, groups in sharing:
        actual = {cpu: _cpus_or_reason(facts, f"{_CPUS}/cpu{cpu}/{file}") for cpu in online}
        expected = {cpu: cpu_list(set(_with(cpu, groups)) & set(online)) for cpu in online}
        sights.append(_sight(f"{_CPUS}/cpu*/{file}", _distinct(actual), _distinct(expected)))
    has_nodes = _NODES_ONLINE in facts.reads and _NO_NODES not in places.arguments
    seen = places if has_nodes else replace(places, nodes=())
    sights += _nodes(seen, facts, online)
    what = f"{DOMAINS}, scheduling domains"
    if DOMAINS in facts.reads:
        balanced = set(online) - set(parse_kernel_cpus(facts.reads.get(_ISOLATED, "")))
        sights.append(_sight(what, _chains(domains_in(facts.reads[DOMAINS])), _chains(seen.domains(balanced))))
    else:
        sights.append(Sight(what=what, found=f"not checked: {facts.sight(DOMAINS)}"))
    return ProofFinding(present=not any(_EXPECTED in sight.found for sight in sights), evidence=tuple(sights))


def _dies(topology: Topology, facts: KernelFacts, online: Sequence[int]) -> Sequence[CpuSet]:
    # Before 6.9 Linux takes the parts of a die for dies.
    parts = _distinct({cpu: cpu_list(set(_with(cpu, topology.by_group)) & set(online)) for cpu in online})
    dies = _distinct({cpu: _cpus_or_reason(facts, f"{_CPUS}/cpu{cpu}/{_DIES}") for cpu in online})
    return topology.by_group if dies == parts else topology.by_die


def _nodes(places: GuestPlaces, facts: KernelFacts, online: Sequence[int]) -> Iterator[Sight]:
    for number, (cpus, row) in enumerate(zip(places.by_node, node_distances(places.nodes), strict=False)):
        path = _of_node(number, "cpulist")
        yield _sight(path, _cpus_or_reason(facts, path), cpu_list(set(cpus) & set(online)))
        path = _of_node(number, "distance")
        yield _sight(path, facts.sight(path), " ".join(map(str, row)))


def domains_in(schedstat: str) -> dict[int, tuple[CpuSet, ...]]:
    """Return the spans of each CPU's scheduling domains in /proc/schedstat, smallest first; empty for a CPU without.

    Since version 17 a domain has a name before its mask (Documentation/scheduler/sched-stats.rst).
    """
    domains: dict[int, tuple[CpuSet, ...]] = {}
    cpu = -1
    for line in schedstat.splitlines():
        if start := re.match(r"cpu(\d+) ", line):
            cpu = int(start[1])
            domains[cpu] = ()
        elif domain := re.match(r"domain\d+ (?:[A-Z]\S* )?([0-9a-f,]+) ", line):
            domains[cpu] = (*domains.get(cpu, ()), parse_mask(domain[1]))
    return domains


def _chains(domains: Mapping[int, Sequence[CpuSet]]) -> str:
    # `0-1 in 0-3; 2-3 in 0-3`.
    return _distinct({cpu: " in ".join(map(cpu_list, spans)) for cpu, spans in domains.items() if spans}) or "none"


def _cpus_or_reason(facts: KernelFacts, path: str) -> str:
    cpus = parse_kernel_cpus(facts.reads.get(path, ""))
    return cpu_list(cpus) if cpus or path in facts.reads else facts.sight(path)


def _with(cpu: int, groups: Iterable[CpuSet]) -> CpuSet:
    return next(group for group in groups if cpu in group)


def _distinct(values: Mapping[int, str]) -> str:
    return "; ".join(dict.fromkeys(values.values()))


def _of_node(number: int, file: str) -> str:
    return f"{_NODES}/node{number}/{file}"


def _sight(what: str, actual: str, expected: str) -> Sight:
    return Sight(what=what, found=actual if actual == expected else f"{actual or 'nothing'}{_EXPECTED}{expected}")

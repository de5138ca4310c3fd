"""The topology of a guest: what its kernel must show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ajuste.model.plan import MemoryNode
from ajuste.model.topology import Topology
from ajuste_guest.proofs.feature import KernelFacts, ProofFinding
from ajuste_guest.proofs.topology import DOMAINS, GuestPlaces, domains_in, topology_feature

PAIR = Topology(sockets=2, cores=2)
PARTS = Topology(dies=2, llc_groups=4, cores=8)
CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
SCHEDSTAT = """version 15
timestamp 4294892890
cpu0 0 0 0 0 0 0 100 200 3
domain0 3 0 0 0
domain1 f 0 0 0
cpu1 0 0 0 0 0 0 100 200 3
domain0 3 0 0 0
domain1 f 0 0 0
cpu2 0 0 0 0 0 0 100 200 3
domain0 c 0 0 0
domain1 f 0 0 0
cpu3 0 0 0 0 0 0 100 200 3
domain0 c 0 0 0
domain1 f 0 0 0
"""


def kernel_files(files: Mapping[str, list[str]], cpus: int, schedstat: str = "") -> dict[str, str]:
    """Return the files of a kernel by path: those of each CPU in turn, as they stand under its folder."""
    of_cpus = {f"{CPU}/cpu{cpu}/{file}": lines[cpu] for file, lines in files.items() for cpu in range(cpus)}
    more = {DOMAINS: schedstat} if schedstat else {}
    return {f"{CPU}/online": f"0-{cpus - 1}", f"{CPU}/isolated": "", f"{NODE}/online": "0", **of_cpus, **more}


def own_caches(cpu_lists: list[str]) -> dict[str, list[str]]:
    return {f"cache/index{index}/shared_cpu_list": cpu_lists for index in range(3)}


PAIRED = {
    "topology/core_siblings_list": ["0-1", "0-1", "2-3", "2-3"],
    "topology/die_cpus_list": ["0-1", "0-1", "2-3", "2-3"],
    "topology/thread_siblings_list": ["0", "1", "2", "3"],
    "cache/index3/shared_cpu_list": ["0-1", "0-1", "2-3", "2-3"],
    **own_caches(["0", "1", "2", "3"]),
}


def judged(places: GuestPlaces, reads: Mapping[str, str]) -> ProofFinding:
    return topology_feature(places).judge(KernelFacts(build="#1 SMP", reads=reads))


def wrong(finding: ProofFinding) -> dict[str, str]:
    return {sight.what: sight.found for sight in finding.evidence if "expected" in sight.found}


def test_a_kernel_shows_it_where_every_file_says_so() -> None:
    finding = judged(GuestPlaces(PAIR), kernel_files(PAIRED, 4, SCHEDSTAT))
    assert finding.present
    evidence = {sight.what: sight.found for sight in finding.evidence}
    assert evidence[f"{CPU}/cpu*/cache/index3/shared_cpu_list"] == "0-1; 2-3"
    assert evidence[f"{DOMAINS}, scheduling domains"] == "0-1 in 0-3; 2-3 in 0-3"


@pytest.mark.parametrize("file", list(PAIRED))
def test_one_file_that_says_otherwise_is_told_with_what_was_expected(file: str) -> None:
    finding = judged(GuestPlaces(PAIR), kernel_files({**PAIRED, file: ["0-3"] * 4}, 4, SCHEDSTAT))
    assert finding.present is False
    ((what, text),) = wrong(finding).items()
    assert what == f"{CPU}/cpu*/{file}"
    assert text.startswith("0-3; expected 0")


def test_domains_that_span_other_cpus_are_none_of_the_topology() -> None:
    flat = "".join(line + "\n" for line in SCHEDSTAT.splitlines() if not line.startswith("domain0"))
    differences = wrong(judged(GuestPlaces(PAIR), kernel_files(PAIRED, 4, flat)))
    assert differences == {f"{DOMAINS}, scheduling domains": "0-3; expected 0-1 in 0-3; 2-3 in 0-3"}


def test_a_kernel_that_does_not_tell_its_domains_is_believed() -> None:
    assert judged(GuestPlaces(PAIR), kernel_files(PAIRED, 4)).present


def test_a_kernel_without_domains_of_a_level_shows_the_others() -> None:
    flat = "".join(line + "\n" for line in SCHEDSTAT.splitlines() if not line.startswith("domain0"))
    assert judged(GuestPlaces(PAIR, without=frozenset({"MC"})), kernel_files(PAIRED, 4, flat)).present


def test_a_cpu_that_did_not_come_up_is_missed_unless_it_was_turned_off() -> None:
    two = {name: value for name, value in kernel_files(PAIRED, 4).items() if "cpu2" not in name and "cpu3" not in name}
    two = {name: "0-1" if value in ("0-3", "2-3") else value for name, value in two.items()}
    assert wrong(judged(GuestPlaces(PAIR), two)) == {f"{CPU}/online": "0-1; expected 0-3"}
    assert judged(GuestPlaces(PAIR, arguments=("maxcpus=2",)), two).present


def test_isolated_cpus_are_in_no_domain() -> None:
    places = GuestPlaces(PAIR)
    assert places.domains([0, 1, 2]) == {0: ((0, 1), (0, 1, 2)), 1: ((0, 1), (0, 1, 2)), 2: ((0, 1, 2),)}


def test_domains_grow_with_the_distance_of_nodes() -> None:
    """Four nodes in a ring: each has two neighbours, and one that is further away."""
    rows = ((10, 20, 30, 20), (20, 10, 20, 30), (30, 20, 10, 20), (20, 30, 20, 10))
    ring = tuple(MemoryNode(cpus=2, memory_mib=64, distances=row) for row in rows)
    places = GuestPlaces(Topology(sockets=4, cores=1, threads=2), ring)
    assert places.domains(range(8))[0] == ((0, 1), (0, 1, 2, 3, 6, 7), tuple(range(8)))
    pair = GuestPlaces(PAIR, (MemoryNode(cpus=4, memory_mib=64), MemoryNode(memory_mib=64)))
    assert pair.domains(range(4))[2] == ((2, 3), (0, 1, 2, 3))


def test_domains_are_read_with_names_and_without() -> None:
    by_cpu = {
        0: ((0, 1), (0, 1, 2, 3)),
        1: ((0, 1), (0, 1, 2, 3)),
        2: ((2, 3), (0, 1, 2, 3)),
        3: ((2, 3), (0, 1, 2, 3)),
    }
    assert domains_in(SCHEDSTAT) == by_cpu
    named = SCHEDSTAT.replace("domain0 ", "domain0 MC ").replace("domain1 ", "domain1 PKG ")
    assert domains_in(named) == by_cpu
    assert domains_in("version 17\ncpu0 1 2\ndomain0 NUMA ffffffff,00000000 1\n") == {0: (tuple(range(32, 64)),)}


def test_old_kernels_take_the_parts_of_a_die_for_dies() -> None:
    groups, dies = ["0-1", "0-1", "2-3", "2-3", "4-5", "4-5", "6-7", "6-7"], ["0-3"] * 4 + ["4-7"] * 4
    each = [str(cpu) for cpu in range(8)]
    files = {
        "topology/core_siblings_list": ["0-7"] * 8,
        "topology/die_cpus_list": dies,
        "topology/thread_siblings_list": each,
        "cache/index3/shared_cpu_list": groups,
        **own_caches(each),
    }
    assert judged(GuestPlaces(PARTS), kernel_files(files, 8)).present
    assert judged(GuestPlaces(PARTS), kernel_files({**files, "topology/die_cpus_list": groups}, 8)).present
    assert (
        judged(GuestPlaces(PARTS), kernel_files({**files, "topology/die_cpus_list": ["0-7"] * 8}, 8)).present is False
    )


def test_nodes_are_those_of_the_machine_unless_they_were_turned_off() -> None:
    nodes = tuple(MemoryNode(cpus=2, memory_mib=64, distances=row) for row in ((10, 31), (31, 10)))
    places = GuestPlaces(PAIR, nodes)
    rows = {f"{NODE}/node0/cpulist": "0-1", f"{NODE}/node1/cpulist": "2-3"}
    rows |= {f"{NODE}/node0/distance": "10 31", f"{NODE}/node1/distance": "31 10"}
    assert judged(places, kernel_files(PAIRED, 4) | rows).present
    flat = {**rows, f"{NODE}/node0/distance": "10 20"}
    assert wrong(judged(places, kernel_files(PAIRED, 4) | flat)) == {f"{NODE}/node0/distance": "10 20; expected 10 31"}
    assert judged(replace(places, arguments=("numa=off",)), kernel_files(PAIRED, 4)).present

"""Guests with a topology: what their kernels show, and what their own programs say of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RunError
from ajuste.model.event import Output
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Command, MemoryNode, Plan
from ajuste.model.topology import Topology
from ajuste_guest.executor.guest import GuestExecutor, GuestOptions
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.proofs.topology import DOMAINS, prove_topology
from tiers import slow

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"


def options(place: Home, topology: Topology, nodes: tuple[MemoryNode, ...] = (), *words: str) -> GuestOptions:
    return {
        "clock": "virtual",
        "cpus": topology.cpus,
        "memory_mib": sum(node.memory_mib for node in nodes) or 256,
        "seed": 1,
        "instruction_ns": 2,
        "home": place,
        "snapshot": True,
        "kernel_arguments": words,
        "nodes": nodes,
        "turn_us": None,
        "parallel": None,
        "topology": topology,
        "pauses": None,
        "paced_by": None,
        "say": lambda _: None,
    }


def printed(guest: GuestExecutor, *argv: str) -> str:
    observation = guest.run(Plan(id="print", workload=Command(argv=argv)))
    assert observation.problem == ""
    return "".join(event.text for event in observation.events if isinstance(event, Output) and event.stream == "stdout")


@pytest.mark.vm
@pytest.mark.parametrize("spec", ["debian:5.10", *slow("debian:6.12")])
def test_the_guests_own_lscpu_and_scheduler_agree(place: Home, kernel: Callable[[str], KernelImage], spec: str) -> None:
    lscpu, cat = shutil.which("lscpu"), shutil.which("cat")
    if not (lscpu and cat):
        pytest.skip("lscpu is not installed")
    shape = Topology(sockets=2, cores=2, threads=2)
    files = GuestFiles(programs=(Path(lscpu), Path(cat)))
    with GuestExecutor(kernel(spec), files=files, **options(place, shape)) as guest:
        table = printed(guest, lscpu, "-p=CPU,CORE,SOCKET,CACHE")
        domains = printed(guest, cat, "/proc/schedstat")
    rows = [line.split(",") for line in table.splitlines() if not line.startswith("#")]
    # CPU, core, socket, and which L1d, L1i, L2 and L3 it has.
    assert [row[:3] for row in rows] == [[str(cpu), str(cpu // 2), str(cpu // 4)] for cpu in range(8)]
    assert [row[-4:] for row in rows] == [[*[str(cpu // 2)] * 3, str(cpu // 4)] for cpu in range(8)]
    masks = [line.split()[1].lstrip("0") for line in domains.splitlines() if line.startswith("domain")]
    assert masks == [mask for low in ("3", "c", "30", "c0") for _ in range(2) for mask in (low, _socket(low), "ff")]


def _socket(mask: str) -> str:
    return "f" if len(mask) == 1 else "f0"


@pytest.mark.vm
@pytest.mark.parametrize("spec", ["debian:5.10", *slow("debian:6.12")])
@pytest.mark.slow
def test_dies_with_several_llcs_and_nodes_of_their_own_are_proved(
    place: Home, kernel: Callable[[str], KernelImage], spec: str
) -> None:
    nodes = tuple(MemoryNode(cpus=4, memory_mib=128, distances=row) for row in ((10, 32), (32, 10)))
    shape = Topology(dies=2, llc_groups=4, cores=8)
    proof = prove_topology(kernel(spec), shape, options(place, shape, nodes, "isolcpus=7"))
    (feature,) = proof.features
    evidence = {sight.what: sight.found for sight in feature.evidence}
    assert feature.holds
    assert evidence[f"{CPU}/cpu*/topology/core_siblings_list"] == "0-7"
    assert evidence[f"{CPU}/cpu*/cache/index3/shared_cpu_list"] == "0-1; 2-3; 4-5; 6-7"
    assert evidence[f"{NODE}/node1/distance"] == "32 10"
    domains = "0-1 in 0-3 in 0-6; 2-3 in 0-3 in 0-6; 4-5 in 4-6 in 0-6; 4-6 in 0-6"
    assert evidence[f"{DOMAINS}, scheduling domains"] == domains


@pytest.mark.vm
@pytest.mark.slow
def test_a_guest_that_does_not_show_it_is_refused(place: Home, kernel: Callable[[str], KernelImage]) -> None:
    expected, actual = Topology(cores=1, threads=2), Topology(sockets=2)
    with pytest.raises(RunError, match=r"debian:6\.12 .* does not show the topology \(1 core × 2 threads") as refused:
        prove_topology(kernel("debian:6.12"), expected, options(place, actual))
    assert "thread_siblings_list: 0; 1; expected 0-1" in refused.value.message
    assert refused.value.hint is not None

"""Modelled machines: which there can be, and how their time is computed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ajuste.catalogue.loader import catalogue
from ajuste.model.modelled import Missed, ModelledMachine
from ajuste.model.topology import Topology

TEXTBOOK = catalogue().machines["textbook"]


def machine(**changed: Any) -> ModelledMachine:
    return ModelledMachine.model_validate(TEXTBOOK.model_dump() | changed)


def test_time_is_instructions_and_the_latency_of_each_miss() -> None:
    """Cycles are nanoseconds at 1 GHz: 1000 instructions, 4 lines from the LLC, 2 from memory, 3 pages from the second
    TLB, 1 walk, 5 branches.
    """
    missed = Missed(l1i=2, l1d=4, l2=6, llc=2, tlb=4, walks=1, branches=5)
    parts = {part.name: round(part.seconds * 1e9, 6) for part in TEXTBOOK.parts(1000, missed)}
    assert parts == {
        "instructions": 1000,
        "L2": 0,
        "LLC": 40,
        "memory": 200,
        "other nodes": 0,
        "TLB": 35,
        "branches": 50,
    }
    # Of the 20 cycles of a walk over four tables, one to 2 MiB takes 15 and one to 1 GiB 10.
    large = {part.name: part.seconds for part in TEXTBOOK.parts(0, Missed(tlb=2, walks=2, skipped_levels=1 + 2))}
    assert large["TLB"] == pytest.approx(25e-9)
    # One line from memory at the distance 31 waits 2.1 times as long again.
    far = {part.name: part.seconds for part in TEXTBOOK.parts(0, Missed(llc=1, remote=1, distance=21))}
    assert far["other nodes"] == pytest.approx(210e-9)
    assert TEXTBOOK.seconds(1000, missed) == pytest.approx(1325e-9)


def test_lines_wait_for_the_level_that_has_them() -> None:
    zen = catalogue().machines["zen4-8c"]
    cycle_s = 1 / 4.5e9
    parts = {part.name: part.seconds for part in zen.parts(600, Missed(l1d=10, l2=4, llc=1))}
    assert parts["instructions"] == pytest.approx(100 * cycle_s)
    assert parts["L2"] == pytest.approx(6 * 14 * cycle_s)
    assert parts["LLC"] == pytest.approx(3 * 50 * cycle_s)
    assert parts["memory"] == pytest.approx(73e-9)


def test_every_machine_of_the_catalogue_has_sources() -> None:
    machines = catalogue().machines
    assert {"textbook", "zen4-8c", "skylake-server"} <= set(machines)
    assert all(machine.sources for machine in machines.values())


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"l1d": {"size_kib": 3, "ways": 2}}, "l1d: it has 24 sets; expected a power of two"),
        ({"l1i": {"size_kib": 4, "ways": 3}}, "l1i: 4 KiB are no whole number of sets of 3 lines"),
        ({"line_bytes": 48}, "line_bytes is 48; expected a power of two"),
        ({"dtlb": {"entries": 16, "ways": 5}}, "dtlb: 16 entries are no whole number of sets of 5"),
        ({"itlb": {"entries": 12, "ways": 2}}, "itlb: it has 6 sets"),
        ({"large_dtlb": {"entries": 12, "ways": 2}}, "large_dtlb: it has 6 sets"),
        (
            {"llc": {"size_kib": 64, "ways": 4, "latency_cycles": 9, "cores": 2}},
            "llc: cores is 2; expected a divisor of the machine's 1",
        ),
        ({"l2_dtlb": {"entries": 16, "latency_cycles": 5}}, "it conflicts with l2_itlb and l2_dtlb"),
        ({"sources": []}, "at least 1 item"),
        ({"l3": {"size_kib": 4, "ways": 3}}, "Extra inputs are not permitted"),
        ({"l1d": {"size_kib": "4", "ways": 2}}, "valid integer"),
        ({"llc": {"size_kib": 64, "ways": 4}}, "Field required"),
        ({"memory_ns": -1}, "greater than or equal to 0"),
        ({"branches": {"history_bits": 60, "miss_cycles": 1}}, "less than or equal to 24"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        machine(**changed)
    assert words in str(refused.value)


def test_a_shared_cache_may_have_any_number_of_sets() -> None:
    server = catalogue().machines["skylake-server"]
    assert server.llc is not None
    assert server.llc.sets(server.line_bytes) == 57_344


def test_a_machine_may_not_fit_a_guest() -> None:
    zen = catalogue().machines["zen4-8c"]
    assert zen.problem_with(1) == zen.problem_with(3) == ""
    assert zen.problem_with(16) == "it has 8 cores, the guest 16 CPUs"
    pairs = machine(cores=8, llc={"size_kib": 64, "ways": 4, "latency_cycles": 9, "cores": 2})
    assert pairs.problem_with(4) == ""
    assert "does not divide the guest's 3 CPUs" in pairs.problem_with(3)


def test_a_topology_says_who_shares_the_llc_and_may_not_fit() -> None:
    zen = catalogue().machines["zen4-8c"]
    # Cores count, and not CPUs; each socket is such a machine.
    assert zen.problem_with(16, topology=Topology(sockets=2, cores=8)) == ""
    assert zen.problem_with(16, topology=Topology(cores=8, threads=2)) == ""
    assert zen.cores_of_caches(None) == {"l2": 1, "llc": 8}
    assert zen.cores_of_caches(Topology(sockets=2, cores=4, llc_groups=2)) == {"l2": 1, "llc": 2}
    nine = zen.problem_with(9, topology=Topology(cores=9))
    assert nine == "the topology's cores is 9; expected at most 8, as the machine has"
    pairs = machine(
        cores=8,
        l2={"size_kib": 16, "ways": 4, "latency_cycles": 5, "cores": 2},
        llc={"size_kib": 64, "ways": 4, "latency_cycles": 9, "cores": 4},
    )
    assert "llc_groups is 1, so 8 cores share an LLC; expected at least 2" in pairs.problem_with(
        8, topology=Topology(cores=8)
    )
    assert "2 cores share one l2, which does not divide the 3 cores" in pairs.problem_with(
        6, topology=Topology(cores=6, llc_groups=2)
    )
    assert pairs.cores_of_caches(Topology(cores=2, llc_groups=2)) == {"l2": 1, "llc": 1}

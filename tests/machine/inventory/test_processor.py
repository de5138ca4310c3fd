"""CPU, caches, NUMA, frequency and idle states: against lscpu where it can judge, and of machines made of files."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.machine.inventory.inventory import Inventory, take_inventory
from ajuste.machine.inventory.processor import take_caches, take_cpu, take_frequency, take_idle, take_nodes
from ajuste.machine.inventory.software import take_mitigations
from ajuste.machine.inventory.source import InventorySource
from ajuste.model.topology import cpu_list, parse_kernel_cpus
from tree import CPUS, Tree

CPUFREQ = f"{CPUS}/cpufreq"
needs_lscpu = pytest.mark.skipif(shutil.which("lscpu") is None, reason="lscpu is not installed")


@pytest.fixture(scope="module")
def here() -> Inventory:
    return take_inventory()


def lscpu(*options: str) -> dict[str, str]:
    """Return every field of ``lscpu -J``, however deep."""
    output = subprocess.run(["lscpu", "-J", *options], capture_output=True, text=True, check=True).stdout
    fields: dict[str, str] = {}

    def walk(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            fields.setdefault(entry["field"].rstrip(":"), entry["data"])
            walk(entry.get("children", []))

    walk(json.loads(output)["lscpu"])
    return fields


@needs_lscpu
def test_the_processor_is_the_one_that_lscpu_sees(here: Inventory) -> None:
    fields = lscpu()
    assert str(here.cpu.cpus) == fields["CPU(s)"]
    assert here.cpu.model == fields["Model name"]
    assert here.cpu.vendor == fields["Vendor ID"]
    assert str(here.cpu.family) == fields["CPU family"]
    assert str(here.cpu.sockets) == fields["Socket(s)"]
    assert str(here.cpu.threads_per_core) == fields["Thread(s) per core"]
    assert set(here.cpu.flags) == set(fields["Flags"].split())


@needs_lscpu
def test_caches_are_those_that_lscpu_sees(here: Inventory) -> None:
    fields = lscpu("--bytes")
    assert here.caches
    for name, cache in here.caches.items():
        total = (cache.size_kib or 0) * 1024 * cache.instances
        instances = "instance" if cache.instances == 1 else "instances"
        assert fields[f"{name} cache"] == f"{total} ({cache.instances} {instances})"


@needs_lscpu
def test_nodes_and_vulnerabilities_are_those_that_lscpu_sees(here: Inventory) -> None:
    fields = lscpu()
    assert len(here.numa) == int(fields["NUMA node(s)"])
    for name, node in here.numa.items():
        assert parse_kernel_cpus(node.cpus) == parse_kernel_cpus(fields[f"NUMA {name} CPU(s)"])
    vulnerabilities = {
        field.removeprefix("Vulnerability ").lower() for field in fields if field.startswith("Vulnerability ")
    }
    assert {name.replace("_", " ") for name in here.mitigations} == vulnerabilities


@needs_lscpu
@pytest.mark.parametrize(("sockets", "cores", "threads"), [(1, 4, 1), (1, 8, 2), (2, 12, 2), (2, 6, 4)])
def test_a_machine_of_another_shape_is_understood_as_by_lscpu(
    tree: Tree, sockets: int, cores: int, threads: int
) -> None:
    tree.cpus(sockets=sockets, cores=cores, threads=threads)
    tree.write({"proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel"})
    cpu, caches = take_cpu(InventorySource(tree.root)), take_caches(InventorySource(tree.root))
    fields = lscpu("--sysroot", str(tree.root))
    assert fields["Socket(s)"] == str(cpu.sockets) == str(sockets)
    assert fields["Thread(s) per core"] == str(cpu.threads_per_core) == str(threads)
    assert cpu.cores == sockets * cores
    assert cpu.smt == ("on" if threads > 1 else "notsupported")
    assert {name: (cache.instances, cache.shared_by) for name, cache in caches.items()} == {
        "L1d": (sockets * cores, threads),
        "L1i": (sockets * cores, threads),
        "L2": (sockets * cores, threads),
        "L3": (sockets, cores * threads),
    }
    assert caches["L3"].size_kib == 36 * 1024
    for name, cache in caches.items():
        assert f"({cache.instances} instance" in fields[f"{name} cache"]


def test_two_nodes_are_as_far_apart_as_their_firmware_says(tree: Tree) -> None:
    tree.nodes({0: ("0-3,8-11", 16_000_000, "10 21"), 1: ("4-7,12-15", 8_000_000, "21 10")})
    nodes = take_nodes(InventorySource(tree.root))
    assert [node.cpus for node in nodes.values()] == ["0-3,8-11", "4-7,12-15"]
    assert nodes["node1"].memory_bytes == 8_000_000 * 1024
    assert nodes["node1"].distances == (21, 10)


def test_a_hybrid_processor_has_two_sizes_of_one_level(tree: Tree) -> None:
    tree.cpus(sockets=1, cores=2, threads=1)
    tree.write({f"{CPUS}/cpu1/cache/index0/size": "32K"})
    caches = take_caches(InventorySource(tree.root))
    assert {name: cache.size_kib for name, cache in caches.items() if name.startswith("L1d")} == {
        "L1d": 48,
        "L1d (2)": 32,
    }


def policy(number: int, cpus: str, governor: str) -> dict[str, str]:
    files = {
        "affected_cpus": cpus,
        "scaling_driver": "intel_pstate",
        "scaling_governor": governor,
        "scaling_available_governors": "performance powersave",
        "energy_performance_preference": "balance_performance",
        "scaling_min_freq": "400000",
        "scaling_max_freq": "4700000",
        "cpuinfo_min_freq": "400000",
        "cpuinfo_max_freq": "4700000",
        "base_frequency": "2400000",
    }
    return {f"{CPUFREQ}/policy{number}/{name}": content for name, content in files.items()}


def test_a_laptop_says_its_governor_and_turbo(tree: Tree) -> None:
    tree.write(policy(0, "0", "powersave") | policy(1, "1", "powersave"))
    tree.write({f"{CPUS}/intel_pstate/no_turbo": "1", f"{CPUS}/intel_pstate/status": "active"})
    frequency = take_frequency(InventorySource(tree.root))
    assert (frequency.driver, frequency.governor, frequency.turbo) == ("intel_pstate", "powersave", False)
    assert (frequency.base_khz, frequency.highest_khz) == ("2400000", "4700000")
    assert frequency.pstate_mode == "active"
    assert frequency.unknown == {}


def test_cpus_with_different_governors_are_named(tree: Tree) -> None:
    tree.write(policy(0, "0 1", "performance") | policy(2, "2 3", "powersave"))
    tree.write({f"{CPUFREQ}/boost": "1"})
    frequency = take_frequency(InventorySource(tree.root))
    assert frequency.governor == "performance (0-1), powersave (2-3)"
    assert frequency.turbo is True
    assert frequency.unknown == {"pstate_mode": "not offered by this driver"}


def test_without_cpufreq_every_field_says_that_it_is_not_visible(tree: Tree) -> None:
    frequency = take_frequency(InventorySource(tree.root))
    assert set(frequency.unknown.values()) == {"not visible here: no cpufreq driver"}
    assert set(frequency.unknown) == set(type(frequency).model_fields) - {"unknown"}


def test_idle_states_have_their_latencies(tree: Tree) -> None:
    for number, (name, latency, disabled) in enumerate([("POLL", 0, 0), ("C1E", 10, 0), ("C6", 133, 1)]):
        place = f"{CPUS}/cpu0/cpuidle/state{number}"
        files = {"name": name, "latency": str(latency), "residency": str(3 * latency), "disable": str(disabled)}
        tree.write({f"{place}/{file}": content for file, content in files.items()})
    tree.write({f"{CPUS}/cpuidle/current_driver": "intel_idle", f"{CPUS}/cpuidle/current_governor": "menu"})
    idle = take_idle(InventorySource(tree.root))
    assert (idle.driver, idle.governor) == ("intel_idle", "menu")
    assert {name: state.exit_latency_us for name, state in idle.states.items()} == {"POLL": 0, "C1E": 10, "C6": 133}
    assert [name for name, state in idle.states.items() if state.disabled] == ["C6"]


def test_cpus_that_are_set_apart_are_listed(tree: Tree) -> None:
    tree.cpus(sockets=1, cores=4, threads=1, caches=False)
    tree.write({f"{CPUS}/isolated": "2-3", f"{CPUS}/nohz_full": "(null)"})
    cpu = take_cpu(InventorySource(tree.root))
    assert (cpu.isolated, cpu.nohz_full, cpu.offline) == ("2-3", "", "")


def test_mitigations_are_in_the_kernels_words(tree: Tree) -> None:
    tree.write({f"{CPUS}/vulnerabilities/meltdown": "Mitigation: PTI"})
    assert take_mitigations(InventorySource(tree.root)) == {"meltdown": "Mitigation: PTI"}


@given(st.sets(st.integers(0, 1000)))
def test_a_list_of_cpus_is_read_as_it_was_written(cpus: set[int]) -> None:
    assert parse_kernel_cpus(cpu_list(cpus)) == sorted(cpus)


@given(st.text())
def test_any_text_is_some_list_of_cpus(text: str) -> None:
    assert parse_kernel_cpus(cpu_list(parse_kernel_cpus(text))) == parse_kernel_cpus(text)

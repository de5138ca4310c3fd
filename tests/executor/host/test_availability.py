"""Reasons why a tunable cannot be changed are said in words; on made-up machines, and on this one."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.executor.host.availability import (
    HostMachine,
    instances_here,
    why_no_weight,
    why_not_there,
    why_not_writable,
)

OPTIONS = "CONFIG_NUMA=y\nCONFIG_COMPACTION=y\n# CONFIG_LRU_GEN is not set\nCONFIG_IOSCHED_BFQ=m\n"
ROOT_CAPABILITIES = "CapEff:\t000001ffffffffff\n"
DEBUGFS = "debugfs /sys/kernel/debug debugfs rw,relatime 0 0\n"


class PlayedEthtool:
    """eth0 has offloads, of which some are fixed, and rings; lo has nothing of it."""

    def driver(self, name: str) -> str | None:
        return None

    def features(self, name: str) -> dict[str, str] | None:
        features = {"rx-gro": "on", "rx-lro": "off, fixed", "tx-checksum-ipv4": "off, fixed", "tx-checksum-ipv6": "on"}
        return features | {"tx-scatter-gather": "on, fixed"} if name == "eth0" else None

    def rings(self, name: str) -> tuple[int, int, int, int] | None:
        return (256, 256, 256, 256) if name == "eth0" else None

    def channels(self, name: str) -> tuple[int, int, int, int] | None:
        return None

    def coalescing(self, name: str) -> tuple[int, int, int, int] | None:
        return None


Build = Callable[..., HostMachine]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A machine with these files (a value of ``None`` makes a file that can only be read)."""

    def make(release: str = "6.12.1", **more: str | bytes | None) -> HostMachine:
        files: dict[str, str | bytes | None] = {
            "proc/config.gz": gzip.compress(OPTIONS.encode()),
            "proc/self/status": ROOT_CAPABILITIES,
            "proc/self/mounts": DEBUGFS,
            "proc/sys/vm/swappiness": "60",
            "sys/block/sda/queue/scheduler": "[none] bfq",
            "sys/class/net/eth0/mtu": "1500",
            "sys/class/net/lo/mtu": "65536",
            **more,
        }
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else (content or "").encode())
            path.chmod(0o444 if content is None else 0o644)
        return HostMachine(tmp_path, ethtool=PlayedEthtool(), release=release)

    return make


def why(name: str, machine: HostMachine) -> str:
    return why_not_writable(catalogue(), catalogue().find_tunable(name), machine)


def test_nothing_is_in_the_way_of_a_file_that_can_be_written(build: Build) -> None:
    for name in ("vm.swappiness", "block.scheduler[sda]", "net.gro[eth0]", "net.ring_rx[eth0]", "nice"):
        assert why(name, build()) == ""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lru_gen.enabled", "its kernel was built without CONFIG_LRU_GEN"),
        ("vm.zone_reclaim_mode", "this machine does not have it"),
        ("block.scheduler[sdb]", "this machine has no block device sdb; it has sda"),
        ("net.mtu[wlan0]", "this machine has no network interface wlan0; it has eth0, lo"),
        ("irq.affinity[5]", "this machine has no interrupt 5; it has none"),
        ("block.scheduler", "block.scheduler requires an instance, one for each block device"),
        ("block.scheduler", "this machine has sda"),
        ("cpu.governor", "no CPU of this machine has it: its kernel was built without CONFIG_CPU_FREQ"),
        ("block.bfq.low_latency[sda]", "this machine does not have it"),
        ("net.lro[eth0]", "eth0 does not allow changes"),
        ("net.sg[eth0]", "eth0 does not allow changes"),
        ("net.gso[eth0]", "eth0 has no such feature"),
        ("net.gro[lo]", "lo has no such feature"),
        ("net.ring_rx[lo]", "lo does not report the size of its rings"),
        ("net.coalesce.rx-usecs[eth0]", "eth0 has no such parameter"),
        ("cpu.dma_latency_us", "there is no /dev/cpu_dma_latency"),
        ("cgroup.cpu.max", "/sys/fs/cgroup is not cgroup v2"),
        ("base_slice_ns", "this machine does not have it"),
        ("sched_min_granularity_ns", "kernels that have it: up to 6.5"),
        ("sched_min_granularity_ns", "This one has base_slice_ns, which is related but different"),
        ("block.async_depth[sda]", "kernels that have it: 7.0 and later"),
    ],
)
def test_what_is_not_there_says_why(build: Build, name: str, reason: str) -> None:
    assert reason in why(name, build())
    assert "\n" not in why(name, build())


def test_a_group_of_offloads_can_be_changed_if_one_of_it_can(build: Build) -> None:
    assert why("net.tx-checksum[eth0]", build()) == ""


def test_a_kernel_that_does_not_say_its_options_is_told_what_it_takes(build: Build) -> None:
    machine = build(**{"proc/config.gz": b"no archive"})
    assert machine.options is None
    assert "it requires a kernel with CONFIG_LRU_GEN" in why("lru_gen.enabled", machine)
    named = build(**{"proc/config.gz": b"", "boot/config-6.12.1": OPTIONS})
    assert "built without CONFIG_LRU_GEN" in why("lru_gen.enabled", named)


def test_debugfs_can_be_missing_forbidden_or_locked_down(build: Build) -> None:
    path = {"sys/kernel/debug/sched/base_slice_ns": "750000"}
    assert why("base_slice_ns", build(**path)) == ""
    assert "not mounted" in why("base_slice_ns", build(**{"proc/self/mounts": "proc /proc proc rw 0 0\n"}))
    common = build(**path, **{"proc/self/status": "CapEff:\t0000000000000000\n"})
    assert "for root only" in why("base_slice_ns", common)
    locked = build(**path, **{"sys/kernel/security/lockdown": "none [integrity] confidentiality\n"})
    assert "locked down (integrity)" in why("base_slice_ns", locked)
    assert why("vm.swappiness", locked) == ""
    free = build(**path, **{"sys/kernel/security/lockdown": "[none] integrity confidentiality\n"})
    assert why("base_slice_ns", free) == ""


def test_a_file_can_be_there_for_reading_only(build: Build) -> None:
    assert why("vm.swappiness", build(**{"proc/sys/vm/swappiness": None})) == "it can only be read"


def test_without_the_right_it_needs_root(build: Build) -> None:
    common = build(**{"proc/self/status": "CapEff:\t0000000000000000\n"})
    for name in ("net.gro[eth0]", "net.qdisc[eth0]", "fs.data"):
        assert why(name, common) == "needs root"


@pytest.mark.skipif(os.geteuid() == 0, reason="only for an ordinary user: root writes everywhere")
def test_a_file_of_somebody_else_needs_root() -> None:
    assert why("vm.swappiness", HostMachine()) == "needs root"


def test_control_groups_can_be_of_either_version(build: Build) -> None:
    machine = build(**{"sys/fs/cgroup/cgroup.controllers": "cpu memory\n"})
    assert why("cgroup.cpu.max", machine) == ""
    assert "no controller io" in why("cgroup.io.weight", machine)


def test_a_control_groups_weight_takes_cgroup_v2_with_its_controller(build: Build) -> None:
    assert "not cgroup v2" in why_no_weight(build())
    assert "no controller cpu" in why_no_weight(build(**{"sys/fs/cgroup/cgroup.controllers": "memory io\n"}))
    assert why_no_weight(build(**{"sys/fs/cgroup/cgroup.controllers": "cpu memory\n"})) == ""


def test_every_entry_is_judged_on_this_machine_without_failing() -> None:
    machine = HostMachine()
    for tunable in catalogue().tunables.values():
        instances = instances_here(catalogue(), tunable, machine.version)
        for variant in [catalogue().instance(tunable, which) for which in instances] or [tunable]:
            absence = why_not_there(catalogue(), variant, machine)
            assert absence == absence.strip()
            if instances and not absence.startswith("net."):
                where = variant.place_in(machine.version)
                assert not where or not where.path or not absence or absence.startswith(("needs root", "debugfs")), (
                    variant.name
                )

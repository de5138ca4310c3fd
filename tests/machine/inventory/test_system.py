"""Kernel, memory, virtualisation, limits and software of this machine and of others."""

from __future__ import annotations

import gzip
import os
import platform
import resource
from pathlib import Path

import pytest

from ajuste.machine.inventory.inventory import Inventory, take_inventory
from ajuste.machine.inventory.processor import take_memory
from ajuste.machine.inventory.software import take_kernel, take_limits, take_software, take_virtualisation
from ajuste.machine.inventory.source import InventorySource
from tree import Tree

CLOCKS = "sys/devices/system/clocksource/clocksource0/available_clocksource"


@pytest.fixture(scope="module")
def here() -> Inventory:
    return take_inventory()


def test_the_kernel_is_the_one_that_runs(here: Inventory) -> None:
    assert here.kernel.release == platform.release()
    assert here.kernel.build == platform.version()
    assert here.kernel.settings["vm.max_map_count"] == Path("/proc/sys/vm/max_map_count").read_text().strip()


def test_memory_and_limits_are_what_the_system_calls_say(here: Inventory) -> None:
    # MemTotal, which sysconf(3) rounds down to pages.
    assert here.memory.total_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert here.limits.resources["open files"].split()[0] == str(soft)
    assert str(hard) in here.limits.resources["open files"]
    affinity = os.sched_getaffinity(0)
    assert here.limits.allowed_cpus is not None
    assert len(affinity) <= (here.cpu.cpus or 0)


@pytest.mark.parametrize(
    ("release", "scheduler"),
    [("5.10.0-34-amd64", "CFS"), ("6.1.0-30-amd64", "CFS"), ("6.6.1", "EEVDF"), ("7.1-rc3", "EEVDF")],
)
def test_the_scheduler_is_that_of_the_version(tree: Tree, release: str, scheduler: str) -> None:
    tree.write({"proc/sys/kernel/osrelease": release})
    assert take_kernel(InventorySource(tree.root)).scheduler == scheduler


def test_a_scheduler_in_bpf_is_named(tree: Tree) -> None:
    tree.write({"proc/sys/kernel/osrelease": "6.12.1", "sys/kernel/sched_ext/state": "enabled"})
    tree.write({"sys/kernel/sched_ext/root/ops": "lavd"})
    assert take_kernel(InventorySource(tree.root)).scheduler == "EEVDF, sched_ext lavd"


CONFIG = b"""#
# CONFIG_PREEMPT_NONE is not set
CONFIG_PREEMPT_VOLUNTARY=y
CONFIG_HZ=300
CONFIG_LOCALVERSION="-bobs-own"
"""


def test_options_are_read_from_where_the_configuration_is(tree: Tree) -> None:
    tree.write({"proc/sys/kernel/osrelease": "6.1.0", "boot/config-6.1.0": CONFIG})
    kernel = take_kernel(InventorySource(tree.root))
    assert kernel.options_from == "/boot/config"
    assert (kernel.options["HZ"], kernel.options["PREEMPT_NONE"], kernel.options["PREEMPT_VOLUNTARY"]) == (
        "300",
        "n",
        "y",
    )
    assert kernel.preemption == "voluntary"
    assert "bob" not in str(kernel.options)
    tree.write({"proc/config.gz": gzip.compress(b"CONFIG_HZ=1000\nCONFIG_PREEMPT_RT=y\n")})
    kernel = take_kernel(InventorySource(tree.root))
    assert (kernel.options_from, kernel.options["HZ"]) == ("/proc/config.gz", "1000")
    assert kernel.preemption == "full real-time (PREEMPT_RT)"


def test_without_a_configuration_it_says_so(tree: Tree) -> None:
    kernel = take_kernel(InventorySource(tree.root))
    assert kernel.options == {}
    assert kernel.unknown["options_from"] == "neither /proc/config.gz nor /boot/config can be read"
    assert kernel.unknown["scheduler_features"] == "needs root and debugfs"


def test_the_command_line_says_what_matters_and_nothing_that_identifies(tree: Tree) -> None:
    line = (
        "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=1f7b0f4e-9c11-4b71-93f0-3c6f1f0a2b3c ro quiet isolcpus=2-3 hunter2 "
        "ip=10.0.0.7::10.0.0.1 mitigations=off nfsroot=server:/bob memmap=0011aabbccddeeff00 "
        'dyndbg="file bob.c +p" console=ttyS0 console=tty0 -- --password secret'
    )
    tree.write({"proc/cmdline": line})
    words = take_kernel(InventorySource(tree.root)).command_line
    assert {name: words[name] for name in ("isolcpus", "mitigations", "quiet", "console")} == {
        "isolcpus": "2-3",
        "mitigations": "off",
        "quiet": "",
        "console": "ttyS0 tty0",
    }
    assert (words["root"], words["ip"], words["memmap"], words["other words"]) == ("…", "…", "…", "1")
    for word in ("1f7b0f4e", "hunter2", "10.0.0", "server", "bob", "secret", "password", "0011aabb"):
        assert word not in str(words)


def test_memory_of_another_machine(tree: Tree) -> None:
    tree.write(
        {
            "proc/meminfo": "MemTotal:       16000000 kB\nMemFree: 12 kB\nSwapTotal:       2000000 kB",
            "proc/swaps": "Filename Type Size Used Priority\n/dev/zram0 partition 1048576 0 100\n"
            "/home/bob/swapfile file 2097152 5 -2",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
            "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "512",
            "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "1",
            "sys/kernel/mm/ksm/run": "1",
        }
    )
    memory = take_memory(InventorySource(tree.root))
    assert (memory.total_bytes, memory.swap_bytes) == (16000000 * 1024, 2000000 * 1024)
    assert memory.swaps == {"zram": "1024 MiB, priority 100", "file": "2048 MiB, priority -2"}
    assert memory.transparent_huge_pages == "madvise"
    assert memory.huge_pages == {"2 MiB": 512, "1 GiB": 1}
    assert memory.same_page_merging == "on"
    assert memory.unknown["zswap"] == "not offered by this kernel"


GUEST = "flags\t\t: fpu vme hypervisor sse2"
REAL = "flags\t\t: fpu vme sse2"


@pytest.mark.parametrize(
    ("files", "machine"),
    [
        ({"proc/cpuinfo": REAL, "sys/class/dmi/id/sys_vendor": "LENOVO"}, "none"),
        ({"proc/cpuinfo": REAL, "sys/class/dmi/id/sys_vendor": "Oracle Corporation"}, "none"),
        ({"proc/cpuinfo": GUEST, "sys/class/dmi/id/product_name": "VirtualBox"}, "oracle"),
        ({"proc/cpuinfo": GUEST, "sys/class/dmi/id/sys_vendor": "QEMU"}, "qemu"),
        ({"proc/cpuinfo": GUEST, "sys/class/dmi/id/sys_vendor": "Amazon EC2"}, "amazon"),
        ({"proc/cpuinfo": GUEST, CLOCKS: "tsc kvm-clock acpi_pm"}, "kvm"),
        ({"proc/cpuinfo": GUEST, CLOCKS: "hyperv_clocksource_tsc_page hyperv_clocksource"}, "microsoft"),
        ({"proc/cpuinfo": GUEST}, "a hypervisor that does not say its name"),
        ({"proc/cpuinfo": "vendor_id : User Mode Linux"}, "uml"),
    ],
)
def test_a_virtual_machine_is_told_from_a_real_one(tree: Tree, files: dict[str, str], machine: str) -> None:
    assert take_virtualisation(InventorySource(tree.write(files).root)).machine == machine


@pytest.mark.parametrize(
    ("files", "container"),
    [
        ({"proc/1/environ": b"HOME=/\0TERM=linux\0"}, "none"),
        ({"proc/1/environ": b"HOME=/\0container=lxc\0"}, "lxc"),
        ({".dockerenv": ""}, "docker"),
        ({"run/.containerenv": ""}, "podman"),
        ({"run/systemd/container": "systemd-nspawn"}, "systemd-nspawn"),
        ({"proc/sys/kernel/osrelease": "5.15.90.1-microsoft-standard-WSL2"}, "wsl"),
    ],
)
def test_a_container_is_known_by_what_its_manager_leaves(
    tree: Tree, files: dict[str, str | bytes], container: str
) -> None:
    assert take_virtualisation(InventorySource(tree.write(files).root)).container == container


@pytest.mark.parametrize(("line", "seen"), [("cpu  1 2 3 4 5 6 7 0 0 0", False), ("cpu  1 2 3 4 5 6 7 12 0 0", True)])
def test_stolen_time_is_seen(tree: Tree, line: str, seen: bool) -> None:
    assert take_virtualisation(InventorySource(tree.write({"proc/stat": line}).root)).steal_seen is seen


def test_the_tightest_limit_of_all_groups_counts(tree: Tree) -> None:
    tree.write(
        {
            "proc/self/cgroup": "0::/user.slice/user-1000.slice/job",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory pids",
            "sys/fs/cgroup/user.slice/cpu.max": "150000 100000",
            "sys/fs/cgroup/user.slice/user-1000.slice/cpu.max": "max 100000",
            "sys/fs/cgroup/user.slice/user-1000.slice/memory.max": "1073741824",
            "sys/fs/cgroup/user.slice/user-1000.slice/job/memory.max": "max",
            "sys/fs/cgroup/user.slice/user-1000.slice/job/cpu.weight": "50",
            "sys/fs/cgroup/user.slice/user-1000.slice/job/pids.max": "100",
        }
    )
    limits = take_limits(InventorySource(tree.root))
    assert limits.cgroup_version == "2"
    assert (limits.cpu_limit, limits.cpu_weight) == (1.5, 50)
    assert (limits.memory_limit_bytes, limits.process_limit) == (1 << 30, 100)


def test_limits_of_the_first_version_are_understood_too(tree: Tree) -> None:
    tree.write(
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/",
            "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "50000",
            "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "268435456",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        }
    )
    limits = take_limits(InventorySource(tree.root))
    assert (limits.cgroup_version, limits.cpu_limit, limits.memory_limit_bytes) == ("1", 0.5, 268435456)
    assert limits.unknown["process_limit"] == "no limit"
    assert "abc" not in limits.model_dump_json()


def test_programs_are_started_only_when_asked_for(tree: Tree) -> None:
    tree.write({"etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"'})
    software = take_software(InventorySource(tree.root), programs=False)
    assert software.system == "Debian GNU/Linux 12 (bookworm)"
    assert software.python == platform.python_version()
    assert software.unknown == {"qemu": "not asked for"}

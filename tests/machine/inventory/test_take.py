"""The whole inventory: of this machine without its names, and of machines whose files say anything at all."""

from __future__ import annotations

import json
import os
import platform
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ajuste.machine.inventory.inventory import Inventory, take_inventory
from tree import CPUS, Tree

FILES = (
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/swaps",
    "proc/cmdline",
    "proc/stat",
    "proc/modules",
    "proc/config.gz",
    "proc/self/limits",
    "proc/self/cgroup",
    "proc/self/status",
    "proc/self/mountinfo",
    "proc/1/environ",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/tainted",
    "proc/sys/vm/swappiness",
    "etc/os-release",
    f"{CPUS}/online",
    f"{CPUS}/isolated",
    f"{CPUS}/smt/control",
    f"{CPUS}/cpu0/topology/thread_siblings_list",
    f"{CPUS}/cpu0/cache/index0/level",
    f"{CPUS}/cpu0/cache/index0/size",
    f"{CPUS}/cpu0/cache/index0/shared_cpu_list",
    f"{CPUS}/cpu0/cpuidle/state0/name",
    f"{CPUS}/cpufreq/policy0/scaling_governor",
    f"{CPUS}/cpufreq/policy0/affected_cpus",
    f"{CPUS}/intel_pstate/no_turbo",
    f"{CPUS}/vulnerabilities/meltdown",
    "sys/devices/system/node/node0/meminfo",
    "sys/devices/system/node/node0/distance",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "sys/kernel/debug/sched/features",
    "sys/kernel/debug/sched/preempt",
    "sys/kernel/security/lockdown",
    "sys/block/sda/size",
    "sys/block/sda/queue/scheduler",
    "sys/block/sda/device/model",
    "sys/class/net/eth0/device/uevent",
    "sys/class/net/eth0/speed",
    "sys/class/dmi/id/product_name",
    "sys/fs/cgroup/cgroup.controllers",
    "sys/fs/cgroup/cpu.max",
)

HOSTILE = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(lambda text: text.encode(errors="surrogatepass")),
    st.sampled_from(
        [
            b"",
            b"\0\0\0",
            b"\xff\xfe\x1b[2J",
            b"9" * 5000,
            b"-1",
            b"0-4294967295",
            b"0-99999,7-3,,-",
            b"[a] [b]",
            b"0::/../../../../etc\n",
            b"0::" + b"/x" * 500,
            b"MemTotal: 99999999999999999999999 kB",
            b"36 35 98:0 / /mnt\\777 rw - ext4 x rw,=,a=b=c,\xff",
            b"Max open files            1024                 unlimited            files",
        ]
    ),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.dictionaries(st.sampled_from(FILES), HOSTILE, max_size=len(FILES)))
def test_whatever_the_files_say_there_is_an_inventory(
    tmp_path_factory: pytest.TempPathFactory, contents: dict[str, bytes]
) -> None:
    tree = Tree(tmp_path_factory.mktemp("hostile")).write(contents)
    taken = take_inventory(tree.root)
    assert Inventory.model_validate_json(taken.model_dump_json()) == taken


def test_a_machine_without_any_file_has_an_inventory_that_says_so(tree: Tree) -> None:
    taken = take_inventory(tree.root)
    assert taken.cpu.model is None
    assert taken.cpu.unknown["model"] == "not reported by this processor"
    assert taken.disks == {}


@pytest.mark.parametrize("path", ["proc/cpuinfo", "proc/meminfo", "sys/block/sda/size", "proc/cmdline"])
def test_a_pipe_or_a_directory_in_place_of_a_file_stops_nothing(tree: Tree, path: str) -> None:
    place = tree.root / path
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    assert take_inventory(tree.root).memory.total_bytes is None
    place.unlink()
    place.mkdir()
    assert take_inventory(tree.root).memory.total_bytes is None


@pytest.mark.skipif(os.geteuid() == 0, reason="only for an ordinary user: root reads everything")
def test_what_needs_root_says_so(tree: Tree) -> None:
    tree.write({"proc/1/environ": b"container=lxc\0"})
    (tree.root / "proc/1/environ").chmod(0)
    assert take_inventory(tree.root).virtualisation.unknown["container"] == "needs root"


def test_every_field_without_a_value_has_a_reason() -> None:
    def check(path: str, mapping: dict[str, object]) -> None:
        unknown = mapping.get("unknown")
        for name, value in mapping.items():
            if isinstance(value, dict) and name != "unknown":
                check(f"{path}.{name}", value)
            elif value is None:
                assert isinstance(unknown, dict), f"{path}.{name}"
                assert unknown.get(name), f"{path}.{name} has neither value nor reason"

    check("", json.loads(take_inventory().model_dump_json()))


def test_the_same_machine_has_the_same_inventory_twice() -> None:
    # Settings, disks and mounts can be changed by others meanwhile.
    first, other = take_inventory(), take_inventory()
    assert (first.cpu, first.caches, first.numa, first.idle) == (other.cpu, other.caches, other.numa, other.idle)
    assert (first.mitigations, first.software, first.virtualisation) == (
        other.mitigations,
        other.software,
        other.virtualisation,
    )


def names_of_this_machine() -> list[str]:
    """Return what must not be told: host name, addresses, serial numbers, identifiers, and this user's directories."""
    names = [platform.node(), socket.gethostname(), str(Path.home()), str(Path.cwd())]
    for pattern in (
        "sys/class/net/*/address",
        "sys/block/*/serial",
        "sys/block/*/device/serial",
        "sys/block/*/wwid",
        "sys/class/dmi/id/*serial",
        "sys/class/dmi/id/*uuid",
        "etc/machine-id",
        "proc/sys/kernel/random/boot_id",
    ):
        for path in Path("/").glob(pattern):
            try:
                names.append(path.read_text().strip())
            except OSError:
                continue
    trivial = {"", "/", "vm", "00:00:00:00:00:00", "None", "0", "localhost", "debian"}
    return [name for name in names if name not in trivial and len(name) > 3]


def test_nothing_names_this_machine_or_its_user() -> None:
    document = take_inventory().model_dump_json()
    names = names_of_this_machine()
    assert names
    for name in names:
        assert name not in document

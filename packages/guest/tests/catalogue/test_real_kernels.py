"""The catalogue against the kernels themselves: every tunable is where it says, and every knob there is, is in it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.place import initial_value, needed_options
from ajuste.executor.host.availability import Current, current_values
from ajuste.machine.home import home
from ajuste.model.event import Output
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Choice, Command, FileLocation, Plan, Read, Write
from ajuste.model.results import Clock
from ajuste.model.tunable import WORKLOAD_KINDS, Tunable, same_value
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.kernel.fetch import fetch_kernel
from tiers import slow

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600)]

DISK, INTERFACE = "nullb0", "dummy0"
QUEUE = f"/sys/block/{DISK}/queue"
INSTANCES = {"disk": DISK, "interface": INTERFACE, "irq": "4"}
MODULES = ("null_blk", "dummy", "bfq", "kyber-iosched")
SCHEDULERS = ("mq-deadline", "kyber", "bfq")

NO_HARDWARE = ("cpu.idle_state_disable", "net.xps_cpus")

FOLDERS = (
    *("/proc/sys/kernel", "/sys/kernel/debug", "/proc/sys/vm", "/proc/sys/net/core", "/proc/sys/net/ipv4"),
    *("/proc/sys/net/mptcp", "/sys/kernel/mm", f"{QUEUE}/", f"/sys/class/net/{INTERFACE}/"),
)
KNOB = "|".join(
    (
        r"(/proc/sys/kernel|/sys/kernel/debug)/(sched|numa_balancing)[^/]*(/.*)?",
        r"/proc/sys/(vm|net/core|net/mptcp)/[^/]*",
        r"/proc/sys/net/ipv4/(tcp|udp)_[^/]*",
        r"/sys/kernel/mm/(transparent_hugepage|ksm|hugepages|lru_gen|swap)/.*",
        rf"{QUEUE}/[^/]*",
        rf"/sys/class/net/{INTERFACE}/([^/]*|queues/.*)",
    )
)

# What the kernel only shows there, and files whose words are tunables of their own.
NO_TUNABLES = (
    r"/sys/kernel/debug/sched/debug",
    r"/sys/kernel/debug/sched_features",
    r"/sys/kernel/debug/sched/features",
    r".*/(sched_domain|sched/domains)/cpu\d+/domain\d+/(name|flags|groups_flags|level|group_asym_prefer_cpu)",
)

# Commands, rights, what to do in emergencies, names of things, and a second way to write what is in the catalogue.
LEFT_OUT = (
    r"/proc/sys/vm/(block_dump|compact_memory|drop_caches|stat_refresh|numa_zonelist_order|nr_hugepages_mempolicy)",
    r"/proc/sys/vm/(hugetlb_shm_group|legacy_va_layout|mmap_.*|memfd_noexec|unprivileged_userfaultfd|oom_.*|panic_.*)",
    r"/proc/sys/vm/(memory_failure_.*|enable_soft_offline|movable_gigantic_pages)",
    r"/proc/sys/net/core/(bpf_jit_(harden|kallsyms|limit)|message_.*|warnings|xfrm_.*|netdev_unregister_timeout_secs)",
    r"/proc/sys/net/core/(devconf_inherit_init_net|fb_tunnels_only_for_init_net|tstamp_allow_data|rps_default_mask)",
    r"/proc/sys/net/core/(dev_weight_[rt]x_bias|mem_pcpu_rsv|bypass_prot_mem|qdisc_max_burst|txq_reselection_ms)",
    r"/proc/sys/net/ipv4/tcp_(fastopen_key|stdurg|rfc1337|workaround_signed_windows|fack)",
    r"/proc/sys/net/ipv4/tcp_(low_latency|(rx|tx)_skb_cache|min_snd_mss|mtu_probe_floor|probe_.*|child_ehash_entries)",
    r"/proc/sys/net/ipv4/tcp_(fwmark_accept|l3mdev_accept|migrate_req|reflect_tos|ecn_option.*|comp_sack_rtt_percent)",
    r"/proc/sys/net/ipv4/(tcp_rcvbuf_low_rtt|udp_(l3mdev_accept|child_hash_entries))",
    r"/proc/sys/net/mptcp/add_addr_v6_port_drop_ts",
    r"/sys/kernel/mm/hugepages/hugepages-\d+kB/(demote.*|nr_hugepages_mempolicy)",
    rf"{QUEUE}/(io_poll_delay|stable_writes|write_zeroes_unmap_max_bytes|zoned_qd1_writes)",
    rf"/sys/class/net/{INTERFACE}/(queues/.*/(xps_rxqs|limit|hold_time)|uevent|carrier|dormant|flags|ifalias|netdev_group|proto_down|testing|address|dev_.*)",
)


@dataclass(frozen=True)
class Guest:
    """State of one kernel in one boot: values by tunable, the writable files with its knobs, its features' words,
    and the files of each I/O scheduler with their values.
    """

    version: KernelVersion
    cpus: int
    options: frozenset[str]
    values: dict[str, Current]
    files: tuple[str, ...]
    features: frozenset[str]
    schedulers: dict[str, dict[str, str]]


@pytest.fixture(
    scope="module",
    params=[
        ("debian:5.10", 1),
        *slow(("debian:6.1", 2), ("debian:6.12", 1), ("debian:7", 1)),
    ],
    ids=lambda case: f"{case[0]} with {case[1]} CPU",
)
def guest(request: pytest.FixtureRequest) -> Iterator[Guest]:
    spec, cpus = request.param
    find, grep = (shutil.which(name) for name in ("find", "grep"))
    assert find, "findutils are needed"
    assert grep, "grep is needed"
    image = fetch_kernel(spec, home())
    assert image.config, "a packaged kernel has its build options beside it"
    config = image.config.read_text()
    modules = (*MODULES, *(("mq-deadline",) if "CONFIG_MQ_IOSCHED_DEADLINE=m" in config else ()))
    files = GuestFiles(programs=(Path(find), Path(grep)), modules=modules)
    traces = ("-path", "/sys/kernel/debug/tracing", "-prune")
    knobs = ("-regextype", "posix-extended", "-type", "f", "-perm", "/222", "-regex", KNOB, "-print")
    listing = Command(argv=(find, *FOLDERS, *traces, "-o", *knobs))
    clock: Clock = "virtual" if cpus == 1 else "wall"
    with GuestExecutor(image, clock=clock, cpus=cpus, files=files, home=home()) as target:
        paths = [path.replace("//", "/") for path in output(target, Plan(id="list", workload=listing)).split()]
        words = [path for path in paths if path.endswith(("sched/features", "sched_features"))]
        read = target.run(
            Plan(id="words", reads=tuple(Read(tunable="words", location=FileLocation(path=p)) for p in words))
        )
        yield Guest(
            version=image.version,
            cpus=cpus,
            options=frozenset(re.findall(r"^CONFIG_(\w+)=[ym]$", config, re.MULTILINE)),
            values=current_values(target, [one_of(tunable, cpus) for tunable in present(image.version)]),
            files=tuple(paths),
            features=frozenset(
                word.removeprefix("NO_") for event in read.events if event.event == "read" for word in value(event)
            ),
            schedulers={name: scheduler_files(target, name, grep) for name in SCHEDULERS},
        )


def output(target: GuestExecutor, plan: Plan) -> str:
    events = target.run(plan).events
    return "".join(event.text for event in events if isinstance(event, Output) and event.stream == "stdout")


def scheduler_files(target: GuestExecutor, name: str, grep: str) -> dict[str, str]:
    """The files of the scheduler ``name`` with their values, after it was chosen for the disk."""
    choose = Write(tunable="scheduler", location=Choice(path=f"{QUEUE}/scheduler"), value=name)
    show = Command(argv=(grep, "-rs", "", f"{QUEUE}/iosched"))
    lines = output(target, Plan(id=name, writes=(choose,), workload=show)).splitlines()
    return dict(line.split(":", 1) for line in lines)


def value(event: Any) -> list[str]:
    assert event.value, event.error
    return event.value.split()


def present(version: KernelVersion) -> list[Tunable]:
    """Return those that such kernels have, without what is made for a trial."""
    return [
        tunable
        for tunable in catalogue().tunables.values()
        if (where := tunable.place_in(version)) and where.kind not in WORKLOAD_KINDS
    ]


def one_of(tunable: Tunable, cpus: int) -> Tunable:
    """The instance of the last CPU, and of what the guest has."""
    examples = {name: part.example for name, part in catalogue().parts.items()}
    return tunable.instance(examples | INSTANCES | {"cpu": f"cpu{cpus - 1}"}) if tunable.parts else tunable


def expected(tunable: Tunable, guest: Guest) -> bool:
    """Return whether the guest must have it: its build options are on, and it has the hardware."""
    where = tunable.place_in(guest.version)
    assert where is not None
    if tunable.subsystem == "scheduler-domains" and (guest.cpus == 1 or "sched_verbose" in where.note):
        return False
    if tunable.subsystem == "cpu-frequency" or where.kind in ("ring", "coalesce"):
        return False
    if tunable.name.startswith("net.bql_") and not guest.version < KernelVersion(major=6, minor=9):
        return False
    if tunable.name in NO_HARDWARE or (tunable.name == "cpu.online" and guest.cpus == 1):
        return False
    return set(needed_options(where, guest.version)) <= guest.options


def test_every_tunable_is_readable_where_the_catalogue_says_and_no_other(guest: Guest) -> None:
    machine = [tunable for tunable in present(guest.version) if tunable.subsystem != "block-schedulers"]
    there = {tunable.name for tunable in machine if expected(tunable, guest)}
    assert len(there) > 200
    readable = {tunable.name for tunable in machine if guest.values[one_of(tunable, guest.cpus).name].value is not None}
    problems = {name: current.problem for name, current in guest.values.items() if current.problem}
    assert readable == there, problems


def test_every_knob_of_the_kernel_is_in_the_catalogue(guest: Guest) -> None:
    known = [
        re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(where.path))
        for tunable in present(guest.version)
        if (where := tunable.place_in(guest.version))
    ]
    assert len(guest.files) > 200
    assert [path for path in guest.files if not re.fullmatch("|".join([*known, *NO_TUNABLES, *LEFT_OUT]), path)] == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_setting_of_an_io_scheduler_is_in_the_catalogue_with_its_value(guest: Guest, scheduler: str) -> None:
    settings = [t for t in present(guest.version) if t.name.startswith(f"block.{scheduler}.")]
    places = {one_of(t, guest.cpus).place_in(guest.version): t for t in settings}
    # kyber only shows its async_depth.
    files = guest.schedulers[scheduler]
    compared = {path: files[path] for path in files if scheduler != "kyber" or not path.endswith("async_depth")}
    assert {where.path for where in places if where} == set(compared)
    initial_values = {where.path: where.initial for where in places if where and where.initial}
    assert initial_values == {path: compared[path] for path in initial_values}


def test_every_feature_of_the_kernel_is_in_the_catalogue_and_no_other(guest: Guest) -> None:
    known = {where.flag for t in present(guest.version) if (where := t.place_in(guest.version)) and where.flag}
    assert guest.features == known


def test_the_values_at_boot_are_those_of_the_rules(guest: Guest) -> None:
    initial_values = {
        tunable.name: initial
        for tunable in present(guest.version)
        if tunable.subsystem != "block-schedulers"
        and expected(tunable, guest)
        and (initial := initial_value(tunable, guest.version, guest.cpus))
    }
    assert len(initial_values) > 40
    current = {
        name: guest.values[one_of(catalogue().tunables[name], guest.cpus).name].value or "" for name in initial_values
    }
    assert {name: value for name, value in current.items() if not same_value(value, initial_values[name])} == {}


def test_a_value_is_one_that_can_be_asked_for(guest: Guest) -> None:
    for tunable in present(guest.version):
        current = guest.values[one_of(tunable, guest.cpus).name].value
        # An SMT control of cores with one thread says so, and nothing can be asked for.
        if current and tunable.name != "cpu.smt":
            text = f"0x{current.replace(',', '')}" if tunable.type == "cpu-mask" else current
            assert same_value(catalogue().check_level(tunable, text, guest.version), current), tunable.name

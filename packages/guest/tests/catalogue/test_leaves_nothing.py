"""Writing and restoring each tunable leaves every setting of a real kernel as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.executor.host.availability import current_values
from ajuste.machine.home import home
from ajuste.model.event import Output
from ajuste.model.kernel import KernelImage, KernelVersion
from ajuste.model.plan import Attributes, Choice, Command, Location, Plan, Read, User, Write
from ajuste.model.tunable import DEVICE_KINDS, WORKLOAD_KINDS, Tunable
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.kernel.fetch import fetch_kernel
from left_behind import others, settled

pytestmark = [
    pytest.mark.slow,
    pytest.mark.vm,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not Path("/bin/busybox").exists(), reason="busybox is not installed"),
]

BUSYBOX = Path("/bin/busybox")
DISK, INTERFACE, CPUS = "nullb0", "dummy0", 2
INSTANCES = {"disk": DISK, "interface": INTERFACE, "irq": "4", "cpu": f"cpu{CPUS - 1}"}
MODULES = {
    "null_blk": "BLK_DEV_NULL_BLK",
    "dummy": "DUMMY",
    "bfq": "IOSCHED_BFQ",
    "kyber-iosched": "MQ_IOSCHED_KYBER",
    "mq-deadline": "MQ_IOSCHED_DEADLINE",
    "tcp_bbr": "TCP_CONG_BBR",
    "tcp_dctcp": "TCP_CONG_DCTCP",
    "tcp_htcp": "TCP_CONG_HTCP",
}
SCHEDULED = re.compile(r"block\.(bfq|kyber|mq-deadline)\.")

GROUP = 24
"""Number of tunables that are written and restored between two looks at everything."""

OF_TRIALS, CONTROL = "98", "99"
"""Groups of their own: what is made for a trial, and a tunable whose companion is kept from the agent."""

# Every file of /proc/sys, every file of /sys that can be written (but for the tracer's own and for counts of memory
# caches), the scheduler's in debugfs, where interrupts go, and the control groups.
SNAPSHOT = r"""
busybox mkdir -p /tmp/b /tmp/journals && busybox --install -s /tmp/b && export PATH=/tmp/b
snapshot() {
  {
    find /proc/sys -type f
    find /proc/irq -type f -name '*affinity*'
    find /sys/kernel/debug/sched /sys/kernel/debug/sched_features -type f -perm /222 2>/dev/null
    find /sys \( -path /sys/kernel/debug -o -path /sys/kernel/tracing -o -path /sys/kernel/slab \) -prune -o \
      -type f -perm /222 -print
  } | xargs grep -s '' /dev/null | sed 's://:/:g' | sort > "$1"
}
"""
SCRIPT = (
    SNAPSHOT
    + r"""
echo "+cpu +memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
reads() { sed -n 's/.*"event":"read","at_ns":[0-9]*,//p' /tmp/said; }
# The kernel itself chooses another clock some time after it has come up, when it knows the processor's frequency.
clock=/sys/devices/system/clocksource/clocksource0/current_clocksource
for try in $(seq 600); do grep -q early $clock || break; sleep 0.1; done
snapshot /tmp/before
echo "files $(cut -d: -f1 /tmp/before | uniq | wc -l)"
/init serve --journal /tmp/journals < /study/reads > /tmp/said && reads >> /tmp/before
for plans in /study/plans/*; do
  /init serve --journal /tmp/journals < "$plans" > /tmp/said 2> /tmp/complaint
  echo "${plans##*/} wrote $(grep -c '"event":"written"' /tmp/said)"
  echo "${plans##*/} ran $(grep -c '"event":"exited".*"exit_code":0' /tmp/said)"
  snapshot /tmp/after
  reads >> /tmp/after
  diff /tmp/before /tmp/after | sed -n "/^\(---\|+++\) /d; s:^\([-+]\):${plans##*/} left \1:p"
  mv /tmp/after /tmp/before
done
"""
)


@dataclass(frozen=True)
class Tried:
    """``files`` were looked at, so many commands ``ran``. By group of tunables: how many writes the kernel took, and
    what was other after them. ``control`` is what was other after a tunable whose companion was kept from the agent.
    """

    files: int
    ran: int
    writes: Mapping[str, int]
    left: Mapping[str, list[str]]
    control: list[str]


@pytest.fixture(scope="module", params=["debian:5.10", "debian:6.12"])
def tried(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tried:
    image = fetch_kernel(request.param, home())
    assert image.config
    on = image.config.read_text()
    modules = tuple(name for name, option in MODULES.items() if f"CONFIG_{option}=m" in on)
    with guest(image, GuestFiles(programs=(BUSYBOX,), modules=modules)) as target:
        plans, reads = session_plans(target, image.version)
    folder = tmp_path_factory.mktemp("plans")
    names = {f"{at:02}": ", ".join(list(plans)[at * GROUP : (at + 1) * GROUP]) for at in range(-(-len(plans) // GROUP))}
    sessions = {
        f"plans/{at}": [*chain.from_iterable(plans[n] for n in group.split(", ")), reads] for at, group in names.items()
    }
    sessions |= {
        "reads": [reads],
        f"plans/{OF_TRIALS}": [of_a_trial(), reads],
        f"plans/{CONTROL}": [without_companion(image.version), reads],
    }
    files = {name: folder / name.replace("/", "-") for name in sessions}
    for name, session in sessions.items():
        files[name].write_text("".join(f"{plan.model_dump_json()}\n" for plan in session))
    with guest(image, GuestFiles(programs=(BUSYBOX,), modules=modules, study_files=files)) as target:
        return read(output_lines(target, SCRIPT), names)


def guest(image: KernelImage, files: GuestFiles) -> GuestExecutor:
    return GuestExecutor(image, clock="wall", cpus=CPUS, memory_mib=512, files=files, home=home())


def output_lines(target: GuestExecutor, script: str) -> list[str]:
    root = User(uid=0, gid=0, groups=())
    command = Command(argv=(str(BUSYBOX), "sh", "-c", script), environment={"PATH": "/bin"}, user=root)
    plan = Plan(id="said", workload=command, timeout_ns=1_200_000_000_000, output_limit_bytes=1 << 22)
    observation = target.run(plan)
    assert not observation.problem, observation.problem
    events = [event for event in observation.events if isinstance(event, Output)]
    assert not [event.text for event in events if event.stream == "stderr" and event.text]
    return "".join(event.text for event in events if event.stream == "stdout").splitlines()


def read(lines: list[str], names: Mapping[str, str]) -> Tried:
    writes: dict[str, int] = {}
    left: dict[str, list[str]] = {}
    files = ran = 0
    for line in lines:
        group, what, rest = [*line.split(" ", 2), ""][:3]
        if group == "files":
            files = int(what)
        elif what == "wrote":
            writes[group] = int(rest)
        elif what == "ran":
            ran += int(rest)
        elif settled(rest[1:]):
            left.setdefault(names.get(group, group), []).append(rest)
    control = left.pop(CONTROL, [])
    return Tried(files, ran, writes, left, control)


def of_a_trial() -> Plan:
    """A process with all that is made for it alone: a control group with limits, a policy, a place."""
    limits = {"cpu.max": "50000 100000", "memory.max": "67108864", "pids.max": "50"}
    attributes = Attributes(nice=5, policy="batch", affinity=(0,), cgroup_weight=50, cgroup_limits=limits)
    return Plan(id="trial", workload=Command(argv=(str(BUSYBOX), "true"), attributes=attributes))


def without_companion(version: KernelVersion) -> Plan:
    tunable = catalogue().find_tunable("vm.dirty_bytes")
    write = Write(tunable=tunable.name, location=place(tunable, version), value="67108864")
    return Plan(id="control", writes=(write,))


def session_plans(target: GuestExecutor, version: KernelVersion) -> tuple[dict[str, list[Plan]], Plan]:
    """Return by tunable a plan for each other value; and one that reads what only the interface itself tells."""
    every = {
        instance.name: instance for tunable in catalogue().tunables.values() if (instance := here(tunable, version))
    }
    current = current_values(target, list(every.values()))
    listing = output_lines(
        target, SNAPSHOT + "find /sys/block/ /sys/devices/system/cpu/ -type f; find /sys/block/*/ -type f"
    )
    files = sorted({path.replace("//", "/") for path in listing})

    def files_in(directory: str) -> list[str]:
        return [path for path in files if path.rpartition("/")[0] == directory]

    devices = [
        Read(tunable=instance.name, location=place(instance, version))
        for instance in every.values()
        if (where := instance.place_in(version)) and where.kind in DEVICE_KINDS
    ]
    plans: dict[str, list[Plan]] = {}
    for instance in every.values():
        chosen = scheduler_of(instance)
        value = current[instance.name].value
        if value is None and not chosen:
            continue
        companions = catalogue().companions(instance, version, files_in)
        level_plans = [
            Plan(
                id=f"{instance.entry} {level}",
                writes=(
                    *chosen_first(chosen, version, files_in),
                    Write(tunable=instance.name, location=place(instance, version), value=level, companions=companions),
                ),
            )
            for level in others(instance, value or "3", version, CPUS)
        ]
        if level_plans:
            plans[instance.entry] = level_plans
    return plans, Plan(id="devices", reads=tuple(devices))


def chosen_first(scheduler: str, version: KernelVersion, files_in: Callable[[str], Sequence[str]]) -> tuple[Write, ...]:
    """The settings of an I/O scheduler are there only while it is chosen."""
    if not scheduler:
        return ()
    choice = catalogue().find_tunable(f"block.scheduler[{DISK}]")
    location = Choice(path=f"/sys/block/{DISK}/queue/scheduler")
    companions = catalogue().companions(choice, version, files_in)
    return (Write(tunable=choice.name, location=location, value=scheduler, companions=companions),)


def scheduler_of(tunable: Tunable) -> str:
    match = SCHEDULED.match(tunable.name)
    return match[1] if match else ""


def here(tunable: Tunable, version: KernelVersion) -> Tunable | None:
    where = tunable.place_in(version)
    if where is None or where.kind in WORKLOAD_KINDS:
        return None
    examples = {name: part.example for name, part in catalogue().parts.items()}
    return tunable.instance(examples | INSTANCES) if tunable.parts else tunable


def place(tunable: Tunable, version: KernelVersion) -> Location:
    return catalogue().locate(tunable, version)  # type: ignore[return-value]


def test_restoring_puts_back_whatever_the_kernel_changed_along(tried: Tried) -> None:
    assert tried.left == {}


def test_all_settings_were_looked_at_and_most_tunables_written(tried: Tried) -> None:
    assert tried.files > 1500
    assert sum(tried.writes.values()) > 500
    assert tried.ran == 1
    assert all(count for group, count in tried.writes.items() if group != OF_TRIALS)


def test_what_is_left_would_be_found(tried: Tried) -> None:
    assert "-/proc/sys/vm/dirty_ratio:20" in tried.control
    assert "+/proc/sys/vm/dirty_ratio:0" in tried.control

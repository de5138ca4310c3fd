"""The plan: what one trial writes, runs and counts, in the form that the agent reads.

This module and ``native/agent/src/plan.rs`` describe the same JSON document. The files under ``contract/plan`` are
parsed, compared and written again by the tests of both sides, so that neither can drift from the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field, Strict

from ajuste.model.base import ClosedModel

CONTRACT_VERSION: Final = 1

Policy = Literal["other", "batch", "idle", "fifo", "rr"]

# Name of a network interface (IFNAMSIZ is 16 with the final zero byte).
DeviceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,14}$")]

# A control file of a cgroup v2 controller.
CgroupFile = Annotated[str, Field(pattern=r"^(cpu|memory|io|pids)\.[a-z]+(\.[a-z]+)*$")]

# Policies whose processes run before all others, by their priority (sched(7)).
REAL_TIME: Final = ("fifo", "rr")

# Sources of a sampler: /proc/vmstat, …, /proc/pressure/{cpu,io,memory}, /proc/stat; `process` reads the files of the
# workload's own process (stat, io, schedstat, status).
SamplerSource = Literal[
    "vmstat", "meminfo", "diskstats", "schedstat", "pressure", "softirqs", "interrupts", "stat", "process"
]

# The distance of a node from itself (ACPI 6.5, section 5.2.17, System Locality Information Table).
NEAREST: Final = 10

# QEMU's distance where none is named (hw/core/numa.c, NUMA_DISTANCE_DEFAULT).
USUAL_DISTANCE: Final = 20

# Farthest node that can be reached: 255 stands for a node that cannot.
FARTHEST: Final = 254

_Whole = Annotated[int, Strict()]


class FileLocation(ClosedModel):
    """A tunable that is a file of its own: a sysctl, a debugfs or sysfs file."""

    kind: Literal["file"] = "file"
    path: str


class Flag(ClosedModel):
    """A word in a file of words, as in ``/sys/kernel/debug/sched/features``: ``NAME`` is on, ``NO_NAME`` is off.

    Its value is ``"1"`` or ``"0"``; the agent writes ``NAME`` or ``NO_NAME``.
    """

    kind: Literal["flag"] = "flag"
    path: str
    name: str


class Choice(ClosedModel):
    """A file that lists its choices with the current one in brackets or parentheses: ``none (voluntary) full``."""

    kind: Literal["choice"] = "choice"
    path: str


class DeviceFeature(ClosedModel):
    """An offload of a network interface, by ethtool's own interface; ``name`` is the kernel's (netdev_features_strings)
    or ethtool's for a group (``tx-checksumming``). Its value is ``"1"`` or ``"0"``.
    """

    kind: Literal["feature"] = "feature"
    device: DeviceName
    name: str


class Ring(ClosedModel):
    """A ring size of a network interface (ETHTOOL_SRINGPARAM): ``name`` is rx, rx-mini, rx-jumbo or tx."""

    kind: Literal["ring"] = "ring"
    device: DeviceName
    name: Literal["rx", "rx-mini", "rx-jumbo", "tx"]


class Coalesce(ClosedModel):
    """An interrupt coalescing parameter (ETHTOOL_SCOALESCE); ``name`` as ``ethtool -C`` has it, such as rx-usecs."""

    kind: Literal["coalesce"] = "coalesce"
    device: DeviceName
    name: str


class Qdisc(ClosedModel):
    """The root queueing discipline of a network interface, by its kind, such as ``fq_codel`` (rtnetlink(7))."""

    kind: Literal["qdisc"] = "qdisc"
    device: DeviceName


class CpuLatency(ClosedModel):
    """The bound on wake-up latency from idle states, in µs: /dev/cpu_dma_latency, held open for the trial."""

    kind: Literal["latency"] = "latency"


class ServerSetting(ClosedModel):
    """A setting of a running server of this machine, by the ``name`` that the server has for it. ``address`` is its
    socket, or an address and port of the loopback interface.

    Redis and Valkey take it by CONFIG SET, PostgreSQL by ALTER SYSTEM and a reload of its configuration.
    """

    kind: Literal["redis", "postgresql"]
    address: str
    name: str


Location = Annotated[
    FileLocation | Flag | Choice | DeviceFeature | Ring | Coalesce | Qdisc | CpuLatency | ServerSetting,
    Field(discriminator="kind"),
]


def location_words(location: Location) -> str:
    """Return the place as a person finds it: a path, or what of which device."""
    match location:
        case Flag():
            return f"{location.path} ({location.name})"
        case FileLocation() | Choice():
            return location.path
        case Qdisc():
            return f"the root qdisc of {location.device}"
        case CpuLatency():
            return "/dev/cpu_dma_latency"
        case DeviceFeature() | Ring() | Coalesce():
            return f"{location.kind} {location.name} of {location.device}"
        case ServerSetting():
            return f"{location.name} of the {location.kind} at {location.address}"


class Read(ClosedModel):
    """A tunable whose value is reported before anything is written."""

    tunable: str
    location: Location


class Write(ClosedModel):
    """A tunable that gets ``value``; what was there before and what is read back afterwards are reported.

    ``companions`` are places that the kernel changes along with it (``vm.dirty_bytes`` zeroes ``vm.dirty_ratio``): on a
    host they are journalled and restored too.
    """

    tunable: str
    location: Location
    value: str
    companions: tuple[Location, ...] = ()


class Attributes(ClosedModel):
    """The attributes with which a process is run. ``None`` leaves what the kernel would do by itself.

    ``nice`` −20 … 19; ``priority`` 1 … 99, for ``fifo`` and ``rr`` only; ``affinity`` CPU numbers;
    ``cgroup_weight`` 1 … 10000, cgroup v2's ``cpu.weight`` of a group of the process's own; ``cgroup_limits`` are more
    files of that group, such as ``cpu.max`` or ``memory.max``, with their values.
    """

    nice: int | None = Field(default=None, ge=-20, le=19)
    policy: Policy | None = None
    priority: int | None = Field(default=None, ge=1, le=99)
    affinity: tuple[int, ...] | None = None
    cgroup_weight: int | None = Field(default=None, ge=1, le=10000)
    cgroup_limits: dict[CgroupFile, str] = Field(default_factory=dict)


class User(ClosedModel):
    """The user of a process, in numbers, with all supplementary groups."""

    uid: int = Field(ge=0, lt=2**32 - 1)
    gid: int = Field(ge=0, lt=2**32 - 1)
    groups: tuple[int, ...] = ()


class Command(ClosedModel):
    """A program with its arguments (no shell), its whole environment, and how it is run.

    The program finds the ``environment`` in this order; in its texts, U+10FF80 … U+10FFFF are the bytes 0x80 … 0xFF,
    where these are not UTF-8.
    ``user`` is whose process it becomes, after everything that needs more rights was done; the agent's if not given.
    """

    argv: tuple[str, ...] = Field(min_length=1)
    environment: dict[str, str] = Field(default_factory=dict)
    directory: str = "/"
    attributes: Attributes = Attributes()
    user: User | None = None


class Perturbation(ClosedModel):
    """The changes that a seed makes, so that replicates under the virtual clock are not one and the same trial.

    ``entropy`` is mixed into the kernel's random pool (other address-space layouts), ``environment_bytes`` pads the
    environment (other stack layouts; Mytkowicz et al., ASPLOS 2009), ``start_delay_ns`` moves the start against the
    timer tick.
    """

    entropy: int = Field(default=0, ge=0, lt=2**64)
    environment_bytes: int = Field(default=0, ge=0, le=65536)
    start_delay_ns: int = Field(default=0, ge=0)


class CpuPause(ClosedModel):
    """A CPU of a guest stands still from ``at_ns`` on for ``for_ns``, as it does on real machines while firmware or a
    hypervisor has it: what interrupts it waits until then. ``at_ns`` counts from when the
    agent said that the workload started.
    """

    cpu: int = Field(ge=0, le=15, description="The number of the CPU.")
    at_ns: int = Field(ge=0, lt=2**53, description="When it stands still, in ns since the workload started.")
    for_ns: int = Field(ge=1, le=10**10, description="For how long, in ns.")


class Sampler(ClosedModel):
    """A sampler: it reads one source every ``interval_ns`` from before the workload's start until the end of the
    observation.

    ``keys`` choose figures of the source: a name, or its beginning followed by ``*``. The names of each source's
    figures are in docs/reference/sampler-figures.md.
    """

    source: SamplerSource
    keys: tuple[str, ...] = Field(min_length=1)
    interval_ns: int = Field(ge=1_000_000)


def chooses(key: str, figure: str) -> bool:
    """Return whether a sampler with ``key`` reads ``figure``."""
    return figure.startswith(key[:-1]) if key.endswith("*") else figure == key


class Trace(ClosedModel):
    """A recorder of what the scheduler does beside the workload, in buffers of ``buffer_bytes`` for all CPUs together,
    or what a fourth of the free memory holds. That takes time itself: never in a trial that is compared.
    """

    buffer_bytes: int = Field(ge=1 << 16, le=1 << 32)


class Scratch(ClosedModel):
    """A file system made for the trial and gone after it.

    On ``device``, or on a loop device over a file of ``size_bytes`` that is made in ``directory`` and has no name.
    ``make`` is the program that formats it, with its arguments; the device's path is added. It is mounted at ``mount``
    (made if need be) with the mount ``options`` (mount(8)'s words, separated by commas), where only the agent and the
    processes of the trial see it. ``user`` owns its root directory.
    """

    filesystem: str = Field(pattern=r"^[a-z0-9]{2,16}$")
    make: tuple[str, ...] = Field(min_length=1)
    mount: str
    options: str = ""
    size_bytes: int = Field(default=0, ge=0)
    directory: str = ""
    device: str = ""
    user: User | None = None


class ReadySettled(ClosedModel):
    """A background load is there when its processes and their use of the CPUs have settled (`process/load.rs`)."""

    by: Literal["settled"] = "settled"


class ReadyStarted(ClosedModel):
    """A background load is there at once."""

    by: Literal["started"] = "started"


class ReadyOutput(ClosedModel):
    """A background load is there when it has printed ``text``."""

    by: Literal["output"] = "output"
    text: str = Field(min_length=1)


class ReadyCommand(ClosedModel):
    """A background load is there when ``command`` ends with the exit code 0."""

    by: Literal["command"] = "command"
    command: Command


Ready = Annotated[ReadySettled | ReadyStarted | ReadyOutput | ReadyCommand, Field(discriminator="by")]


class Plan(ClosedModel):
    """The plan of one trial. Without a ``workload`` it only writes and reads, and runs ``before`` and ``after``.

    In this order: ``reads``, what ``keeps`` names noted, ``writes``, ``scratch`` made, ``before`` (commands that are
    not measured, one after the other, each of which must exit with 0), ``background`` started, each waited for until it
    is ``ready``, the workload, ``observe_ns`` during which only the samplers go on, ``after`` (as ``before``; run
    whatever became of it). On a host all that was written is restored at the end, and what others changed of ``keeps``,
    which is reported.

    ``ready`` has an entry for each background load, or fewer: the rest is to settle. A load that has not settled after
    ``ready_timeout_ns`` is reported, and one that is not ready otherwise fails the trial. ``settle_ns`` passes at least
    between the start of the background load and that of the workload. ``timeout_ns`` is for the
    workload's whole process group. ``output_limit_bytes`` is kept of each output stream, the rest is counted.
    ``counters`` are names of perf events: ``task-clock``, ``context-switches``, ``cpu-migrations``, ``page-faults``,
    ``cycles``, ``instructions``, ``cache-references``, ``cache-misses``, ``branches``, ``branch-misses``.
    """

    version: Literal[1] = CONTRACT_VERSION
    id: str
    reads: tuple[Read, ...] = ()
    writes: tuple[Write, ...] = ()
    keeps: tuple[Read, ...] = ()
    scratch: Scratch | None = None
    before: tuple[Command, ...] = ()
    background: tuple[Command, ...] = ()
    ready: tuple[Ready, ...] = ()
    ready_timeout_ns: int = Field(default=5_000_000_000, ge=0)
    settle_ns: int = Field(default=0, ge=0)
    workload: Command | None = None
    timeout_ns: int = Field(default=600_000_000_000, gt=0)
    output_limit_bytes: int = Field(default=1_048_576, ge=0)
    counters: tuple[str, ...] = ()
    samplers: tuple[Sampler, ...] = ()
    trace: Trace | None = None
    observe_ns: int = Field(default=0, ge=0)
    after: tuple[Command, ...] = ()
    perturbation: Perturbation = Perturbation()


# The nodes of a machine whose memory is not all equally near (NUMA).


class MemoryNode(ClosedModel):
    """A node: CPUs, which are numbered from node to node, memory, and how far each node is from here."""

    cpus: _Whole = Field(default=0, ge=0, le=64, description="CPUs of the node; one node at least has some.")
    memory_mib: _Whole = Field(ge=16, le=1048576, description="Memory of the node, in MiB.")
    distances: tuple[_Whole, ...] = Field(
        default=(),
        description="Distance from this node to every node: 10 to itself, up to 254 to others (default 20).",
    )


def nodes_in_words(nodes: Sequence[MemoryNode]) -> str:
    """Describe the nodes for people."""
    return "; ".join(
        f"node {number}: {node.cpus} CPUs, {node.memory_mib} MiB"
        + (f", distances {' '.join(map(str, node.distances))}" if node.distances else "")
        for number, node in enumerate(nodes)
    )


def node_distances(nodes: Sequence[MemoryNode]) -> list[list[int]]:
    """Return the distances between all nodes, as in ACPI's SLIT. QEMU has 20 where none is named."""
    return [
        list(node.distances) or [NEAREST if other == number else USUAL_DISTANCE for other in range(len(nodes))]
        for number, node in enumerate(nodes)
    ]


def find_problem(nodes: Sequence[MemoryNode], cpus: int, memory_mib: int) -> str:
    """Return what is wrong with a machine of these nodes, CPUs and memory; empty if nothing."""
    if len(nodes) == 1:
        return "a machine with nodes has two at least"
    if nodes and not any(node.cpus for node in nodes):
        return "one node at least must have CPUs"
    for number, node in enumerate(nodes):
        if node.distances and (problem := _problem_of_distances(node.distances, number, len(nodes))):
            return problem
    expected = (sum(node.cpus for node in nodes), sum(node.memory_mib for node in nodes))
    if nodes and (cpus, memory_mib) != expected:
        return f"cpus is {cpus} and memory_mib {memory_mib}; expected {expected[0]} and {expected[1]}, as the nodes"
    return ""


def _problem_of_distances(distances: tuple[int, ...], number: int, count: int) -> str:
    if len(distances) != count:
        return f"node {number} has {len(distances)} distances; there are {count} nodes"
    if distances[number] != NEAREST:
        return f"the distance of node {number} to itself is {NEAREST}, not {distances[number]}"
    far = [distance for other, distance in enumerate(distances) if other != number]
    if not all(NEAREST < distance <= FARTHEST for distance in far):
        return f"distances of node {number} to others are {NEAREST + 1} to {FARTHEST}"
    return ""

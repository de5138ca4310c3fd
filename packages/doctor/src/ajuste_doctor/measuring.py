"""Measuring: the jitter of sleeps, then a fixed job again and again, while the machine is watched."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, Self

from ajuste.machine.home import WORKLOADS, native_program
from ajuste.machine.inventory.inventory import Inventory, take_inventory
from ajuste.machine.inventory.source import InventorySource, Missing
from ajuste.model.error import RunError
from ajuste.model.event import Exited, Failed, Output
from ajuste.model.plan import Command, Plan
from ajuste.model.trial import Observation
from ajuste.model.wording import Ongoing, Say
from ajuste.outputs.base import ParseError
from ajuste.outputs.programs import bundled
from ajuste_doctor.diagnosis import Busy, Jitter, JobRun, NoiseMeasurements

_INVISIBLE: Final = "not visible here"
_SIZE: Final = 200

# Repetitions of the job by which its length is found.
_TRIED: Final = 10

_TELLING_RUNS: Final = 3
_MOST_REPETITIONS: Final = 100_000
_LONGEST_NS: Final = 60 * 10**9
_THROTTLE: Final = ("core_throttle_count", "package_throttle_count")
_CPUS: Final = "/sys/devices/system/cpu"

# proc_pid_stat(5): name (which can hold anything), parent, CPU times of itself and of its children, start.
_STAT: Final = re.compile(
    r"\((?P<name>(?:.|\n)*)\) \S (?P<parent>-?\d+) (?:\S+ ){9}(?P<user>\d+) (?P<system>\d+) "
    r"(?P<children_user>\d+) (?P<children_system>\d+) (?:\S+ ){4}(?P<start>\d+)",
    re.ASCII,
)

_GLANCE_SECONDS: Final = 0.2
_GLANCES_PER_SNAPSHOT: Final = 10
_MOST_NAMED: Final = 8

# Of one CPU: programs that use less are not named.
_LEAST_PERCENT: Final = 0.1


class PlanRunner(Protocol):
    """A runner of plans on this machine, with the very agent that measures studies."""

    def run(self, plan: Plan) -> Observation: ...


@dataclass(frozen=True)
class Length:
    """The length of a measurement: sleeps of a millisecond, runs of the job, and the CPU time of each run. On a
    machine where that takes longer than ``limit_s`` there are fewer runs, but at least ``fewest``.
    """

    sleeps: int
    runs: int
    job_s: float
    limit_s: float
    fewest: int = 10


FULL: Final = Length(sleeps=7000, runs=30, job_s=0.6, limit_s=40)
QUICK: Final = Length(sleeps=1200, runs=20, job_s=0.12, limit_s=8)


def measure(
    executor: PlanRunner,
    length: Length,
    say: Say = lambda _: None,
    watch: Callable[[], MachineWatch] | None = None,
) -> NoiseMeasurements:
    """Measure on an entered ``executor``: about half a minute for ``FULL``.

    Raises RunError where the executor cannot run the programs.
    """
    with (watch or MachineWatch)() as watched:
        say(f"measuring the timers: {length.sleeps} sleeps of 1 ms")
        late = _jitter(executor, length.sleeps)
        say("measuring how long the job takes")
        # So many that a run takes about `job_s` of CPU time. The second try counts: the first one warms up.
        _job(executor, _TRIED)
        tried = _job(executor, _TRIED)
        tried_s = max(tried.user_ns + tried.system_ns, 1) / 1e9
        repetitions = max(1, min(_MOST_REPETITIONS, round(_TRIED * length.job_s / tried_s)))
        runs: list[JobRun] = []
        began = time.monotonic()
        for number in range(length.runs):
            at = time.monotonic() - began
            if number >= length.fewest and at > length.limit_s:
                break
            left = ""  # until some runs have shown how long the others take
            if number >= _TELLING_RUNS:
                each_s = at / number
                # The limit of time ends them unless there are too few.
                most_s = max(length.limit_s - at, (length.fewest - number) * each_s)
                left = f" · about {min((length.runs - number) * each_s, most_s):.0f} s left"
            say(Ongoing(f"measuring the job: run {number + 1} of {length.runs}{left}"))
            ended = _job(executor, repetitions)
            runs.append(
                JobRun(began_s=at, elapsed_s=ended.wall_ns / 1e9, cpu_s=(ended.user_ns + ended.system_ns) / 1e9)
            )
    return _measurements(watched.seen, late, tuple(runs))


def _jitter(executor: PlanRunner, sleeps: int) -> Jitter:
    observation = _run(executor, "jitter", "--sleeps", str(sleeps), "--interval-us", "1000")
    try:
        figures = bundled.jitter(_output(observation))
    except ParseError as error:
        raise RunError(f"could not measure the jitter of sleeps: {error}") from error
    names = ("p50", "p99", "p999", "max")
    return Jitter(sleeps=sleeps, **{f"{name}_us": figures[f"jitter.{name}"] for name in names})


def _job(executor: PlanRunner, repetitions: int) -> Exited:
    observation = _run(executor, "matrix", "--size", str(_SIZE), "--repetitions", str(repetitions))
    try:
        bundled.matrix(_output(observation))
    except ParseError as error:
        raise RunError(f"the job failed: {error}") from error
    return next(event for event in observation.events if isinstance(event, Exited) and event.role == "workload")


def _run(executor: PlanRunner, *words: str) -> Observation:
    argv = (str(native_program(WORKLOADS)), *words)
    observation = executor.run(Plan(id=words[0], workload=Command(argv=argv), timeout_ns=_LONGEST_NS))
    failed = next((event.message for event in observation.events if isinstance(event, Failed)), "")
    ended = next(
        (event for event in observation.events if isinstance(event, Exited) and event.role == "workload"), None
    )
    if observation.problem or failed or ended is None:
        raise RunError(f"could not run {words[0]}: {observation.problem or failed or 'its end is unknown'}")
    if ended.exit_code != 0:
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"
        raise RunError(f"{words[0]} {'took too long' if ended.timed_out else f'ended with {how}'}")
    return observation


def _output(observation: Observation) -> str:
    return "".join(
        event.text
        for event in observation.events
        if isinstance(event, Output) and event.role == "workload" and event.stream == "stdout"
    )


def _measurements(seen: Seen, late: Jitter, runs: tuple[JobRun, ...]) -> NoiseMeasurements:
    inventory = take_inventory()
    before, after = seen.before, seen.after
    ticks = after.total - before.total
    unknown: dict[str, str] = {}

    def share(part: int) -> float | None:
        return 100 * max(0, part) / ticks if ticks > 0 else None

    def pressure(name: str) -> float | None:
        if name not in before.pressure_us or name not in after.pressure_us:
            unknown[f"pressure_{name}_percent"] = "not supported by this kernel (PSI)"
            return None
        return (after.pressure_us[name] - before.pressure_us[name]) / seen.seconds / 1e4

    if not seen.khz:
        unknown["frequency_range_percent"] = _INVISIBLE
    throttled = None
    if before.throttled is None or after.throttled is None:
        unknown["throttled"] = _INVISIBLE
    else:
        throttled = after.throttled - before.throttled
    if ticks <= 0:
        unknown |= dict.fromkeys(("steal_percent", "others_percent"), "/proc/stat lacks")
    return NoiseMeasurements(
        seconds=seen.seconds,
        cpus=inventory.cpu.cpus or 1,
        jitter=late,
        runs=runs,
        steal_percent=share(after.steal - before.steal),
        others_percent=share(after.busy - before.busy - seen.self_ticks),
        # One of those that run is we ourselves, who look; another one is what is measured, for most of the time.
        runnable=max(0.0, sum(seen.runnable) / len(seen.runnable) - 2) if seen.runnable else None,
        pressure_cpu_percent=pressure("cpu"),
        pressure_io_percent=pressure("io"),
        pressure_memory_percent=pressure("memory"),
        frequency_range_percent=100 * (1 - min(seen.khz) / max(seen.khz)) if seen.khz else None,
        throttled=throttled,
        interrupts_per_s=(after.interrupts - before.interrupts) / seen.seconds,
        switches_per_s=(after.switches - before.switches) / seen.seconds,
        busy=seen.busy,
        facts=_facts(inventory),
        unknown=unknown,
    )


def _facts(inventory: Inventory) -> dict[str, str]:
    facts = {
        "governor": inventory.frequency.governor,
        "turbo": None if inventory.frequency.turbo is None else "on" if inventory.frequency.turbo else "off",
        "smt": inventory.cpu.smt,
        "isolated": inventory.cpu.isolated,
        "machine": inventory.virtualisation.machine,
        "container": inventory.virtualisation.container,
        "cpu_limit": None if inventory.limits.cpu_limit is None else f"{inventory.limits.cpu_limit:g}",
    }
    return {name: value for name, value in facts.items() if value}


# The kernel's counters of what goes on: read twice, their differences say what went on in between.


@dataclass(frozen=True)
class Counters:
    """Ticks of all CPUs together (proc_stat(5)): ``total`` of every kind, ``busy`` neither idle nor waiting for I/O nor
    stolen. ``pressure_us`` by resource; ``throttled`` is ``None`` where no CPU counts it.
    """

    total: int = 0
    busy: int = 0
    steal: int = 0
    interrupts: int = 0
    switches: int = 0
    pressure_us: dict[str, int] = field(default_factory=dict)
    throttled: int | None = None


def read_counters(source: InventorySource) -> Counters:
    """Return the present counters, 0 for missing ones."""
    ticks: list[int] = []
    single = {"intr": 0, "ctxt": 0}
    for line in source.lines("/proc/stat", 1 << 20):
        words = line.split()
        if words and words[0] == "cpu":
            ticks = _numbers(words[1:9])
        elif words and words[0] in single and len(words) > 1:
            single[words[0]] = (_numbers(words[1:2]) or [0])[0]
    user, nice, system, idle, waiting, irq, softirq, steal = (*ticks, *[0] * (8 - len(ticks)))
    busy = user + nice + system + irq + softirq
    return Counters(
        total=busy + idle + waiting + steal,
        busy=busy,
        steal=steal,
        interrupts=single["intr"],
        switches=single["ctxt"],
        pressure_us=_pressure(source),
        throttled=_throttled(source),
    )


def running_tasks(source: InventorySource) -> int | None:
    """Return how many tasks run or wait for a CPU now, including this one."""
    for line in source.lines("/proc/stat", 1 << 20):
        match = re.fullmatch(r"procs_running ([0-9]{1,9})", line)
        if match:
            return int(match[1])
    return None


def fastest_khz(source: InventorySource) -> int | None:
    """Return the highest present frequency of any CPU, ``None`` where it is not visible."""
    place = f"{_CPUS}/cpufreq"
    frequencies = [source.whole(f"{place}/{name}/scaling_cur_freq") for name in source.names(place)]
    return max((khz for khz in frequencies if khz), default=None)


def _numbers(words: list[str]) -> list[int]:
    return [int(word) if re.fullmatch("[0-9]{1,19}", word) else 0 for word in words]


def _pressure(source: InventorySource) -> dict[str, int]:
    totals: dict[str, int] = {}
    for name in ("cpu", "io", "memory"):
        text = source.text(f"/proc/pressure/{name}")
        match = None if isinstance(text, Missing) else re.search(r"^some .*total=([0-9]{1,19})", text, re.MULTILINE)
        if match:
            totals[name] = int(match[1])
    return totals


def _throttled(source: InventorySource) -> int | None:
    counts = [
        source.whole(f"{_CPUS}/{cpu}/thermal_throttle/{name}")
        for cpu in source.names(_CPUS)
        if re.fullmatch("cpu[0-9]+", cpu)
        for name in _THROTTLE
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


# The processes of this machine and the CPU time that they have used.


@dataclass(frozen=True)
class Process:
    """``ticks`` of its own, ``all_ticks`` with those of the children that it has waited for."""

    name: str
    parent: int
    ticks: int
    all_ticks: int


Snapshot = Mapping[tuple[int, int], Process]
"""The processes by number and start: a number can be used again."""


def read_processes(source: InventorySource) -> Snapshot:
    """Return all processes now, without those that end while they are read."""
    processes: dict[tuple[int, int], Process] = {}
    for name in source.names("/proc"):
        if not (name.isascii() and name.isdecimal()):
            continue
        text = source.text(f"/proc/{name}/stat")
        match = None if isinstance(text, Missing) else _STAT.search(text)
        if match:
            ticks = int(match["user"]) + int(match["system"])
            children = int(match["children_user"]) + int(match["children_system"])
            process = Process(match["name"], int(match["parent"]), ticks, ticks + children)
            processes[int(name), int(match["start"])] = process
    return processes


def family(snapshot: Snapshot, ancestor: int) -> set[tuple[int, int]]:
    """Return ``ancestor`` and all its descendants."""
    children: dict[int, list[tuple[int, int]]] = {}
    for key, process in snapshot.items():
        children.setdefault(process.parent, []).append(key)
    members = {key for key in snapshot if key[0] == ancestor}
    waiting = list(members)
    while waiting:
        for child in children.get(waiting.pop()[0], []):
            if child not in members:
                members.add(child)
                waiting.append(child)
    return members


def family_ticks(snapshot: Snapshot, ancestor: int) -> int:
    """Return all CPU time of a process and its descendants, also of ended ones."""
    return sum(snapshot[key].all_ticks for key in family(snapshot, ancestor))


def used_between(snapshots: Iterable[Snapshot], ancestor: int) -> dict[str, int]:
    """Return ticks that others used from the first to the last of ``snapshots``, by name, the most first. A new process
    counts from its start; one that came and went between two looks is not seen.
    """
    first: Snapshot | None = None
    used: dict[tuple[int, int], tuple[str, int]] = {}
    ours: set[tuple[int, int]] = set()
    for snapshot in snapshots:
        first = snapshot if first is None else first
        ours |= family(snapshot, ancestor)
        for key, process in snapshot.items():
            before = first[key].ticks if key in first else 0
            used[key] = (process.name, max(0, process.ticks - before))
    sums: dict[str, int] = {}
    for key, (name, ticks) in used.items():
        if key not in ours and ticks:
            sums[name] = sums.get(name, 0) + ticks
    return dict(sorted(sums.items(), key=lambda entry: -entry[1]))


# Looks at the machine while something else is measured: counters before and after, and a glance now and then.


@dataclass(frozen=True)
class Seen:
    """The changes from entering to leaving. ``self_ticks`` are those of this process and all that it has started."""

    seconds: float
    before: Counters
    after: Counters
    self_ticks: int
    runnable: tuple[int, ...]
    khz: tuple[int, ...]
    busy: tuple[Busy, ...]


class MachineWatch:
    """A context manager; ``seen`` is there once it was left."""

    def __init__(self, source: InventorySource | None = None) -> None:
        self._source = source or InventorySource()
        self._end = threading.Event()
        self._runnable: list[int] = []
        self._khz: list[int] = []
        self._snapshots: list[Snapshot] = []
        self._seen: Seen | None = None

    @property
    def seen(self) -> Seen:
        assert self._seen is not None, "the watch goes on"
        return self._seen

    def __enter__(self) -> Self:
        self._snapshots.append(read_processes(self._source))
        self._before = read_counters(self._source)
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._glance, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        seconds = time.monotonic() - self._began
        after = read_counters(self._source)
        self._snapshots.append(read_processes(self._source))
        ticks = [family_ticks(snapshot, os.getpid()) for snapshot in (self._snapshots[0], self._snapshots[-1])]
        self._seen = Seen(
            seconds=seconds,
            before=self._before,
            after=after,
            self_ticks=max(0, ticks[1] - ticks[0]),
            runnable=tuple(self._runnable),
            khz=tuple(self._khz),
            busy=self._busy(seconds),
        )

    def _glance(self) -> None:
        glances = 0
        while not self._end.wait(_GLANCE_SECONDS):
            running, khz = running_tasks(self._source), fastest_khz(self._source)
            if running is not None:
                self._runnable.append(running)
            if khz is not None:
                self._khz.append(khz)
            glances += 1
            if glances % _GLANCES_PER_SNAPSHOT == 0:
                self._snapshots.append(read_processes(self._source))

    def _busy(self, seconds: float) -> tuple[Busy, ...]:
        ticks_per_s = os.sysconf("SC_CLK_TCK")
        used = used_between(self._snapshots, os.getpid())
        shares = ((name, 100 * ticks / ticks_per_s / seconds) for name, ticks in used.items())
        return tuple(Busy(name=name, cpu_percent=share) for name, share in shares if share >= _LEAST_PERCENT)[
            :_MOST_NAMED
        ]

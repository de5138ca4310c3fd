"""Measuring: the jitter of sleeps, then a fixed job again and again, while the machine is watched."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from ajuste.machine.doctor.diagnosis import Jitter, JobRun, NoiseMeasurements
from ajuste.machine.doctor.watch import MachineWatch, Seen
from ajuste.machine.home import WORKLOADS, native_program
from ajuste.machine.inventory.inventory import Inventory, take_inventory
from ajuste.model.error import RunError
from ajuste.model.event import Exited, Failed, Output
from ajuste.model.plan import Command, Plan
from ajuste.model.trial import Observation
from ajuste.model.wording import Ongoing, Say
from ajuste.outputs.base import ParseError
from ajuste.outputs.programs import bundled


class PlanRunner(Protocol):
    """What carries out a plan on this machine, by the very agent that measures studies."""

    def run(self, plan: Plan) -> Observation: ...


_INVISIBLE: Final = "not visible here"
_SIZE: Final = 200
_TRIED: Final = 10
"""Repetitions of the job by which its length is found."""
_TELLING_RUNS: Final = 3
_MOST_REPETITIONS: Final = 100_000
_LONGEST_NS: Final = 60 * 10**9


@dataclass(frozen=True)
class Length:
    """How much is measured: sleeps of a millisecond, runs of the job, and how much CPU time each of them takes. On a
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
    watch: Callable[[], MachineWatch] = MachineWatch,
) -> NoiseMeasurements:
    """Measure on an entered ``executor``: about half a minute for ``FULL``.

    Raises RunError where the executor cannot run the programs.
    """
    with watch() as watched:
        say(f"measuring the timers: {length.sleeps} sleeps of 1 ms")
        late = _jitter(executor, length.sleeps)
        say("measuring how long the job takes")
        repetitions = _repetitions(executor, length.job_s)
        runs: list[JobRun] = []
        began = time.monotonic()
        for number in range(length.runs):
            at = time.monotonic() - began
            if number >= length.fewest and at > length.limit_s:
                break
            say(Ongoing(f"measuring the job: run {number + 1} of {length.runs}{_left(at, number, length)}"))
            ended = _job(executor, repetitions)
            runs.append(
                JobRun(began_s=at, elapsed_s=ended.wall_ns / 1e9, cpu_s=(ended.user_ns + ended.system_ns) / 1e9)
            )
    return _told(watched.seen, late, tuple(runs))


def _left(seconds: float, done: int, length: Length) -> str:
    """How long the other runs take, once some have shown it. The limit of time ends them unless there are too few."""
    if done < _TELLING_RUNS:
        return ""
    each_s = seconds / done
    most_s = max(length.limit_s - seconds, (length.fewest - done) * each_s)
    return f" · about {min((length.runs - done) * each_s, most_s):.0f} s left"


def _jitter(executor: PlanRunner, sleeps: int) -> Jitter:
    said = _run(executor, "jitter", "--sleeps", str(sleeps), "--interval-us", "1000")
    try:
        figures = bundled.jitter(_output(said))
    except ParseError as error:
        raise RunError(f"could not measure the jitter of sleeps: {error}") from error
    names = ("p50", "p99", "p999", "max")
    return Jitter(sleeps=sleeps, **{f"{name}_us": figures[f"jitter.{name}"] for name in names})


def _repetitions(executor: PlanRunner, job_s: float) -> int:
    """So many that a run takes about ``job_s`` of CPU time. The second try counts: the first one warms up."""
    _job(executor, _TRIED)
    tried = _job(executor, _TRIED)
    tried_s = max(tried.user_ns + tried.system_ns, 1) / 1e9
    return max(1, min(_MOST_REPETITIONS, round(_TRIED * job_s / tried_s)))


def _job(executor: PlanRunner, repetitions: int) -> Exited:
    said = _run(executor, "matrix", "--size", str(_SIZE), "--repetitions", str(repetitions))
    try:
        bundled.matrix(_output(said))
    except ParseError as error:
        raise RunError(f"the job failed: {error}") from error
    return next(event for event in said.events if isinstance(event, Exited) and event.role == "workload")


def _run(executor: PlanRunner, *words: str) -> Observation:
    argv = (str(native_program(WORKLOADS)), *words)
    said = executor.run(Plan(id=words[0], workload=Command(argv=argv), timeout_ns=_LONGEST_NS))
    failed = next((event.message for event in said.events if isinstance(event, Failed)), "")
    ended = next((event for event in said.events if isinstance(event, Exited) and event.role == "workload"), None)
    if said.problem or failed or ended is None:
        raise RunError(f"could not run {words[0]}: {said.problem or failed or 'its end is unknown'}")
    if ended.exit_code != 0:
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"
        raise RunError(f"{words[0]} {'took too long' if ended.timed_out else f'ended with {how}'}")
    return said


def _output(said: Observation) -> str:
    return "".join(
        event.text
        for event in said.events
        if isinstance(event, Output) and event.role == "workload" and event.stream == "stdout"
    )


def _told(seen: Seen, late: Jitter, runs: tuple[JobRun, ...]) -> NoiseMeasurements:
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
        others_percent=share(after.busy - before.busy - seen.own_ticks),
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
    """Of what the machine is, that by which findings are judged and advice is chosen."""
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

"""Cost of reading figures ten times a second for a job that computes and one that switches.

Under the virtual clock, where the answer is exact: how much longer each job takes with a sampler than without, on one
CPU that both share and that carries out an instruction a nanosecond. Real CPUs are some times faster, and so is the
sampler on them. And on this machine: the agent's own CPU time, which is known well on a busy one too.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from pathlib import Path
from statistics import median

from ajuste.catalogue.loader import figure_sources
from ajuste.machine.home import AGENT, WORKLOADS, home, native_program
from ajuste.model.event import Exited
from ajuste.model.plan import Command, Plan, Sampler
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.kernel.fetch import fetch_kernel
from benchmarks.comparison import Comparison, by_turns

SPEC = "debian:6.1"
MOST_PERCENT = 0.5
PER_SECOND = 10

_ALONE = "alone"
_EVERY = "all of them at once"
_COST_READINGS = 400
_COST_PER_SECOND = 200


def measure() -> tuple[Comparison, ...]:
    """Measure each job alone, with a sampler of every figure of one source, and with all; and the agent's CPU time."""
    workloads, hackbench = native_program(WORKLOADS), Path(shutil.which("hackbench") or "/usr/bin/hackbench")
    jobs = {
        "matrix": (str(workloads), "matrix", "--size", "100", "--repetitions", "250"),
        # One sender, one receiver, and messages that fill the socket: a switch for nearly every message.
        "hackbench": (str(hackbench), "-g", "1", "-f", "1", "-l", "6000", "-s", "30000"),
    }
    place = home()
    guest = GuestExecutor(
        fetch_kernel(SPEC, place),
        clock="virtual",
        cpus=1,
        memory_mib=256,
        instruction_ns=1,
        files=GuestFiles(programs=(workloads, hackbench)),
        home=place,
    )
    with guest:
        comparisons = [_of_job(guest, name, argv) for name, argv in jobs.items()]
    return (*comparisons, _cost())


def _of_job(guest: GuestExecutor, name: str, argv: tuple[str, ...]) -> Comparison:
    ways: dict[str, tuple[str, ...]] = {_ALONE: (), **{source: (source,) for source in figure_sources()}}
    ways[_EVERY] = tuple(figure_sources())
    exits = {way: _run(guest, argv, sources) for way, sources in ways.items()}
    alone = exits[_ALONE]
    percent = {way: 100 * (exited.wall_ns / alone.wall_ns - 1) for way, exited in exits.items() if way != _ALONE}
    every = percent.pop(_EVERY)
    dearest = max(percent, key=lambda source: percent[source])
    switches = (alone.voluntary_switches + alone.involuntary_switches) / (alone.wall_ns / 1e9)
    return Comparison(
        name=f"sampler-{name}",
        what=f"elapsed time of {name} ({switches:.0f} switches a second), every figure of a source read "
        f"{PER_SECOND} times a second, under the virtual clock",
        unit="ms",
        figures={way: [exited.wall_ns / 1e6] for way, exited in exits.items()},
        goal=f"slower by at most {percent[dearest]:.3f} % ({dearest}) with one sampler, by {every:.3f} % with all "
        f"{len(percent)}; goal: one under {MOST_PERCENT} %",
        reached=percent[dearest] < MOST_PERCENT,
    )


def _run(guest: GuestExecutor, argv: tuple[str, ...], sources: tuple[str, ...]) -> Exited:
    observation = guest.run(Plan(id="job", workload=Command(argv=argv), samplers=_samplers(PER_SECOND, sources)))
    exited = next((event for event in observation.events if isinstance(event, Exited)), None)
    if observation.problem or exited is None or exited.exit_code != 0:
        raise SystemExit(f"{argv[0]} failed: {observation.problem or observation.lines}")
    return exited


def _samplers(per_second: int, sources: tuple[str, ...]) -> tuple[Sampler, ...]:
    interval_ns = 1_000_000_000 // per_second
    return tuple(Sampler(source=source, keys=("*",), interval_ns=interval_ns) for source in sources)


def _cost() -> Comparison:
    """The agent's CPU time while it does nothing but read, and say at the end what it read."""
    one_source, every_source = "every figure of vmstat", "every figure of every source"
    read = {_ALONE: (), one_source: ("vmstat",), every_source: tuple(figure_sources())}
    figures = by_turns(
        {way: lambda sources=sources: _agent_cpu_ms(sources) for way, sources in read.items()},  # type: ignore[misc]
        9,
    )
    reading_us = {
        way: 1000 * (median(figures[way]) - median(figures[_ALONE])) / _COST_READINGS
        for way in (one_source, every_source)
    }
    percent = {way: us * PER_SECOND / 1e4 for way, us in reading_us.items()}
    return Comparison(
        name="sampler-cost",
        what=f"CPU time of the agent on this machine for {_COST_READINGS} readings",
        unit="ms",
        figures=figures,
        goal=f"a reading takes {reading_us[one_source]:.0f} µs of one source and {reading_us[every_source]:.0f} µs of "
        f"all: at {PER_SECOND} a second {percent[one_source]:.3f} % and {percent[every_source]:.3f} % of a CPU; goal: "
        f"one under {MOST_PERCENT} %",
        reached=percent[one_source] < MOST_PERCENT,
    )


def _agent_cpu_ms(sources: tuple[str, ...]) -> float:
    plan = Plan(
        id="cost",
        workload=Command(argv=("/bin/true",)),
        samplers=_samplers(_COST_PER_SECOND, sources),
        observe_ns=_COST_READINGS * 1_000_000_000 // _COST_PER_SECOND,
    )
    before = _children_ms()
    done = subprocess.run(
        [native_program(AGENT), "run"], input=plan.model_dump_json(), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1])["ok"]
    return _children_ms() - before


def _children_ms() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (used.ru_utime + used.ru_stime)

"""What reading everything ten times a second costs a job that computes and one that switches, on this machine."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Callable

from ajuste.catalogue.figures import figure_sources
from ajuste.model.event import Exited
from ajuste.model.plan import Command, Plan, Sampler
from ajuste.native import AGENT, WORKLOADS, native_program
from ajuste.target.host import HostTarget
from benchmarks.comparison import Comparison, by_turns
from benchmarks.pairs import slowdown

ROUNDS = 60
MOST_PERCENT = 0.5
PER_SECOND = 10

_ALONE, _SAMPLED = "alone", "sampled"
_JOBS = {
    "matrix": (str(native_program(WORKLOADS)), "matrix", "--size", "200", "--repetitions", "300"),
    "hackbench": ("hackbench", "-g", "2", "-l", "500", "-T"),
}
_COST_SECONDS = 2
_COST_PER_SECOND = 200


def measure() -> tuple[Comparison, ...]:
    """Each job alone and sampled, by turns: its elapsed time and its CPU time; and the agent's own CPU time.

    The two jobs need a machine that does nothing else: the interval says how well it is known. The agent's CPU time is
    known well on any.
    """
    with HostTarget() as host:
        jobs = [comparison for name in _JOBS for comparison in _of_job(host, name)]
    return (*jobs, _cost())


def _of_job(host: HostTarget, name: str) -> tuple[Comparison, Comparison]:
    """Elapsed time is what matters, and on a busy machine known badly; CPU time is known better."""
    cpu: dict[str, list[float]] = {_ALONE: [], _SAMPLED: []}

    def once(way: str) -> Callable[[], float]:
        def run() -> float:
            exited = _run(host, _plan(name, sampled=way == _SAMPLED))
            cpu[way].append((exited.user_ns + exited.system_ns) / 1e6)
            return exited.wall_ns / 1e6

        return run

    elapsed = by_turns({way: once(way) for way in cpu}, ROUNDS)
    return (
        _comparison(
            f"sampler-{name}", f"elapsed time of {name}, every figure read {PER_SECOND} times a second", elapsed
        ),
        _comparison(f"sampler-{name}-cpu", f"CPU time of {name} in the same runs", cpu),
    )


def _comparison(name: str, what: str, figures: dict[str, list[float]]) -> Comparison:
    found = slowdown(figures[_ALONE], figures[_SAMPLED])
    return Comparison(
        name=name,
        what=what,
        unit="ms",
        figures=figures,
        goal=f"slower by {found}; goal: the interval ends below {MOST_PERCENT} %",
        reached=found.high < MOST_PERCENT,
    )


def _run(host: HostTarget, plan: Plan) -> Exited:
    observation = host.run(plan)
    if observation.problem:
        raise RuntimeError(observation.problem)
    return next(event for event in observation.events if isinstance(event, Exited))


def _plan(name: str, *, sampled: bool) -> Plan:
    return Plan(
        id=name,
        workload=Command(argv=_JOBS[name], environment={"PATH": "/usr/bin:/bin"}),
        samplers=_samplers(PER_SECOND) if sampled else (),
    )


def _samplers(per_second: int) -> tuple[Sampler, ...]:
    """Every figure of every source: more than anybody wants."""
    interval_ns = 1_000_000_000 // per_second
    return tuple(Sampler(source=source, keys=("*",), interval_ns=interval_ns) for source in figure_sources())


def _cost() -> Comparison:
    """The agent's CPU time while it does nothing but read, by reading of all sources."""
    ways = {
        "no sampler": lambda: _agent_cpu_ms(()),
        f"{_COST_PER_SECOND} readings a second": lambda: _agent_cpu_ms(_samplers(_COST_PER_SECOND)),
    }
    figures = by_turns(ways, 9)
    none, every = (sorted(values)[len(values) // 2] for values in figures.values())
    reading_ms = (every - none) / (_COST_SECONDS * _COST_PER_SECOND)
    percent = 100 * reading_ms * PER_SECOND / 1000
    return Comparison(
        name="sampler-cost",
        what=f"CPU time of the agent in {_COST_SECONDS} s of reading every figure",
        unit="ms",
        figures=figures,
        goal=f"{1000 * reading_ms:.0f} µs for all figures once, {percent:.3f} % of a CPU at {PER_SECOND} a second; "
        f"goal: under {MOST_PERCENT} %",
        reached=percent < MOST_PERCENT,
    )


def _agent_cpu_ms(samplers: tuple[Sampler, ...]) -> float:
    plan = Plan(
        id="cost",
        workload=Command(argv=("/bin/true",)),
        samplers=samplers,
        observe_ns=_COST_SECONDS * 1_000_000_000,
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

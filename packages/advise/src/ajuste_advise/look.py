"""The look: a few trials of the workload as it is, and where its time goes by the kernel's own figures."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from ajuste.analysis.relevance import Activity
from ajuste.catalogue.loader import figure_sources
from ajuste.model.cause import Cause
from ajuste.model.error import AjusteError, Place, RequestError
from ajuste.model.event import Exited, parse_event
from ajuste.model.trial import Trial
from ajuste.model.wording import amount, count_of, number, percent
from ajuste.run.experiment import MeasuredExperiment, recorder
from ajuste.run.relevance import figures_of
from ajuste.study.metrics import deciding_metrics, find_metric
from ajuste.study.schema import Study
from ajuste_advise.budget import LOOK
from ajuste_advise.model import HotSpot, Look, TimeShare, Where
from ajuste_advise.question import Question
from ajuste_search.tuning.goal import Constraint, resolve_goal
from ajuste_stats.terms import Direction

TRIALS: Final = 3
_SOURCES: Final = ("stat", "schedstat", "pressure", "vmstat", "meminfo", "diskstats", "softirqs")
# As rare as a sampler can be: it is read before and after the workload in any case.
_SELDOM_MS: Final = 60_000
_TICK_S: Final = 0.01
_MOST_HOT: Final = 8


@dataclass(frozen=True)
class Seen:
    """The findings of a look: for people, and the kernel's ``activity`` for the conditions of settings."""

    look: Look
    activity: Activity


def take_look(question: Question, *, functions: bool) -> Seen:
    """Measure the workload as it is, a few times. With ``functions`` also count what its time is spent in, under the
    virtual clock. Raises RequestError, and RunError where the workload fails.
    """
    samplers = [
        {"source": source, "keys": ["*"], "interval_ms": _SELDOM_MS}
        for source in figure_sources()
        if source in _SOURCES
    ]
    study = question.study(
        "look",
        [],
        workload={"sampler": samplers},
        analysis={"metrics": list(question.metrics)},
        design={"warm_up": 1 if not question.in_guest else 0},
        budget={
            **question.budget.table(LOOK, 1, min_blocks=TRIALS, max_blocks=TRIALS),
            "min_seconds": 0.0,
        },
    )
    _check_goal(study, question)
    question.say("1/4 look: where the time goes")
    with question.measured(study) as measurement:
        trials = [trial for trial in measurement.store.trials(measurement.run) if trial.status == "ok"]
        counted = _spent(question, measurement) if functions and study.target.clock == "virtual" else None
        metric = measurement.experiment.resolved.deciding[0].name
        limits = question.limits(measurement)
        run = measurement.run.id
        direction = question.direction or measurement.experiment.resolved.deciding[0].direction
    _check_not_best(metric, direction, trials)
    for constraint in limits:
        _check_constraint(constraint, trials)
    cpus = study.target.cpus if question.in_guest else os.cpu_count() or 1
    return _seen(run, metric, trials, cpus, counted, alone=question.in_guest)


def _check_goal(study: Study, question: Question) -> None:
    metric = deciding_metrics(study, question.catalogue)[0]
    if question.direction not in (None, metric.direction) and metric.direction != "none":
        raise RequestError(
            f"{metric.name} is better {metric.direction}; found ={question.direction}",
            hint=f"remove ={question.direction}",
            place=Place(f"--metric {metric.name}={question.direction}"),
        )
    if metric.direction == "none" and question.direction is None:
        raise RequestError(
            f"{metric.name} has no better direction, so nothing can be advised",
            hint=f"name the better one: --metric {metric.name}=lower, or =higher",
            place=Place(f"--metric {metric.name}"),
        )
    resolve_goal(question.goal, [find_metric(name, study, question.catalogue) for name in question.metrics])


def _check_not_best(metric: str, direction: Direction, trials: Sequence[Trial]) -> None:
    # Nothing can be less than none.
    values = [trial.metrics[metric] for trial in trials if metric in trial.metrics]
    if direction == "lower" and values and not any(values):
        raise RequestError(
            f"{metric} is 0 in {count_of(len(values), 'trial')} as it is: nothing can be better",
            hint="choose another metric, or a workload in which it is more",
            place=Place(f"--metric {metric}"),
        )


def _check_constraint(constraint: Constraint, trials: Sequence[Trial]) -> None:
    # An absolute one that the workload breaks as it is would be blamed on every setting.
    values = [trial.metrics[name] for trial in trials if (name := constraint.metric.column) in trial.metrics]
    if values and not constraint.relative and constraint.excess(typical := statistics.median(values), 1.0) > 0:
        present = f"{constraint.metric.name} is {amount(typical, constraint.metric.unit)}"
        raise RequestError(
            f"does not hold of the workload as it is: {present}",
            hint="give a limit that it keeps, or one relative to it such as +5%",
            place=Place(f"--constraint {constraint.text}"),
        )


def _spent(question: Question, measurement: MeasuredExperiment) -> Any:
    # What the instructions of a trial are spent on; None where nothing can count them.
    baseline = measurement.experiment.resolved.baseline
    try:
        guests = recorder()
        guests.record(
            measurement.run, baseline, measurement.store, question.catalogue, question.options, fresh=question.fresh
        )
    except AjusteError as failure:
        question.say(f"functions not counted: {failure.message}")
        return None
    return guests.spent(measurement.store.recorded(measurement.run).get(baseline))


def _seen(run: str, metric: str, trials: Sequence[Trial], cpus: int, spent: Any, *, alone: bool) -> Seen:
    looks = [look for look in map(_trial_activity, trials) if look is not None]
    activity = reduce(Activity.with_more, (activity for activity, _ in looks), Activity())
    exits = [exited for _, exited in looks]
    elapsed = [exited.wall_ns / 1e9 for exited in exits]
    values = [trial.metrics[metric] for trial in trials if metric in trial.metrics]
    spread = statistics.stdev(values) / abs(statistics.fmean(values)) if len(values) > 1 and any(values) else 0.0
    user, system = (sum(ns) / 1e9 for ns in ([e.user_ns for e in exits], [e.system_ns for e in exits]))
    usage = Usage(sum(elapsed), user, system, sum(e.voluntary_switches for e in exits), cpus, activity.figures, alone)
    look = Look(
        run=run,
        metric=metric,
        elapsed_s=statistics.median(elapsed) if elapsed else math.nan,
        spread=spread,
        trial_s=statistics.median(trial.host_seconds for trial in trials) if trials else 0.0,
        shares=time_shares(usage),
        causes=causes(usage),
        functions=_largest(spent.functions, spent.instructions) if spent else (),
        calls=_largest(spent.calls, spent.instructions) if spent else (),
    )
    return Seen(look, activity)


def _trial_activity(trial: Trial) -> tuple[Activity, Exited] | None:
    events = [parse_event(line) for line in trial.events.splitlines() if line.strip()]
    exited = next((event for event in events if isinstance(event, Exited) and event.role == "workload"), None)
    if exited is None:
        return None
    return Activity(figures_of(events), exited.wall_ns / 1e9), exited


@dataclass(frozen=True)
class Usage:
    """The use of trials together: seconds of elapsed, user and system time, voluntary switches, on ``cpus`` CPUs; and
    how far the kernel's ``figures`` (``SOURCE:NAME``) moved meanwhile. ``alone``: the machine is the workload's, so
    that what its CPUs do besides is known to be in its way.
    """

    elapsed_s: float
    user_s: float
    system_s: float
    switches: int
    cpus: int
    figures: Mapping[str, float]
    alone: bool = True

    def grew(self, *names: str) -> float:
        """Return how far counters of vmstat grew together."""
        return sum(self.figures.get(f"vmstat:{name}", 0.0) for name in names)

    def disk(self, field: str) -> float:
        """Return how far a field of all whole disks and partitions grew."""
        return sum(
            value
            for name, value in self.figures.items()
            if name.startswith("diskstats:") and name.endswith(f".{field}") and ":loop" not in name
        )

    def pressure(self, name: str) -> float:
        """Return the share of the time in which some task waited for ``cpu``, ``io`` or ``memory``."""
        return min(1.0, self.figures.get(f"pressure:{name}.some.total_us", 0.0) / 1e6 / self.elapsed_s)

    @property
    def width(self) -> int:
        """Return by how many CPUs the time is counted: one where the workload uses no more than one."""
        return self.cpus if self.user_s + self.system_s > 1.05 * self.elapsed_s else 1


def time_shares(usage: Usage) -> tuple[TimeShare, ...]:
    """Return where the elapsed time goes, most first. CPU time is per CPU that the workload uses."""
    if usage.elapsed_s <= 0:
        return ()
    kinds = ("user", "nice", "system", "irq", "softirq", "idle")
    ticks = {name: usage.figures.get(f"stat:cpu.{name}_ticks", 0.0) * _TICK_S for name in kinds}
    # Exact where the kernel has it; ticks of 10 ms otherwise.
    busy = usage.figures.get("schedstat:cpu.run_ns", 0.0) / 1e9 or ticks["user"] + ticks["nice"] + ticks["system"]
    waited = usage.figures.get("schedstat:cpu.wait_ns", 0.0) / 1e9 / usage.elapsed_s
    per_cpu = usage.elapsed_s * usage.width
    every = usage.elapsed_s * usage.cpus
    shares: dict[Where, float] = {
        "user": usage.user_s / per_cpu,
        "kernel": usage.system_s / per_cpu,
        "cpu-wait": max(usage.pressure("cpu"), 0.0) or min(1.0, waited),
        "disk-wait": usage.pressure("io"),
        "memory-wait": usage.pressure("memory"),
    }
    if usage.alone:
        shares["other-programs"] = max(0.0, busy - usage.user_s - usage.system_s) / every
        shares["interrupts"] = (ticks["irq"] + ticks["softirq"]) / every
        shares["idle"] = min(1.0, ticks["idle"] / every)
    else:
        shares["waiting"] = max(0.0, 1.0 - (usage.user_s + usage.system_s) / per_cpu)
    # What samplers see begins a little before the workload, and ends a little after it.
    some = [
        TimeShare(where=where, share=round(min(1.0, share), 4)) for where, share in shares.items() if share >= 0.005
    ]
    return tuple(sorted(some, key=lambda part: -part.share))


def causes(usage: Usage) -> dict[Cause, str]:
    """Return the causes of lost time that the figures show, each with its evidence in words.

    Generous on purpose: a cause that is missed hides settings that help, one too many costs some trials.
    """
    seconds = usage.elapsed_s
    if seconds <= 0:
        return {}
    waited = usage.figures.get("schedstat:cpu.wait_ns", 0.0) / 1e9
    busy = (usage.user_s + usage.system_s) / seconds
    packets = sum(usage.figures.get(f"softirqs:{name}", 0.0) for name in ("NET_RX", "NET_TX"))
    written = usage.disk("sectors_written") * 512
    read = usage.grew("pgpgin") * 1024
    faults, scanned = usage.grew("pgfault"), usage.grew("pgscan_kswapd", "pgscan_direct", "pgscan_khugepaged")
    swapped = usage.grew("pswpin", "pswpout", "zswpin", "zswpout")
    dirtied = max(usage.grew("nr_dirtied"), usage.grew("pgpgout") / 4) * 4096
    switches = usage.switches / seconds
    evidence: dict[Cause, str] = {}

    def add(cause: Cause, there: bool, words: str) -> None:
        if there:
            evidence[cause] = words

    add("user", usage.user_s >= 0.05 * seconds, f"{percent(usage.user_s / seconds)} of a CPU in its own code")
    add("kernel", usage.system_s >= 0.03 * seconds, f"{percent(usage.system_s / seconds)} of a CPU in the kernel")
    some = usage.pressure("cpu")
    pressed = f"some task waited for a CPU in {percent(round(some, 3))} of the time"
    counted = f"tasks waited {number(waited / seconds)} s per second for a CPU"
    add("cpu-wait", max(some, waited / seconds) >= 0.02, counted if waited else pressed)
    add("wakeup", switches >= 20 or busy < 0.9, f"{number(switches)} waits per second")
    add("migration", usage.cpus > 1 and waited + usage.switches > 0, f"{count_of(usage.cpus, 'CPU')}")
    add("faults", faults >= 500 * seconds or faults >= 2000, f"{number(faults / seconds)} page faults per second")
    add("reclaim", scanned > 0, f"{number(scanned)} pages scanned for reclaim")
    add("swap", swapped > 0, f"{number(swapped)} pages swapped")
    add("writeback", dirtied >= 1 << 20, f"{amount(dirtied, 'bytes')} of files changed")
    add("sync", written > 0 or usage.disk("flushes_completed") > 0, f"{amount(written, 'bytes')} written to disks")
    add("disk-write", written > 0, f"{amount(written, 'bytes')} written to disks")
    add("disk-read", read > 0, f"{amount(read, 'bytes')} read from disks")
    add("files", dirtied >= 1 << 20 or usage.system_s >= 0.1 * seconds, "work with files in the kernel")
    add("network", packets >= 10, f"{number(packets / seconds)} network softirqs per second")
    add("locks", usage.cpus > 1 and switches >= 100, f"{number(switches)} waits per second on several CPUs")
    return evidence


def _largest(instructions: Mapping[str, int], whole: int) -> tuple[HotSpot, ...]:
    largest = sorted(instructions.items(), key=lambda entry: -entry[1])[:_MOST_HOT]
    return tuple(HotSpot(name=name, share=min(1.0, count / whole)) for name, count in largest if count >= 0.01 * whole)

"""The share of the CPU that a task gets beside others that always want to run too, by the scheduler's weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ajuste.analysis.prediction.forecast import Forecast
from ajuste.analysis.prediction.weights import weight_of
from ajuste.model.plan import Attributes
from ajuste.parse.share import CPU_SHARE
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy

REAL_TIME: Final = ("fifo", "rr")
LEFT_BY_REAL_TIME: Final = 5.0
"""Per cent of each second that a real-time task leaves to others that wait: sched_rt_runtime_us, or the fair server's
runtime from Linux 6.12 on. A bound: a window that is no whole number of seconds can have less of it."""


def nice_weights(study: ResolvedStudy) -> Iterator[Forecast]:
    """A forecast of the workload's share for every configuration, in per cent.

    None for configurations whose tasks do not share one CPU, and for several real-time tasks. There is none for the
    background loads: the agent counts their CPU time from before the workload's start.
    """
    if CPU_SHARE not in {metric.name for metric in (*study.deciding, *study.described)}:
        return
    for configuration in study.configurations:
        own, others = configuration.workload.attributes, [c.attributes for c in configuration.background]
        if _on_one_cpu([own, *others], study.study.target.cpus):
            yield from _forecasts(configuration, own, others)


def _on_one_cpu(tasks: list[Attributes], cpus: int) -> bool:
    places = {task.affinity for task in tasks}
    return cpus == 1 or (len(places) == 1 and all(place is not None and len(place) == 1 for place in places))


def _forecasts(configuration: ResolvedConfiguration, own: Attributes, others: list[Attributes]) -> Iterator[Forecast]:
    name = configuration.configuration.name
    real_time = [task for task in (own, *others) if task.policy in REAL_TIME]
    if len(real_time) > 1:
        return
    total = sum(weight_of(task) for task in (own, *others) if task.policy not in REAL_TIME)
    if not real_time:
        share = 100 * weight_of(own) / total
        yield Forecast(name, CPU_SHARE, share, share, f"weight {weight_of(own)} of {total}")
    elif own.policy in REAL_TIME:
        least = 100 - (LEFT_BY_REAL_TIME if others else 0)
        yield Forecast(name, CPU_SHARE, least, 100, "a real-time task goes first; others are left 5 % of each second")
    else:
        most = LEFT_BY_REAL_TIME * weight_of(own) / total
        yield Forecast(name, CPU_SHARE, 0, most, "what a real-time task leaves, 5 % of each second")

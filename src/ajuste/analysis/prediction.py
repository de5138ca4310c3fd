"""Prediction of one metric under one configuration by a rule, before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ajuste.model.metric import Metric, PredictionRule
from ajuste.model.plan import REAL_TIME, Attributes
from ajuste.model.prediction import Prediction, worst_miss
from ajuste.model.results import Measured
from ajuste.model.wording import in_sentence, number, quantity
from ajuste.outputs.base import CPU_SHARE
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy

LOWEST_NICE: Final = -20

WEIGHTS: Final = (
    *(88761, 71755, 56483, 46273, 36291),
    *(29154, 23254, 18705, 14949, 11916),
    *(9548, 7620, 6100, 4904, 3906),
    *(3121, 2501, 1991, 1586, 1277),
    *(1024, 820, 655, 526, 423),
    *(335, 272, 215, 172, 137),
    *(110, 87, 70, 56, 45),
    *(36, 29, 23, 18, 15),
)
"""``sched_prio_to_weight`` of kernel/sched/core.c, the same in CFS and in EEVDF: from nice −20 to 19."""

WEIGHT_OF_IDLE: Final = 3
"""``WEIGHT_IDLEPRIO`` of kernel/sched/sched.h, whatever the nice value."""

_DEFAULT_CPU_WEIGHT: Final = 100
_WEIGHT_OF_DEFAULT: Final = 1024

LEFT_BY_REAL_TIME: Final = 5.0
"""Per cent of each second that a real-time task leaves to others that wait: sched_rt_runtime_us, or the fair server's
runtime from Linux 6.12 on. A bound: a window that is no whole number of seconds can have less of it."""

EXPIRE: Final = "vm.dirty_expire_centisecs"
INTERVAL: Final = "vm.dirty_writeback_centisecs"

DEFAULTS: Final = {EXPIRE: 3000, INTERVAL: 500}
"""The flusher thread's, of mm/page-writeback.c, in hundredths of a second."""


@dataclass(frozen=True)
class Forecast:
    """A prediction between ``low`` and ``high``, in the metric's unit; ``why`` gives the reason in a few words."""

    configuration: str
    metric: str
    low: float
    high: float
    why: str = ""


def nice_weight(nice: int) -> int:
    """Return the weight of an ordinary task, ``nice`` from −20 to 19."""
    return WEIGHTS[nice - LOWEST_NICE]


def group_weight(cpu_weight: int) -> int:
    """Return the weight of a control group with ``cpu_weight``: ``sched_weight_from_cgroup``, rounded as there."""
    return (2 * cpu_weight * _WEIGHT_OF_DEFAULT + _DEFAULT_CPU_WEIGHT) // (2 * _DEFAULT_CPU_WEIGHT)


def task_weight(attributes: Attributes) -> int:
    """Return the weight of a process that is not real-time, alone in its control group if it has one."""
    if attributes.cgroup_weight is not None:
        return group_weight(attributes.cgroup_weight)
    if attributes.policy == "idle":
        return WEIGHT_OF_IDLE
    return nice_weight(attributes.nice or 0)


def nice_weights(study: ResolvedStudy) -> Iterator[Forecast]:
    """Forecast the workload's share of the CPU for every configuration, in per cent.

    None for configurations whose tasks do not share one CPU, for several real-time tasks, and for background loads: the
    agent counts their CPU time from before the workload's start.
    """
    if CPU_SHARE not in {metric.name for metric in (*study.deciding, *study.described)}:
        return
    for configuration in study.configurations:
        workload, others = configuration.workload.attributes, [c.attributes for c in configuration.background]
        if _share_cpu([workload, *others], study.study.target.cpus):
            yield from _forecasts(configuration, workload, others)


def _share_cpu(tasks: list[Attributes], cpus: int) -> bool:
    places = {task.affinity for task in tasks}
    return cpus == 1 or (len(places) == 1 and all(place is not None and len(place) == 1 for place in places))


def _forecasts(
    configuration: ResolvedConfiguration, workload: Attributes, others: list[Attributes]
) -> Iterator[Forecast]:
    name = configuration.configuration.name
    real_time = [task for task in (workload, *others) if task.policy in REAL_TIME]
    if len(real_time) > 1:
        return
    total = sum(task_weight(task) for task in (workload, *others) if task.policy not in REAL_TIME)
    if not real_time:
        share = 100 * task_weight(workload) / total
        yield Forecast(name, CPU_SHARE, share, share, f"weight {task_weight(workload)} of {total}")
    elif workload.policy in REAL_TIME:
        least = 100 - (LEFT_BY_REAL_TIME if others else 0)
        yield Forecast(name, CPU_SHARE, least, 100, "a real-time task goes first; other tasks get 5 % of each second")
    else:
        most = LEFT_BY_REAL_TIME * task_weight(workload) / total
        yield Forecast(name, CPU_SHARE, 0, most, "what a real-time task leaves, 5 % of each second")


def writeback_delay(study: ResolvedStudy) -> Iterator[Forecast]:
    """Forecast each delay taken from a timeline, in seconds; none where the flusher never wakes by itself."""
    delays = [timeline.name for timeline in study.timelines if timeline.take == "delay"]
    for configuration in study.configurations:
        expire, interval = _setting(configuration, EXPIRE), _setting(configuration, INTERVAL)
        if interval == 0:
            continue
        why = f"expired after {expire:g} s, the flusher wakes every {interval:g} s"
        for metric in delays:
            yield Forecast(configuration.configuration.name, metric, expire, expire + interval, why)


def _setting(configuration: ResolvedConfiguration, name: str) -> float:
    # Return the value that the configuration writes, or the kernel's default; in seconds.
    written = {write.tunable: write.value for write in configuration.writes}
    return int(written.get(name, DEFAULTS[name])) / 100


FORECASTS: Mapping[str, Callable[[ResolvedStudy], Iterable[Forecast]]] = MappingProxyType(
    {"nice-weights": nice_weights, "writeback-delay": writeback_delay}
)
"""The rules of ``catalogue/rules.toml``."""


def predictions(study: ResolvedStudy, measured: Sequence[Measured]) -> tuple[Prediction, ...]:
    """Return what the study's rule predicts, with what was measured; empty where the study names no rule."""
    if study.rule is None:
        return ()
    measured_by_key = {(c.name, name): summary.mean for c in measured for name, summary in c.metrics.items()}
    return tuple(
        _beside(forecast, measured_by_key.get((forecast.configuration, forecast.metric)))
        for forecast in FORECASTS[study.rule.name](study)
    )


def agreement(rule: PredictionRule, predictions: Sequence[Prediction], metrics: Iterable[Metric]) -> str:
    """Say how well the rule predicted each of ``metrics``; empty where nothing can be compared."""
    sentences = []
    for metric in metrics:
        residuals = [(p, abs(p.residual)) for p in predictions if p.metric == metric.name and p.residual is not None]
        if not residuals:
            continue
        worst, off = max(residuals, key=lambda pair: pair[1])
        title = in_sentence(metric.title)
        many = "the one configuration" if len(residuals) == 1 else f"all {len(residuals)} configurations"
        if worst_miss(predictions, metric.name) is not None:
            most = quantity(number(off), metric.unit)
            sentences.append(
                f"The rule ({rule.title}) does not predict the {title}: at {worst.configuration} it is off by {most}."
            )
        elif off == 0:
            sentences.append(f"The rule ({rule.title}) predicts the {title} correctly in {many}.")
        else:
            most = quantity(number(off), metric.unit)
            sentences.append(
                f"The rule ({rule.title}) predicts the {title} to within {most} in {many}"
                + (f", worst at {worst.configuration}." if len(residuals) > 1 else ".")
            )
    return " ".join(sentences)


def _beside(forecast: Forecast, mean: float | None) -> Prediction:
    return Prediction(
        configuration=forecast.configuration,
        metric=forecast.metric,
        low=forecast.low,
        high=forecast.high,
        measured=mean,
        residual=None if mean is None else max(mean - forecast.high, 0.0) + min(mean - forecast.low, 0.0),
        why=forecast.why,
    )

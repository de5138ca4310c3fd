"""Results of simulated studies with a known answer."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import stats

from ajuste.analysis.block_values import Promise
from ajuste.analysis.pairs import clean_trials
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Point, Results, Summary
from ajuste.model.surface import Correlation, Surface
from ajuste.model.trial import Configuration, Factor, Slot, Trial
from ajuste.model.verdict import Verdict

MIN_GRANULARITY = "sched_min_granularity_ns"
WAKEUP_GRANULARITY = "sched_wakeup_granularity_ns"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"

INVOLUNTARY = Metric(
    name="involuntary-switches",
    title="Involuntary context switches",
    unit="",
    direction="none",
    scale="difference",
    resolution=1,
    what="How often the scheduler took the CPU away from the workload while it could still run.",
)
VOLUNTARY = Metric(
    name="voluntary-switches",
    title="Voluntary context switches",
    unit="",
    direction="none",
    scale="difference",
    resolution=1,
)
ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower", resolution=1e-9)
TASK_CLOCK = Metric(name="task-clock", title="Task clock", unit="ms", direction="lower", resolution=1e-6)
CPUS = Metric(name="cpus-utilized", title="CPUs utilised", unit="", direction="none")
MIGRATIONS = Metric(
    name="cpu-migrations", title="CPU migrations", unit="", direction="none", scale="difference", resolution=1
)
FAULTS = Metric(name="page-faults", title="Page faults", unit="", direction="none", scale="difference", resolution=1)
RSS = Metric(name="peak-rss", title="Peak resident memory", unit="bytes", direction="lower", resolution=4096)
CYCLES = Metric(name="cycles", title="Cycles", unit="", direction="none")
TIME = Metric(name="hackbench.time", title="Hackbench time", unit="s", direction="lower")

Truth = Callable[[dict[str, str], np.random.Generator], dict[str, float]]


@dataclass(frozen=True)
class Simulated:
    """A study to simulate: ``truth`` draws one trial; ``spoilt`` maps (block, configuration) to a status."""

    factors: tuple[Factor, ...]
    metrics: tuple[Metric, ...]
    deciding: tuple[Metric, ...]
    truth: Truth
    blocks: int
    warm_up: int = 0
    smallest_effect: float = 0.05
    spoilt: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    seed: int = 7


def simulate(study: Simulated, /, **about: Any) -> Results:
    """Trials from the truth; verdicts by a fixed-sample paired t interval, corrected by Bonferroni."""
    combinations = itertools.product(*(factor.levels for factor in study.factors))
    levels = [dict(zip((f.name for f in study.factors), values, strict=True)) for values in combinations]
    names = [" ".join(f"{name}={level}" for name, level in combination.items()) for combination in levels]
    trials = _trials(study, levels, names)
    clean = [trial for trial in trials if trial.status == "ok" and not trial.warm_up]
    missing = {metric.name: "No such file or directory" for metric in (CYCLES,) if metric in study.metrics}
    measured = tuple(
        Measured(
            name=name,
            levels=combination,
            baseline=place == 0,
            read_back=dict(combination),
            metrics=_summaries([t for t in clean if t.configuration == name], study.metrics),
            not_supported=missing,
        )
        for place, (name, combination) in enumerate(zip(names, levels, strict=True))
    )
    verdicts = tuple(
        _verdict(study, metric, name, names[0], clean)
        for metric in study.metrics
        if metric is not CYCLES
        for name in names[1:]
    )
    shapes, correlated = _surfaces(study, measured, trials, verdicts)
    defaults: dict[str, Any] = {
        "study": "simulated",
        "title": "A simulated study",
        "question": "Does it matter?",
        "answer": "It depends on the level.",
        "run": "3f1c",
        "seed": study.seed,
        "clock": "virtual",
        "digest": hashlib.sha256(repr(trials).encode()).hexdigest(),
        "stopped": "decided",
        "stopped_because": "every verdict is in",
        "level": 0.95,
        "smallest_effect": study.smallest_effect,
        "correction": f"Bonferroni over {len(names) - 1} configurations × {len(study.deciding)} deciding metrics",
        "blocks": study.blocks,
        "verdicts": verdicts,
        "configurations": measured,
        "factors": study.factors,
        "metrics": study.metrics,
        "trials": trials,
        "surfaces": shapes,
        "correlations": correlated,
        "created": "2026-03-01T12:00:00Z",
        "ajuste": "0.1.0",
    }
    return Results(**(defaults | about))


def _trials(study: Simulated, levels: list[dict[str, str]], names: list[str]) -> tuple[Point, ...]:
    random = np.random.default_rng(study.seed)
    points = []
    for block in range(study.warm_up + study.blocks):
        for position, place in enumerate(random.permutation(len(names))):
            status, reason = study.spoilt.get((block, int(place)), ("ok", ""))
            common: dict[str, Any] = {
                "configuration": names[place],
                "block": block,
                "position": position,
                "seed": 2**63 + block,
                "warm_up": block < study.warm_up,
            }
            values = study.truth(levels[place], random)
            points.append(Point(**common, status=status, reason=reason, metrics={} if status == "failed" else values))
            if status != "ok":
                again = study.truth(levels[place], random)
                points.append(Point(**common, status="ok", attempt=1, metrics=again))
    return tuple(points)


def _surfaces(
    study: Simulated, measured: tuple[Measured, ...], points: tuple[Point, ...], verdicts: tuple[Verdict, ...]
) -> tuple[tuple[Surface, ...], tuple[Correlation, ...]]:
    if find_spec("ajuste_search") is None:
        return (), ()
    from ajuste_search.surface.rank_correlations import correlations
    from ajuste_search.surface.surfaces import surfaces

    trials = [
        Trial(
            slot=Slot(
                block=p.block,
                position=p.position or 0,
                configuration=p.configuration,
                seed=p.seed or 0,
                warm_up=p.warm_up,
            ),
            attempt=p.attempt,
            status=p.status,  # type: ignore[arg-type]
            metrics=p.metrics,
        )
        for p in points
    ]
    configurations = [Configuration(name=m.name, levels=m.levels, baseline=m.baseline) for m in measured]
    others = [metric for metric in study.metrics if metric not in study.deciding]
    shapes = surfaces(
        study.factors,
        configurations,
        clean_trials(trials),
        study.deciding,
        others,
        verdicts,
        Promise(0.95, study.smallest_effect, order_matters=False),
    )
    return shapes, correlations(measured, study.deciding, study.metrics, 0.95) if shapes else ()


def _summaries(trials: list[Point], metrics: tuple[Metric, ...]) -> dict[str, Summary]:
    summaries = {}
    for metric in metrics:
        values = np.array([t.metrics[metric.name] for t in trials if metric.name in t.metrics])
        if len(values) == 0:
            continue
        sd = float(values.std(ddof=1)) if len(values) > 1 else None
        summaries[metric.name] = Summary(
            n=len(values),
            mean=float(values.mean()),
            median=float(np.median(values)),
            sd=sd,
            sem=None if sd is None else sd / math.sqrt(len(values)),
            minimum=float(values.min()),
            maximum=float(values.max()),
        )
    return summaries


def _verdict(study: Simulated, metric: Metric, name: str, baseline: str, clean: list[Point]) -> Verdict:
    value = {(t.configuration, t.block): t.metrics[metric.name] for t in clean}
    pairs = [(value[name, b], value[baseline, b]) for c, b in value if c == name and (baseline, b) in value]
    ratio = metric.scale == "ratio"
    deltas = np.array([math.log(x / y) if ratio else x - y for x, y in pairs])
    back = math.exp if ratio else float
    n = len(deltas)
    mean = float(deltas.mean())
    base = float(np.mean([y for _, y in pairs]))
    width = math.inf
    floor = metric.resolution / math.sqrt(6) / (base if ratio else 1)
    if n > 1:
        alpha = 0.05 / ((len({c for c, _ in value}) - 1) * len(study.deciding))
        width = float(stats.t.ppf(1 - alpha / 2, n - 1) * max(deltas.std(ddof=1), floor) / math.sqrt(n))
    band = math.log1p(study.smallest_effect) if ratio else study.smallest_effect * base
    low, high = (mean - width, mean + width) if width < math.inf else (None, None)
    word, reason, more = "undecided", f"after {n} blocks the interval still holds no effect and one that matters", None
    if low is not None and high is not None:
        if -band < low and high < band:
            word, reason = "equivalent", "the whole interval lies within the smallest effect that matters"
        elif low > 0 or high < 0:
            better = {"none": "differs", "lower": "improves", "higher": "worsens"}[metric.direction]
            worse = {"none": "differs", "lower": "worsens", "higher": "improves"}[metric.direction]
            word, reason = (better if high < 0 else worse), "the interval excludes zero"
        else:
            more = 4 * n
    return Verdict(
        configuration=name,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        scale=metric.scale,
        verdict=word,  # type: ignore[arg-type]
        estimate=back(mean),
        low=None if low is None else back(low),
        high=None if high is None else back(high),
        level=0.95,
        blocks=n,
        more_blocks=more,
        deciding=metric in study.deciding,
        reason=reason,
    )

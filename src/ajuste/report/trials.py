"""The trials as CSV (RFC 4180): one row a trial, one column a factor and a metric, nothing left out."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Final

from ajuste.model.origin import ELSEWHERE
from ajuste.model.prediction import PREDICTIONS
from ajuste.model.results import Point, Results
from ajuste.model.three_sigma import THREE_SIGMA
from ajuste.model.verdict import Verdict

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def trials_csv(results: Results) -> str:
    """Return all trials in the order of ``results``, figures as exactly as they were measured.

    Columns: configuration, the factors' levels, then block, position, seed, attempt, warm_up, status, reason, the
    machine if there are several, then the metrics in their base units (``elapsed [s]``). A metric that a trial does not
    have is an empty field. Text that a spreadsheet would take for a formula gets a leading apostrophe (OWASP, "CSV
    Injection").
    """
    if ELSEWHERE.of(results) is not None:
        return _values_csv(results)
    levels = {configuration.name: configuration.levels for configuration in results.configurations}
    machines = ["machine"] if any(trial.machine for trial in results.trials) else []
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(
        ["configuration"]
        + [_text(factor.name) for factor in results.factors]
        + ["block", "position", "seed", "attempt", "warm_up", "status", "reason"]
        + machines
        + _metric_columns(results)
    )
    for trial in results.trials:
        trial_levels = levels.get(trial.configuration, {})
        writer.writerow(
            [
                _text(trial.configuration),
                *(_text(trial_levels.get(factor.name, "")) for factor in results.factors),
                trial.block,
                trial.position,
                trial.seed,
                trial.attempt,
                "yes" if trial.warm_up else "no",
                _text(trial.status),
                _text(trial.reason),
                *(_text(trial.machine) for _ in machines),
            ]
            + [_figure(trial.metrics.get(metric.name)) for metric in results.metrics]
        )
    return out.getvalue()


def _values_csv(results: Results) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    blocks = ["block"] if results.blocks else []
    writer.writerow(["configuration", *blocks, *_metric_columns(results)])
    for trial in results.trials:
        figures = [_figure(trial.metrics.get(metric.name)) for metric in results.metrics]
        writer.writerow([_text(trial.configuration), *([trial.block] if blocks else []), *figures])
    return out.getvalue()


def _metric_columns(results: Results) -> list[str]:
    return [_text(f"{metric.name} [{metric.unit}]" if metric.unit else metric.name) for metric in results.metrics]


def _figure(value: float | None) -> str:
    return "" if value is None else repr(value)


def _text(text: str) -> str:
    if not text.startswith(_FORMULA_STARTS):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


# An excerpt of results that are too many to draw or read, and a note on the rest.


MOST_CONFIGURATIONS: Final = 60
"""Up to so many all are shown; of more the baseline and ``CHOSEN`` others."""
CHOSEN: Final = 40
MOST_TRIALS: Final = 3_000
"""Marks in one plot: a browser draws these in a moment, and more would cover each other."""


@dataclass(frozen=True)
class Excerpt:
    """``results`` with only what is shown. The remarks say what is not; they are empty where all is."""

    results: Results
    of_configurations: str = ""
    of_trials: str = ""

    @property
    def remark(self) -> str:
        return " ".join(filter(None, (self.of_configurations, self.of_trials)))


def make_excerpt(results: Results) -> Excerpt:
    """Return the configurations that differ most of many, and some whole blocks of many trials; all of few."""
    configurations = _chosen(results)
    if configurations is None and len(results.trials) <= MOST_TRIALS:
        return Excerpt(results)
    names = configurations or {configuration.name for configuration in results.configurations}
    trials = _some([trial for trial in results.trials if trial.configuration in names])
    subset = results.model_copy(
        update={
            "configurations": tuple(c for c in results.configurations if c.name in names),
            "verdicts": tuple(v for v in results.verdicts if v.configuration in names),
            "trials": trials,
            "three_sigma": tuple(row for row in THREE_SIGMA.of(results) if row.configuration in names),
            "predictions": tuple(p for p in PREDICTIONS.of(results) if p.configuration in names),
        }
    )
    return Excerpt(subset, _of_configurations(results, subset), _of_trials(results, subset))


def _chosen(results: Results) -> frozenset[str] | None:
    # The baseline and those whose verdicts are furthest from no effect, from both ends and of the deciding metrics
    # alternately; `None` for all.
    if len(results.configurations) <= MOST_CONFIGURATIONS:
        return None
    deciding: dict[str, list[Verdict]] = {}
    for verdict in results.verdicts:
        if verdict.deciding:
            deciding.setdefault(verdict.metric, []).append(verdict)
    turns = [_from_both_ends(verdicts) for verdicts in deciding.values()]
    in_turn = [name for name in chain.from_iterable(zip_longest(*turns)) if name is not None]
    fallback = [configuration.name for configuration in results.configurations]
    baseline = [configuration.name for configuration in results.configurations if configuration.baseline]
    return frozenset(list(dict.fromkeys([*baseline, *in_turn, *fallback]))[: CHOSEN + len(baseline)])


def _from_both_ends(verdicts: list[Verdict]) -> list[str]:
    # Names by effect: the lowest, the highest, the second lowest …; those that are decided first.
    names: list[str] = []
    for decided in (True, False):
        group = [verdict for verdict in verdicts if (verdict.verdict in ("improves", "worsens", "differs")) == decided]
        ranked = [verdict.configuration for verdict in sorted(group, key=_effect)]
        half = (len(ranked) + 1) // 2
        pairs = zip_longest(ranked[:half], reversed(ranked[half:]))
        names += [name for name in chain.from_iterable(pairs) if name is not None]
    return names


def _effect(verdict: Verdict) -> float:
    return verdict.estimate if verdict.estimate is not None and math.isfinite(verdict.estimate) else 0.0


def _some(trials: list[Point]) -> tuple[Point, ...]:
    # Of too many trials those of blocks at even distances.
    if len(trials) <= MOST_TRIALS:
        return tuple(trials)
    blocks = sorted({trial.block for trial in trials})
    every = math.ceil(len(trials) / MOST_TRIALS)
    drawn = frozenset(blocks[::every])
    return tuple(trial for trial in trials if trial.block in drawn)


def _of_configurations(results: Results, subset: Results) -> str:
    if len(subset.configurations) == len(results.configurations):
        return ""
    return (
        f"Of {len(results.configurations):,} configurations the baseline and the {len(subset.configurations) - 1} that "
        f"differ most are shown one by one; counts, heat maps and the JSON have all."
    )


def _of_trials(results: Results, subset: Results) -> str:
    if len(subset.trials) == results.tally.trials:
        return ""
    return f"Of {results.tally.trials:,} trials {len(subset.trials):,} are drawn; every figure uses all of them."

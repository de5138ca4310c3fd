"""Results from a table that was measured elsewhere: the document behind every report."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ajuste.analysis.answer import answer
from ajuste.analysis.assembly import Source, put_together
from ajuste.analysis.record import points, thinned
from ajuste.analysis.summary import summarise
from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable, Sample, Summarised, Values
from ajuste.model.metric import Metric
from ajuste.model.origin import ELSEWHERE, Elsewhere
from ajuste.model.results import Measured, Results, Summary
from ajuste.model.three_sigma import THREE_SIGMA, ThreeSigma
from ajuste.model.verdict import Verdict
from ajuste.model.wording import amount, count_of, listed, percent
from ajuste_analyse.comparison import (
    Comparison,
    blind_notes,
    compare_table,
    comparison_notes,
    count_comparisons,
    judge_comparison,
    summarise_sample,
    without_partner,
)
from ajuste_analyse.three_sigma import compare_row, fixed_chance, uncompared_row
from ajuste_stats.fixed_samples import FixedContrast

UNPAIRED: Final = (
    "The configurations were not measured in common blocks. A change between their measurements (temperature, other "
    "load, caches) looks like a difference, so the intervals hold only if nothing changed. In randomised blocks such "
    "drift cancels, because trials of the same moment are compared."
)
PAIRED: Final = (
    "Values of the same block are compared with each other, so drift from block to block cancels. The files do not "
    "say whether the order within the blocks was random."
)
SOME_PAIRED: Final = f"Some comparisons are within blocks, others are not. For the others: {UNPAIRED}"
FIXED: Final = (
    "Student's and Welch's t intervals. They require that the number of values was fixed in advance. Unlike the "
    "intervals of a study that Ajuste measures, they are not valid at every look: if you measure until a difference "
    "appears, you see a false one more often than the confidence promises."
)

MOST_DESCRIBED: Final = 3
"""The metrics in the answer where there is nothing to compare."""


@dataclass(frozen=True)
class TableQuestion:
    """A question about a table.

    Without ``baseline`` the first configuration is it; without ``metrics`` the table's main ones decide, and the others
    are only described. ``smallest_effect`` is a share of the baseline.
    """

    baseline: str | None = None
    metrics: tuple[str, ...] = ()
    confidence: float = 0.95
    smallest_effect: float = 0.05
    three_sigma: bool = False


def analyse_table(
    table: MeasuredTable,
    question: TableQuestion,
    *,
    files: Sequence[str] = (),
    reproduce: Sequence[str] = (),
    ajuste: str = "",
) -> Results:
    """Return the results of ``table``. Raises RequestError for unknown names, or without a common metric."""
    baseline = _baseline(table, question)
    deciding = _deciding(table, question)
    names = [metric.name for metric in deciding]
    count = count_comparisons(table, baseline, names)
    others = [name for name in table.configurations if name != baseline]
    if others and not count:
        each = "; ".join(
            f"{name} has {_some([metric.name for metric in table.metrics if (name, metric.name) in table.samples])}"
            for name in table.configurations[:4]
        )
        raise RequestError(
            f"no other configuration has a metric of {baseline}: {each}",
            hint="give the compared column or benchmark the same name in all files",
        )
    alpha = (1 - question.confidence) / max(1, count)
    comparisons = compare_table(table, baseline, alpha)
    verdicts = _verdicts(table, baseline, names, comparisons, question, alpha)
    configurations = tuple(_measured(table, name, baseline) for name in table.configurations)
    if not others:
        alpha = (1 - question.confidence) / len(deciding)
        configurations = (_with_intervals(configurations[0], table, names, alpha),)
    trials, tally = points(table)
    pairing = _pairing(comparisons)
    comparison_answer = answer(deciding, verdicts, configurations, {}, smallest_effect=question.smallest_effect)
    source = Source(
        study="analyse",
        title=_title(baseline, others),
        question=_question(baseline, others),
        level=question.confidence,
        smallest_effect=question.smallest_effect,
        digest=_digest(table),
        reproduce=reproduce,
        ajuste=ajuste,
    )
    elsewhere = Elsewhere(
        formats=table.format,
        files=tuple(files),
        values=sum(1 if isinstance(s, Summarised) else len(s.values) for s in table.samples.values()),
        paired=pairing,
        inference=FIXED,
        pairing={"all": PAIRED, "some": SOME_PAIRED, "none": UNPAIRED}[pairing] if others else "",
    )
    rows = _three_sigma(table, baseline, deciding, verdicts, comparisons) if question.three_sigma else ()
    return put_together(
        source,
        answer=comparison_answer if others else _described(deciding, configurations[0], question.confidence),
        correction=_correction(count, alpha, question.confidence),
        blocks=_blocks(table) if pairing != "none" else 0,
        verdicts=verdicts,
        configurations=configurations,
        metrics=(*deciding, *(metric for metric in table.metrics if metric.name not in names)),
        trials=trials,
        tally=tally,
        notes=(
            *table.notes,
            *comparison_notes(comparisons, names),
            *blind_notes(verdicts),
            *((UNPAIRED,) if others and pairing == "none" else ()),
            *thinned(len(trials), tally),
        ),
        facets={**THREE_SIGMA.document(rows), **ELSEWHERE.document(elsewhere)},
    )


def _baseline(table: MeasuredTable, question: TableQuestion) -> str:
    if question.baseline is None:
        return table.configurations[0]
    if question.baseline not in table.configurations:
        raise RequestError(
            f"--baseline {question.baseline}: configuration not found; expected one of {_some(table.configurations)}"
        )
    return question.baseline


def _deciding(table: MeasuredTable, question: TableQuestion) -> list[Metric]:
    known = {metric.name: metric for metric in table.metrics}
    for name in question.metrics:
        if name not in known:
            raise RequestError(f"--metric {name}: metric not found; expected one of {_some(list(known))}")
    return [known[name] for name in dict.fromkeys(question.metrics)] or [
        metric for metric in table.metrics if metric.name in table.deciding
    ]


def _some(names: Sequence[str]) -> str:
    return listed(list(names)) if len(names) <= 12 else f"{', '.join(names[:12])}, … ({len(names)})"


def _verdicts(
    table: MeasuredTable,
    baseline: str,
    deciding: Sequence[str],
    comparisons: dict[tuple[str, str], Comparison],
    question: TableQuestion,
    alpha: float,
) -> tuple[Verdict, ...]:
    verdicts = []
    for metric in sorted(table.metrics, key=lambda metric: metric.name not in deciding):
        decides = metric.name in deciding
        for name in table.configurations:
            comparison = comparisons.get((name, metric.name))
            if comparison is not None:
                verdict = judge_comparison(
                    comparison,
                    name,
                    metric,
                    confidence=question.confidence,
                    alpha=alpha,
                    smallest_effect=question.smallest_effect,
                    deciding=decides,
                )
                verdicts.append(verdict)
            elif name != baseline:
                lacking = baseline if (baseline, metric.name) not in table.samples else name
                verdicts.append(without_partner(name, metric, question.confidence, lacking, decides))
    return tuple(verdicts)


def _measured(table: MeasuredTable, name: str, baseline: str) -> Measured:
    return Measured(
        name=name,
        levels={},
        baseline=name == baseline,
        metrics={
            metric.name: _summary(table.samples[name, metric.name])
            for metric in table.metrics
            if (name, metric.name) in table.samples
        },
    )


def _summary(sample: Sample) -> Summary:
    if not isinstance(sample, Summarised):
        return summarise(sample.values)
    sd = sample.sem * math.sqrt(sample.n)
    return Summary(n=sample.n, mean=sample.mean, median=None, sd=sd, sem=sample.sem, minimum=None, maximum=None)


def _with_intervals(only: Measured, table: MeasuredTable, deciding: Sequence[str], alpha: float) -> Measured:
    metrics = dict(only.metrics)
    for name in deciding:
        summary = summarise_sample(table.samples[only.name, name])
        half = FixedContrast(summary.mean, summary.sem, summary.n - 1).half_width(alpha)
        if math.isfinite(half):
            metrics[name] = metrics[name].model_copy(update={"low": summary.mean - half, "high": summary.mean + half})
    return only.model_copy(update={"metrics": metrics})


def _described(deciding: Sequence[Metric], only: Measured, confidence: float) -> str:
    sentences = []
    for metric in deciding[:MOST_DESCRIBED]:
        summary = only.metrics[metric.name]
        values = count_of(summary.n, "value")
        text = f"{metric.title} of {only.name}: {amount(summary.mean, metric.unit)} on average of {values}"
        if summary.low is not None and summary.high is not None:
            ends = f"{amount(summary.low, metric.unit)} to {amount(summary.high, metric.unit)}"
            text += f", {percent(confidence)} interval {ends}"
        sentences.append(f"{text}.")
    if len(deciding) > MOST_DESCRIBED:
        sentences.append(f"Further metrics ({len(deciding) - MOST_DESCRIBED}) are below.")
    return " ".join([*sentences, "There is no other configuration to compare it with."])


def _pairing(comparisons: dict[tuple[str, str], Comparison]) -> Literal["all", "some", "none"]:
    within = [comparison.basis == "blocks" for comparison in comparisons.values()]
    return "none" if not any(within) else "all" if all(within) else "some"


def _blocks(table: MeasuredTable) -> int:
    samples = [sample for sample in table.samples.values() if isinstance(sample, Values)]
    return len({block for sample in samples for block in sample.blocks})


def _title(baseline: str, others: Sequence[str]) -> str:
    if not others:
        return baseline
    return f"{others[0]} against {baseline}" if len(others) == 1 else f"{len(others)} configurations against {baseline}"


def _question(baseline: str, others: Sequence[str]) -> str:
    if not others:
        return f"How well is {baseline} known?"
    return f"Does {others[0]} differ from {baseline}?" if len(others) == 1 else f"What differs from {baseline}?"


def _correction(count: int, alpha: float, confidence: float) -> str:
    if count < 2:
        return f"none needed: one comparison, at {percent(confidence)}"
    return (
        f"Bonferroni: {count:,} comparisons, each at {percent(1 - alpha)}, so that all of them hold together at "
        f"{percent(confidence)}"
    )


def _digest(table: MeasuredTable) -> str:
    hasher = hashlib.sha256()
    for (configuration, metric), sample in table.samples.items():
        summarised = isinstance(sample, Summarised)
        values = (sample.n, sample.mean, sample.sem) if isinstance(sample, Summarised) else sample.values
        blocks = () if isinstance(sample, Summarised) else sample.blocks
        head = json.dumps([configuration, metric, summarised, len(values), blocks], ensure_ascii=True)
        hasher.update(head.encode("ascii"))
        hasher.update(np.array(values, dtype="<f8").tobytes())
    return hasher.hexdigest()


def _three_sigma(
    table: MeasuredTable,
    baseline: str,
    deciding: Sequence[Metric],
    verdicts: Sequence[Verdict],
    comparisons: dict[tuple[str, str], Comparison],
) -> tuple[ThreeSigma, ...]:
    verdict_by_key = {(verdict.configuration, verdict.metric): verdict for verdict in verdicts}
    rows = []
    for metric in deciding:
        first = table.samples.get((baseline, metric.name))
        for name in table.configurations:
            sample = table.samples.get((name, metric.name))
            if sample is None:
                continue
            row = uncompared_row(name, metric, _summary(sample))
            comparison = comparisons.get((name, metric.name))
            if first is not None and comparison is not None:
                row = compare_row(
                    row,
                    _summary(first),
                    _summary(sample),
                    verdict_by_key[name, metric.name],
                    narrowing=_narrowing(first, sample, comparison),
                    too_early=fixed_chance(comparison.fixed.n, comparison.fixed.contrast.freedom, len(comparisons)),
                )
            rows.append(row)
    return tuple(rows)


def _narrowing(first: Sample, other: Sample, comparison: Comparison) -> float:
    # Return the factor by which blocks narrow the standard deviation of the difference; 1 without any.
    baseline_summary, other_summary = summarise_sample(first), summarise_sample(other)
    if comparison.basis != "blocks" or not comparison.fixed.spreads[0] > 0:
        return 1.0
    apart = [
        each.sem * math.sqrt(each.n) / (each.mean if comparison.effect.scale == "ratio" else 1)
        for each in (baseline_summary, other_summary)
    ]
    return math.hypot(*apart) / comparison.fixed.spreads[0]

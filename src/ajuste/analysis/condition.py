"""Conditions for which scripts fail: a configuration is proved to worsen, or something else came out than was expected.

The intervals of all verdicts hold together at the confidence of the study, whenever it stopped. So does every answer
here: it follows from the intervals alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ajuste.model.results import Measured, Results
from ajuste.model.trial import KERNEL_FACTOR
from ajuste.model.verdict import FailCondition, Verdict
from ajuste.model.wording import count_of, quantity
from ajuste.study.schema import ExpectedFigure, ExpectTable

_MOST_REASONS: Final = 3
Outcome = Literal["worsens", "undecided", "holds"]


@dataclass(frozen=True)
class Checked:
    """The outcome of ``condition``: the verdicts that prove it, and those that leave it open."""

    condition: FailCondition
    proving: tuple[Verdict, ...]
    open: tuple[Verdict, ...]

    @property
    def outcome(self) -> Outcome:
        return "worsens" if self.proving else "undecided" if self.open else "holds"


def check(conditions: Sequence[FailCondition], results: Results) -> tuple[Checked, ...]:
    """Return each of ``conditions`` with the verdicts of ``results`` that decide it."""
    means = {c.name: {name: summary.mean for name, summary in c.metrics.items()} for c in results.configurations}
    baseline_means = {
        (v.configuration, v.metric): means.get(results.reference(v.configuration), {}).get(v.metric, 0.0)
        for v in results.verdicts
    }
    return tuple(_check(condition, results.verdicts, baseline_means) for condition in conditions)


def _check(
    condition: FailCondition, verdicts: Sequence[Verdict], baseline_means: Mapping[tuple[str, str], float]
) -> Checked:
    relevant = [verdict for verdict in verdicts if verdict.deciding and verdict.metric in condition.metrics]
    outcomes = [
        (verdict, _outcome(verdict, condition.limit, baseline_means[verdict.configuration, verdict.metric]))
        for verdict in relevant
    ]
    return Checked(
        condition,
        tuple(verdict for verdict, outcome in outcomes if outcome == "worsens"),
        tuple(verdict for verdict, outcome in outcomes if outcome == "undecided"),
    )


def _outcome(verdict: Verdict, limit: float | None, baseline_mean: float) -> Outcome:
    if limit is None:
        return verdict.verdict if verdict.verdict in ("worsens", "undecided") else "holds"
    near, far = worsening(verdict, baseline_mean)
    if near > limit and verdict.verdict != "undecided":  # Machines that disagree leave it open.
        return "worsens"
    return "undecided" if far > limit or verdict.depends_on_machine else "holds"


def worsening(verdict: Verdict, baseline_mean: float) -> tuple[float, float]:
    """Return the least and the greatest worsening, as shares of the baseline; infinite for a baseline of 0."""
    none = 1.0 if verdict.scale == "ratio" else 0.0
    size = 1.0 if verdict.scale == "ratio" else abs(baseline_mean)
    low = -math.inf if verdict.low is None else _share(verdict.low - none, size)
    high = math.inf if verdict.high is None else _share(verdict.high - none, size)
    return (low, high) if verdict.direction == "lower" else (-high, -low)


def _share(difference: float, size: float) -> float:
    if size > 0 or difference == 0:
        return difference / size if size > 0 else 0.0
    return math.copysign(math.inf, difference)


@dataclass(frozen=True)
class Expectation:
    """``what`` is expected of its ``subject``, and the ``actual`` outcome."""

    subject: str
    what: str
    actual: str
    holds: bool


def expectations(expected: ExpectTable, results: Results, *, changed: bool) -> tuple[Expectation, ...]:
    """Return each of what is ``expected`` beside ``results``; a study that was ``changed`` has no expected digest."""
    compared: list[Expectation] = []
    if expected.digest and not changed:
        compared.append(_of_digest(expected, results))
    if expected.stalls is not None or results.stopped == "failed":
        compared.append(_of_failures(expected.stalls or 0, results))
    for figure in expected.figures:
        named = figure.configuration
        meant = [
            measured
            for measured in results.configurations
            if (measured.name == named if named else not measured.baseline)
        ]
        if not meant:
            what = f"{figure.metric} of {named or 'alternatives'}"
            compared.append(Expectation(what, what, "no such configuration", holds=False))
        for configuration in meant:
            compared.extend(_of_figure(figure, configuration, results))
    return tuple(compared)


def renamed(expected: ExpectTable, names: Mapping[str, str]) -> ExpectTable:
    """Return ``expected`` with levels of the factor kernel renamed as in ``names``."""
    levels = {f"{KERNEL_FACTOR}={text}": f"{KERNEL_FACTOR}={name}" for text, name in names.items()}
    figures = []
    for figure in expected.figures:
        configuration = figure.configuration
        for level in sorted(levels, key=len, reverse=True):
            configuration = configuration.replace(level, levels[level])
        figures.append(figure.model_copy(update={"configuration": configuration}))
    return expected.model_copy(update={"figures": tuple(figures)})


def _of_digest(expected: ExpectTable, results: Results) -> Expectation:
    holds = results.digest == expected.digest
    is_of_another = not holds and expected.ajuste not in ("", results.ajuste)
    why = f", by Ajuste {results.ajuste}; {expected.ajuste} wrote the file" if is_of_another else ""
    return Expectation("digest", f"digest {expected.digest}", f"{results.digest}{why}", holds)


def _of_failures(most: int, results: Results) -> Expectation:
    failed = results.tally.failed
    reasons = "; ".join(list(results.tally.reasons)[:_MOST_REASONS])
    what = f"at most {count_of(most, 'failed trial')}" if most else "no failed trial"
    if results.stopped == "failed":  # whatever the limit: there is no result
        return Expectation("failed trials", what, results.stopped_because.removeprefix("found "), holds=False)
    return Expectation("failed trials", what, f"{failed}: {reasons}" if failed else "0", failed <= most)


def _of_figure(figure: ExpectedFigure, measured: Measured, results: Results) -> Iterator[Expectation]:
    name = f"{figure.metric} of {measured.name}"
    if figure.verdict:
        verdicts = [
            verdict
            for verdict in results.verdicts
            if (verdict.configuration, verdict.metric) == (measured.name, figure.metric)
        ]
        word = verdicts[0].verdict if verdicts else "no verdict"
        yield Expectation(name, f"{name}: {' or '.join(figure.verdict)}", word, word in figure.verdict)
    if figure.least is None and figure.most is None:
        return
    limits = {"at least": figure.least, "at most": figure.most}
    unit = next((metric.unit for metric in results.metrics if metric.name == figure.metric), "")
    bounds = (f"{word} {quantity(f'{limit:g}', unit)}" for word, limit in limits.items() if limit is not None)
    what = f"mean {name}: {' and '.join(bounds)}"
    if figure.metric not in measured.metrics:
        yield Expectation(f"mean {name}", what, "not measured", holds=False)
        return
    mean = measured.metrics[figure.metric].mean
    holds = (figure.least is None or figure.least <= mean) and (figure.most is None or mean <= figure.most)
    yield Expectation(f"mean {name}", what, quantity(f"{mean:g}", unit), holds)

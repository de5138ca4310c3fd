"""The answer: verdicts in a sentence or two, claiming no more than they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ajuste.analysis.trend import Trend
from ajuste.model.metric import Metric
from ajuste.model.results import Measured
from ajuste.model.verdict import FactorEffect, Verdict
from ajuste.model.wording import amount, count_of, listed, number, percent, quantity, sentence_start
from ajuste_stats.precision import Precision
from ajuste_stats.terms import Word

MOST_NAMED = 4
"""More configurations than this are counted; only the best and worst are named."""

_COUNTED: dict[Word, str] = {
    "improves": "better",
    "worsens": "worse",
    "differs": "different",
    "equivalent": "equivalent",
    "undecided": "undecided",
}


def answer(
    metrics: Sequence[Metric],
    verdicts: Sequence[Verdict],
    configurations: Sequence[Measured],
    trends: Mapping[str, Trend],
    *,
    smallest_effect: float,
    precisions: Sequence[Precision[Metric]] = (),
) -> str:
    """Answer with a sentence for each deciding metric: the first in full, further ones counted without a trend.

    ``trends`` has those of the metrics that have one, ``precisions`` what is known where nothing is compared.
    """
    sentences: list[str] = []
    for metric in metrics:
        decided = [v for v in verdicts if v.metric == metric.name and v.deciding]
        trend, alike = trends.get(metric.name), all(v.verdict == "equivalent" for v in decided)
        if not decided:
            known = next((mean for mean in precisions if mean.quantity == metric), None)
            sentences.append(_only_described(metric, configurations, known))
        elif trend and trend.direction and not alike and not any(v.depends_on_machine for v in decided):
            sentences.append(_trend(metric, trend, decided, configurations))
        elif sentences and len(decided) > 1:
            sentences.append(f"{_tally(metric, decided, smallest_effect)}.")
        elif len(decided) <= MOST_NAMED:
            comparisons = "; ".join(_comparison(v, smallest_effect) for v in decided)
            sentences.append(f"{sentence_start(metric.title)}, against {_baseline(decided)}: {comparisons}.")
        else:
            sentences.append(_counted(metric, decided, smallest_effect))
    return " ".join(sentence for sentence in sentences if sentence)


def _only_described(metric: Metric, configurations: Sequence[Measured], mean: Precision[Metric] | None) -> str:
    known = [(c.name, c.metrics[metric.name]) for c in configurations if metric.name in c.metrics]
    if not known:
        return ""
    name, summary = known[0]
    text = f"{sentence_start(metric.title)} of {name}: {amount(summary.mean, metric.unit)} on average"
    if mean is None or mean.interval is None or summary.low is None or summary.high is None:
        return f"{text} of {number(summary.n)} runs, too few for an interval."
    interval = f"{amount(summary.low, metric.unit)} to {amount(summary.high, metric.unit)}"
    text += f", {percent(1 - mean.alpha)} interval {interval}, from {number(summary.n)} runs"
    if mean.known:
        return f"{text}."
    more = f"about {number(mean.more_runs)} more runs" if mean.more_runs else "many more runs"
    return f"{text}; {more} would narrow it to ±{amount(mean.wanted, metric.unit)}."


def _trend(metric: Metric, trend: Trend, verdicts: Sequence[Verdict], configurations: Sequence[Measured]) -> str:
    averages = {c.name: c.metrics[metric.name].mean for c in configurations if metric.name in c.metrics}
    levels = zip(trend.order, _levels(trend), strict=True)
    figures = listed(
        [f"{amount(averages[name], metric.unit)} at {level}" for name, level in levels if name in averages]
    )
    if trend.certain:
        manner = f"each increase of {trend.factor} {'raises' if trend.direction == 'rises' else 'lowers'} it"
        certainty = "Every step is statistically significant."
    else:
        manner = f"the average {trend.direction} as {trend.factor} rises"
        certainty = "Not every step is statistically significant."
    text = f"{sentence_start(metric.title)}: {manner}: {figures}. {certainty}"
    undecided = [v for v in verdicts if v.verdict == "undecided"]
    if undecided:
        text += f" Undecided against the baseline: {listed([_undecided(v) for v in undecided])}."
    return text


_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}


def _levels(trend: Trend) -> tuple[str, ...]:
    # Return the levels with human units; as they are written where these would make two look the same.
    try:
        labels = tuple(
            amount(float(level) * _SECONDS[trend.unit], "s") if trend.unit in _SECONDS else quantity(level, trend.unit)
            for level in trend.levels
        )
    except ValueError:
        return trend.levels
    return labels if len(set(labels)) == len(labels) else tuple(quantity(level, trend.unit) for level in trend.levels)


def _comparison(verdict: Verdict, smallest_effect: float) -> str:
    name = verdict.configuration
    if verdict.depends_on_machine or verdict.reverses:
        return f"{name}: {verdict.reason}"
    if words := verdict.within_limit(smallest_effect):
        return f"{name} is {words}"
    if verdict.verdict == "undecided":
        return f"{_undecided(verdict)} (undecided)"
    if verdict.verdict == "equivalent":
        return f"{name} is equivalent within ±{percent(smallest_effect)}"
    if verdict.verdict == "differs":
        return f"{name} differs ({_size(verdict)})"
    better = "better" if verdict.verdict == "improves" else "worse"
    return f"{name} is {better} ({_size(verdict)})"


def _size(verdict: Verdict) -> str:
    return f"{verdict.effect}, {percent(verdict.level)} interval {verdict.interval}"


def _undecided(verdict: Verdict) -> str:
    if verdict.depends_on_machine:
        return f"{verdict.configuration}, where it depends on the machine"
    return ", ".join(filter(None, (verdict.configuration, verdict.about_more)))


def _tally(metric: Metric, verdicts: Sequence[Verdict], smallest_effect: float) -> str:
    parts = []
    for word, adjective in _COUNTED.items():
        count = sum(v.verdict == word for v in verdicts)
        if count:
            parts.append(
                f"{count} {adjective}" + (f" within ±{percent(smallest_effect)}" if word == "equivalent" else "")
            )
    of = f"of {len(verdicts)} configurations against {_baseline(verdicts)}"
    return f"{sentence_start(metric.title)}, {of}: {listed(parts)}"


def _baseline(verdicts: Sequence[Verdict]) -> str:
    return "the baseline of their condition" if any(verdict.against for verdict in verdicts) else "the baseline"


def _counted(metric: Metric, verdicts: Sequence[Verdict], smallest_effect: float) -> str:
    text = _tally(metric, verdicts, smallest_effect)
    certain = [v for v in verdicts if v.verdict in ("improves", "worsens", "differs") and v.estimate is not None]
    if certain:
        ranked = sorted(certain, key=lambda v: v.estimate or 0.0)
        text += f"; lowest {ranked[0].configuration}, {_size(ranked[0])}"
        if len(ranked) > 1:
            text += f"; highest {ranked[-1].configuration}, {_size(ranked[-1])}"
    return text + "."


MOST_EFFECTS_NAMED = 6
"""The largest effects that are named."""


def factor_answer(metrics: Sequence[Metric], effects: Sequence[FactorEffect], smallest_effect: float) -> str:
    """Say what the factors do to each of ``metrics``, and whether two interact; the first metric in full."""
    sentences: list[str] = []
    for metric in metrics:
        of_metric = [effect for effect in effects if effect.metric == metric.name]
        mains = [effect for effect in of_metric if effect.kind == "main"]
        interactions = [effect for effect in of_metric if effect.kind == "interaction"]
        named = not sentences
        if mains:
            groups = _groups(mains, smallest_effect, ("matters", "matter", "does not", "do not"), named=named)
            factors = len({effect.factors for effect in mains})
            steps = "" if factors == len(mains) else f" with {len(mains)} steps from a baseline"
            sentences.append(
                f"{sentence_start(metric.title)}: of {factors} factors{steps}, each averaged over the others, {groups}."
            )
        if interactions:
            groups = _groups(interactions, smallest_effect, ("matters", "matter", "does not", "do not"), named=named)
            total = count_of(len(interactions), "interaction")
            sentences.append(f"Of {total} between two factors, {groups}.")
    return " ".join(sentences)


def _groups(
    effects: Sequence[FactorEffect], smallest_effect: float, words: tuple[str, str, str, str], *, named: bool
) -> str:
    matters, matter, does_not, do_not = words
    certain = [e for e in effects if e.verdict in ("improves", "worsens", "differs")]
    equivalent = [e for e in effects if e.verdict == "equivalent"]
    undecided = [e for e in effects if e.verdict == "undecided"]
    parts = []
    if certain:
        names = f": {_named(certain)}" if named else ""
        parts.append(f"{len(certain)} {matters if len(certain) == 1 else matter}{names}")
    if equivalent:
        parts.append(
            f"{len(equivalent)} {does_not if len(equivalent) == 1 else do_not}, within ±{percent(smallest_effect)}"
        )
    if undecided:
        few = f" ({listed([e.subject for e in undecided])})" if named and len(undecided) <= MOST_EFFECTS_NAMED else ""
        parts.append(f"{len(undecided)} {'is' if len(undecided) == 1 else 'are'} undecided{few}")
    return "; ".join(parts)


def _named(certain: Sequence[FactorEffect]) -> str:
    ranked = sorted(certain, key=lambda effect: effect.size, reverse=True)
    most = ranked[:MOST_EFFECTS_NAMED]
    names = [f"{effect.subject} ({effect.effect}, interval {effect.interval})" for effect in most]
    if len(ranked) > len(most):
        names.append(f"{len(ranked) - MOST_EFFECTS_NAMED} more")
    return listed(names)

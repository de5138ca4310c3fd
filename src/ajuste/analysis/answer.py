"""The answer: verdicts in a sentence or two, claiming no more than they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ajuste.analysis.precision import Precision
from ajuste.analysis.trend import Trend
from ajuste.analysis.wording import amount, change, listed, number, percent, quantity
from ajuste.model.metric import Metric
from ajuste.model.results import Measured
from ajuste.model.verdict import Verdict, Word

MOST_NAMED = 4
"""With more configurations than this they are counted and only the best and worst are named."""

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
    means: Sequence[Precision] = (),
) -> str:
    """A sentence for each deciding metric of ``metrics``: the first in full, further ones counted unless they have a
    trend. ``trends`` has those of the metrics that have one, ``means`` what is known where nothing is compared.
    """
    sentences: list[str] = []
    for metric in metrics:
        own = [v for v in verdicts if v.metric == metric.name and v.deciding]
        if not own:
            known = next((mean for mean in means if mean.metric == metric), None)
            sentences.append(_only_described(metric, configurations, known))
        elif (
            metric.name in trends and trends[metric.name].direction and not _all_equivalent(own) and not _disputed(own)
        ):
            sentences.append(_trend(metric, trends[metric.name], own, configurations))
        elif sentences and len(own) > 1:
            sentences.append(f"{_tally(metric, own, smallest_effect)}.")
        elif len(own) <= MOST_NAMED:
            sentences.append(_each(metric, own, smallest_effect))
        else:
            sentences.append(_counted(metric, own, smallest_effect))
    return " ".join(sentence for sentence in sentences if sentence)


def _title(metric: Metric) -> str:
    return metric.title[:1].upper() + metric.title[1:]


def _disputed(verdicts: Sequence[Verdict]) -> bool:
    """Whether machines say different things of one of them."""
    return any(v.depends_on_machine for v in verdicts)


def _all_equivalent(verdicts: Sequence[Verdict]) -> bool:
    return all(v.verdict == "equivalent" for v in verdicts)


def _only_described(metric: Metric, configurations: Sequence[Measured], mean: Precision | None) -> str:
    known = [(c.name, c.metrics[metric.name]) for c in configurations if metric.name in c.metrics]
    if not known:
        return ""
    name, summary = known[0]
    text = f"{_title(metric)} of {name}: {amount(summary.mean, metric.unit)} on average"
    if mean is None or mean.interval is None or summary.low is None or summary.high is None:
        return f"{text} of {number(summary.n)} runs, too few for an interval."
    interval = f"{amount(summary.low, metric.unit)} to {amount(summary.high, metric.unit)}"
    text += f", {percent(1 - mean.alpha)} interval {interval}, from {number(summary.n)} runs"
    if mean.known:
        return f"{text}."
    more = f"about {number(mean.more_runs)} more runs" if mean.more_runs else "many more runs"
    return f"{text}; {more} would tell it to ±{amount(mean.wanted, metric.unit)}."


def _trend(metric: Metric, trend: Trend, verdicts: Sequence[Verdict], configurations: Sequence[Measured]) -> str:
    means = {c.name: c.metrics[metric.name].mean for c in configurations if metric.name in c.metrics}
    figures = listed([quantity(number(means[name]), metric.unit) for name in trend.order if name in means])
    side = "higher" if trend.direction == "rises" else "lower"
    manner, certainty = f"{side} in the averages", "but not every step is certain"
    if trend.certain:
        manner, certainty = f"{side} from level to level", "and the interval of every step excludes no change"
    levels = quantity(listed(list(trend.levels)), trend.unit)
    text = f"{_title(metric)}: {manner} as {trend.factor} rises ({levels}): {figures} on average, {certainty}"
    undecided = [v for v in verdicts if v.verdict == "undecided"]
    if undecided:
        text += f"; against the baseline undecided: {listed([_undecided(v) for v in undecided])}"
    return text + "."


def _each(metric: Metric, verdicts: Sequence[Verdict], smallest_effect: float) -> str:
    return f"{_title(metric)}, against the baseline: " + "; ".join(_one(v, smallest_effect) for v in verdicts) + "."


def _one(verdict: Verdict, smallest_effect: float) -> str:
    name = verdict.configuration
    if verdict.depends_on_machine:
        return f"of {name} {verdict.reason}"
    if verdict.verdict == "undecided":
        return f"{_undecided(verdict)} (undecided)"
    if verdict.verdict == "equivalent":
        return f"{name} is equivalent within ±{percent(smallest_effect)}"
    if verdict.verdict == "differs":
        return f"{name} differs ({_size(verdict)})"
    better = "better" if verdict.verdict == "improves" else "worse"
    return f"{name} is {better} ({_size(verdict)})"


def _size(verdict: Verdict) -> str:
    def say(value: float | None) -> str:
        return change(value, verdict.scale, verdict.unit)

    return f"{say(verdict.estimate)}, {percent(verdict.level)} interval {say(verdict.low)} to {say(verdict.high)}"


def _undecided(verdict: Verdict) -> str:
    if verdict.depends_on_machine:
        return f"{verdict.configuration}, where it depends on the machine"
    if verdict.more_blocks is None:
        return verdict.configuration
    more = "1 more block" if verdict.more_blocks == 1 else f"{number(verdict.more_blocks)} more blocks"
    return f"{verdict.configuration}, about {more}"


def _tally(metric: Metric, verdicts: Sequence[Verdict], smallest_effect: float) -> str:
    parts = []
    for word, said in _COUNTED.items():
        count = sum(v.verdict == word for v in verdicts)
        if count:
            parts.append(f"{count} {said}" + (f" within ±{percent(smallest_effect)}" if word == "equivalent" else ""))
    return f"{_title(metric)}, of {len(verdicts)} configurations against the baseline: {listed(parts)}"


def _counted(metric: Metric, verdicts: Sequence[Verdict], smallest_effect: float) -> str:
    text = _tally(metric, verdicts, smallest_effect)
    certain = [v for v in verdicts if v.verdict in ("improves", "worsens", "differs") and v.estimate is not None]
    if certain:
        ranked = sorted(certain, key=lambda v: v.estimate or 0.0)
        text += f"; lowest {ranked[0].configuration}, {_size(ranked[0])}"
        if len(ranked) > 1:
            text += f"; highest {ranked[-1].configuration}, {_size(ranked[-1])}"
    return text + "."

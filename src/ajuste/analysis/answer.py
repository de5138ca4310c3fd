"""The answer: verdicts in a sentence or two, claiming no more than they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ajuste.analysis.effects import Trend
from ajuste.analysis.summary import Precision
from ajuste.model.metric import Metric
from ajuste.model.results import Measured
from ajuste.model.verdict import FactorEffect, LineEffect, Role, Verdict, Word
from ajuste.model.wording import amount, count_of, listed, number, percent, quantity

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
    return f"{text}; {more} would narrow it to ±{amount(mean.wanted, metric.unit)}."


def _trend(metric: Metric, trend: Trend, verdicts: Sequence[Verdict], configurations: Sequence[Measured]) -> str:
    means = {c.name: c.metrics[metric.name].mean for c in configurations if metric.name in c.metrics}
    levels = zip(trend.order, _levels(trend), strict=True)
    figures = listed([f"{amount(means[name], metric.unit)} at {level}" for name, level in levels if name in means])
    if trend.certain:
        manner = f"each increase of {trend.factor} {'raises' if trend.direction == 'rises' else 'lowers'} it"
        certainty = "Every step is statistically significant."
    else:
        manner = f"the average {trend.direction} as {trend.factor} rises"
        certainty = "Not every step is statistically significant."
    text = f"{_title(metric)}: {manner}: {figures}. {certainty}"
    undecided = [v for v in verdicts if v.verdict == "undecided"]
    if undecided:
        text += f" Undecided against the baseline: {listed([_undecided(v) for v in undecided])}."
    return text


_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}


def _levels(trend: Trend) -> tuple[str, ...]:
    """The levels with human units; as they are written where these would make two of them look the same."""
    try:
        said = tuple(
            amount(float(level) * _SECONDS[trend.unit], "s") if trend.unit in _SECONDS else quantity(level, trend.unit)
            for level in trend.levels
        )
    except ValueError:
        return trend.levels
    return said if len(set(said)) == len(said) else tuple(quantity(level, trend.unit) for level in trend.levels)


def _each(metric: Metric, verdicts: Sequence[Verdict], smallest_effect: float) -> str:
    return f"{_title(metric)}, against the baseline: " + "; ".join(_one(v, smallest_effect) for v in verdicts) + "."


def _one(verdict: Verdict, smallest_effect: float) -> str:
    name = verdict.configuration
    if verdict.depends_on_machine:
        return f"{name}: {verdict.reason}"
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


# Which factors matter, in a sentence.


MOST_EFFECTS_NAMED = 6
"""Of more effects than this only the largest are named."""


def factor_answer(metrics: Sequence[Metric], effects: Sequence[FactorEffect], smallest_effect: float) -> str:
    """What the factors do to each of ``metrics``, and whether two depend on each other: of the first metric in full, of
    further ones how many.
    """
    sentences: list[str] = []
    for metric in metrics:
        own = [effect for effect in effects if effect.metric == metric.name]
        mains = [effect for effect in own if effect.kind == "main"]
        interactions = [effect for effect in own if effect.kind == "interaction"]
        named = not sentences
        if mains:
            said = _groups(mains, smallest_effect, ("matters", "matter", "does not", "do not"), named=named)
            sentences.append(f"{_title(metric)}: of {_count(mains)} each averaged over the others, {said}.")
        if interactions:
            said = _groups(interactions, smallest_effect, ("matters", "matter", "does not", "do not"), named=named)
            of = count_of(len(interactions), "interaction")
            sentences.append(f"Of {of} between two factors, {said}.")
    return " ".join(sentences)


def _count(mains: Sequence[FactorEffect]) -> str:
    factors = len({effect.factors for effect in mains})
    if factors == len(mains):
        return f"{factors} factors,"
    return f"{factors} factors with {len(mains)} steps from a baseline,"


def _groups(
    effects: Sequence[FactorEffect], smallest_effect: float, words: tuple[str, str, str, str], *, named: bool
) -> str:
    one, some, no, none = words
    certain = [e for e in effects if e.verdict in ("improves", "worsens", "differs")]
    equivalent = [e for e in effects if e.verdict == "equivalent"]
    undecided = [e for e in effects if e.verdict == "undecided"]
    parts = []
    if certain:
        said = f": {_named(certain)}" if named else ""
        parts.append(f"{len(certain)} {one if len(certain) == 1 else some}{said}")
    if equivalent:
        parts.append(f"{len(equivalent)} {no if len(equivalent) == 1 else none}, within ±{percent(smallest_effect)}")
    if undecided:
        few = f" ({listed([e.subject for e in undecided])})" if named and len(undecided) <= MOST_EFFECTS_NAMED else ""
        parts.append(f"{len(undecided)} {'is' if len(undecided) == 1 else 'are'} undecided{few}")
    return "; ".join(parts)


def _named(certain: Sequence[FactorEffect]) -> str:
    """The largest of them, with estimate and interval."""
    ranked = sorted(certain, key=lambda effect: effect.size, reverse=True)
    said = [f"{one.subject} ({one.effect}, interval {one.interval})" for one in ranked[:MOST_EFFECTS_NAMED]]
    if len(ranked) > MOST_EFFECTS_NAMED:
        said.append(f"{len(ranked) - MOST_EFFECTS_NAMED} more")
    return listed(said)


# Which lines of a profile matter, in a sentence.


_SAID: dict[Role, tuple[str, str]] = {
    "helps": ("helps", "help"),
    "harms": ("harms", "harm"),
    "matters": ("matters", "matter"),
    "depends": ("depends on the others", "depend on the others"),
    "useless": ("is useless for this workload", "are useless for this workload"),
    "undecided": ("is undecided", "are undecided"),
}


def lines_answer(lines: Sequence[LineEffect], metrics: Sequence[Metric]) -> str:
    """What the whole does to each metric, and which lines do it: of further metrics than the first how many."""
    of_metrics = [[one for one in lines if one.metric == metric.name] for metric in metrics if lines]
    pairs = zip(of_metrics, metrics, strict=False)
    return " ".join(_of_metric(own, metric, named=own is of_metrics[0]) for own, metric in pairs)


def _of_metric(lines: Sequence[LineEffect], metric: Metric, *, named: bool) -> str:
    whole = next(one for one in lines if one.kind == "whole")
    by_role = {role: [one for one in lines if one.kind == "line" and one.role == role] for role in _SAID}
    said = [_group(role, own) if named else _count_of_lines(role, len(own)) for role, own in by_role.items() if own]
    return f"{_title(metric)}: the whole profile {_whole(whole)}. {'; '.join(said)}."


def _whole(whole: LineEffect) -> str:
    words = {
        "equivalent": "has no effect that matters",
        "undecided": "is undecided",
        "differs": "does",
    }
    if whole.estimate is None:
        return "is not measured yet"
    return f"{words.get(whole.verdict, whole.verdict)}, {whole.effect} ({whole.interval})"


def _group(role: Role, lines: Sequence[LineEffect]) -> str:
    one, several = _SAID[role]
    ordered = sorted(lines, key=lambda line: -abs(line.part or 0))
    named = [line.line + (f" ({_part(line)})" if role in ("helps", "harms", "matters") else "") for line in ordered]
    return f"{listed(named)} {one if len(lines) == 1 else several}"


def _count_of_lines(role: Role, lines: int) -> str:
    return f"{lines} {'line' if lines == 1 else 'lines'} {_SAID[role][lines != 1]}"


def _part(line: LineEffect) -> str:
    """A part of the whole, or where lines act against each other what the line does."""
    if line.part is not None and 0 < line.part <= 1:
        return f"{100 * line.part:.0f} % of that"
    return line.effect

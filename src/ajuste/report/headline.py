"""The answer in one sentence for each deciding metric: what to do, what it changes and by how much, and what is
undecided.

No statistic is named here, and no interval: these come after it. A sentence has at most ``MOST_WORDS`` words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import fmean, geometric_mean
from typing import Final

from ajuste.model.continuation import CONTINUATION
from ajuste.model.explained import EXPLAINED
from ajuste.model.live import LIVE
from ajuste.model.metric import Metric
from ajuste.model.origin import ELSEWHERE
from ajuste.model.prediction import PREDICTIONS, RULE, Prediction, worst_miss
from ajuste.model.relevance import NO_CHANCE, explains_all
from ajuste.model.results import Results
from ajuste.model.surface import SURFACES, Surface
from ajuste.model.trial import Factor
from ajuste.model.verdict import EFFECTS, LINES, RANKINGS, FactorEffect, Finding, LineEffect, Ranked, Ranking, Verdict
from ajuste.model.wording import (
    block_words,
    change,
    in_sentence,
    listed,
    number,
    percent,
    quantity,
    sentence_start,
    visible_line,
)
from ajuste.report.document import CommandBlock, Fact, Facts, Section
from ajuste.report.facets import facet_headline, is_settled_by_blocks
from ajuste.report.format import Labels, common_format, duration, numeric_levels
from ajuste.report.tables import deciding_metrics, is_screening, metric_verdicts, typical
from ajuste.report.verdicts import effect_style, known
from ajuste_stats.terms import SEEN

# What is not settled: which effects are excluded, how much longer it takes, and the command that goes on.


_MOST_NAMED: Final = 3
# A smallest effect beyond 100 % is of no use.
_LARGEST: Final = 1.0

MOST_WORDS: Final = 25

MOST_METRICS: Final = 4
"""Maximum number of metrics that have a sentence, the first ones."""

_FEWEST_OF_A_TREND: Final = 3

MOST_LEVELS: Final = 4
"""Maximum number of levels of a condition that have a sentence or a name, those with the largest effects."""

# The effect that the headline names, of several settings.
_OF_CONDITIONS: Final = ("improves", "differs", "worsens", "undecided", "equivalent")

_CERTAIN: Final = _OF_CONDITIONS[:3]

# Words that begin a sentence of this module; any other first word may be a name, whose letters stay.
_FIRST_WORDS: Final = frozenset({"Keep", "No", "None", "Not", "Nothing", "Raising", "The", "Use", "Whether", "With"})

_WITH_ARTICLE: Final = (
    *("bandwidth of ", "error of ", "longest ", "mean ", "median ", "share of ", "shortest ", "spread of "),
    *("time to ", "time until "),
)

_PERCENTILE: Final = re.compile(r"[\d.]+th percentile")


def unsettled_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return the section; empty if all is decided or could not matter."""
    findings: Sequence[Finding]
    if LINES.of(results):
        findings = [line for line in LINES.of(results) if line.kind == "line"]
    else:
        findings = EFFECTS.of(results) if is_screening(results) else results.verdicts
    undecided = [f for f in findings if f.deciding and f.verdict == "undecided"]
    findings = [f for f in undecided if f.is_open]
    unmeasured = results.stopped == "irrelevant" or (results.stopped == "failed" and not results.blocks)
    if unmeasured or not is_settled_by_blocks(results):
        return ()
    facts = tuple(_why(results, undecided, labels))
    if findings:
        facts += (*_excluded(results, findings, labels), *_needed(results, findings), *_decided_now(results, findings))
    if not facts:
        return ()
    continuation = CONTINUATION.of(results)
    go_on = (CommandBlock("go on", (continuation.command,)),) if findings and continuation else ()
    return (Section("Not settled", (Facts(facts), *go_on), "unsettled", "Not settled"),)


def _why(results: Results, undecided: Sequence[Finding], labels: Labels) -> Iterator[Fact]:
    # What is lacking where the number of trials is not all that is.
    titles = {metric.name: metric.title for metric in results.metrics}
    items = [
        f"{in_sentence(titles.get(f.metric, f.metric))} under {_subject(results, f, labels)}: {visible_line(f.reason)}"
        for f in undecided
        if f.too_coarse
        or f.few_trials
        or (f.low is None and f.high is None)
        or f.old == 0
        or (isinstance(f, Verdict) and f.typical is not None)
        or _is_withheld(results, f)
    ]
    if len(items) > _MOST_NAMED:
        items = [*items[:_MOST_NAMED], f"and so on for {len(items) - _MOST_NAMED} more"]
    if items:
        yield Fact("Why", items[0] if len(items) == 1 else "", items=tuple(items) if len(items) > 1 else ())


def _is_withheld(results: Results, finding: Finding) -> bool:
    # Whether the interval alone would decide, so that something else forbids it.
    if not isinstance(finding, Verdict) or finding.against_limit is not None or not finding.is_undecided:
        return False
    low, high, none = known(finding.low), known(finding.high), _no_effect(finding)
    certain = low is not None and high is not None and not low <= none <= high
    return certain or _reach(results, finding) < results.smallest_effect


def _subject(results: Results, finding: Finding, labels: Labels) -> str:
    if isinstance(finding, Verdict):
        return labels.by_name(results).get(finding.configuration, finding.configuration)
    return finding.subject


def _excluded(results: Results, findings: Sequence[Finding], labels: Labels) -> Iterator[Fact]:
    titles = {metric.name: metric.title for metric in results.metrics}
    bounded = [finding for finding in findings if known(finding.low) is not None or known(finding.high) is not None]
    items = []
    for finding in bounded[:_MOST_NAMED]:
        style = effect_style([finding], finding.unit)[finding.scale]
        low, high = (
            style.figure(b) if (b := known(bound)) is not None else None for bound in (finding.low, finding.high)
        )
        unit = f" {style.unit}" if style.unit else ""
        if low is not None and high is not None:
            outside = f"outside {low}{unit} to {high}{unit}"
        else:
            outside = f"above {high}{unit}" if high is not None else f"below {low}{unit}"
        subject = _subject(results, finding, labels)
        items.append(f"{in_sentence(titles.get(finding.metric, finding.metric))} under {subject}: effects {outside}")
    if len(bounded) > _MOST_NAMED:
        items.append(f"and so on for {len(bounded) - _MOST_NAMED} more")
    if not items:
        yield Fact("Excluded", "nothing yet")
    elif len(items) == 1:
        yield Fact("Excluded", items[0])
    else:
        yield Fact("Excluded", items=tuple(items))


def _needed(results: Results, findings: Sequence[Finding]) -> Iterator[Fact]:
    if ELSEWHERE.of(results) is not None:
        return  # what was measured elsewhere has no blocks to add: the reason says how many values would do
    more = [finding.more_blocks for finding in findings if finding.more_blocks]
    if len(more) < len(findings) or not more:
        yield Fact("Still needed", "unknown: too few blocks to say, or too much noise")
        return
    blocks = block_words(max(more), "more ", of_rounds=results.of_rounds)
    continuation = CONTINUATION.of(results)
    each = continuation.seconds_per_block if continuation else None
    time = f", {duration(max(more) * each)} at today's pace" if each else ""
    yield Fact("Still needed", f"about {blocks}{time}")


def _decided_now(results: Results, findings: Sequence[Finding]) -> Iterator[Fact]:
    # The smallest effect that would make all of them equivalent as they stand; not where trials or digits are lacking.
    blind = any(isinstance(f, Verdict) and (f.unseen or 0.0) > SEEN for f in findings) and ELSEWHERE.of(results) is None
    if blind or any(f.too_coarse or f.few_trials or _is_withheld(results, f) for f in findings):
        return
    wanted = [_reach(results, finding) for finding in findings]
    largest = max(wanted)
    if largest >= _LARGEST:
        return
    digits = 10.0 ** (math.floor(math.log10(100 * largest)) - 1) if largest > 0 else 1.0
    share = (math.floor(100 * largest / digits) + 1) * digits
    continuation = CONTINUATION.of(results)
    of_study = continuation is not None and " run " in continuation.command.partition(" -- ")[0]
    how = f"smallest_effect = {share / 100:.3g} in the study" if of_study else f"--min-effect {share:.3g}%"
    yield Fact("Decided now", f"with {how}: equivalent")


def _reach(results: Results, finding: Finding) -> float:
    # How far the interval reaches from no effect, as a share of the baseline.
    low, high = known(finding.low), known(finding.high)
    if low is None or high is None:
        return math.inf
    if finding.scale == "ratio":
        return max(high - 1, 1 / low - 1) if low > 0 else math.inf
    reference = results.reference(finding.configuration if isinstance(finding, Verdict) else "")
    baseline = next((c.metrics.get(finding.metric) for c in results.configurations if c.name == reference), None)
    return max(abs(low), abs(high)) / abs(baseline.mean) if baseline and baseline.mean else math.inf


@dataclass(frozen=True)
class Headline:
    """The finding on one metric, and the configuration that is best by it (empty where none is)."""

    metric: str
    sentence: str
    winner: str = ""


def headlines(results: Results, labels: Labels) -> tuple[Headline, ...]:
    """Return one for each deciding metric, the answer first; empty while there is no answer yet."""
    deciding = deciding_metrics(results)
    metrics = [metric for metric in results.metrics if metric.name in deciding] or list(results.metrics[:1])
    metrics.sort(key=lambda metric: (metric.cpu_time, not _is_changed(results, metric.name)))
    by_sentence: dict[str, Headline] = {}
    for metric in metrics[:MOST_METRICS]:
        for plain in _Subject(results, metric, labels).headlines(MOST_LEVELS if not by_sentence else 1):
            first = results.clock == "virtual" and not by_sentence
            headline = replace(plain, sentence=in_emulation(plain.sentence, metric)) if first else plain
            by_sentence.setdefault(headline.sentence, headline)
    sentences = tuple(by_sentence.values())
    if sentences and (untested := results.facets.get(LIVE, {}).get("untested")):
        sentence = f"{sentences[0].sentence} {untested}"
        return (replace(sentences[0], sentence=sentence), *sentences[1:])
    return sentences


def _is_changed(results: Results, metric: str) -> bool:
    # Whether an effect on it is certain: one that is must not stand below "none matters".
    findings = (*results.verdicts, *EFFECTS.of(results), *LINES.of(results))
    return any(finding.metric == metric and finding.verdict in _CERTAIN for finding in findings)


def in_emulation(sentence: str, metric: Metric) -> str:
    """Return ``sentence`` with its scope: the virtual clock shows what a kernel does, not how fast hardware is."""
    ordinary = sentence.split(maxsplit=1)[0].rstrip(":") in _FIRST_WORDS or sentence.startswith(
        sentence_start(metric.title)
    )
    return f"In emulation, {in_sentence(sentence) if ordinary else sentence}"


@dataclass(frozen=True)
class _Subject:
    # One metric of a run.
    results: Results
    metric: Metric
    labels: Labels

    def headlines(self, most: int) -> tuple[Headline, ...]:
        """Return at most so many: one, or one for each level of the study's conditions, the largest effect first."""
        by_sentence: dict[str, tuple[Headline, list[str]]] = {}
        parts = self._at_each_level()
        for level, part in sorted(parts.items(), key=lambda item: item[1].clarity, reverse=True):
            if (headline := part.headline()) is not None:
                by_sentence.setdefault(headline.sentence, (headline, []))[1].append(level)
        if not parts or not by_sentence:
            whole = self.headline()
            return () if whole is None else (whole,)
        return tuple(
            replace(headline, sentence=self._with_levels(headline.sentence, levels))
            for headline, levels in list(by_sentence.values())[:most]
        )

    def _at_each_level(self) -> dict[str, _Subject]:
        # Of each level of the conditions what was compared with the baseline there, as results of its own.
        results, labels = self.results, self.labels.choices
        references = list(dict.fromkeys(results.reference(c.name) for c in results.configurations))
        if len(references) < 2 or not labels.factors:
            return {}
        parts = {}
        for reference in references:
            there = [c for c in results.configurations if results.reference(c.name) == reference]
            names = {configuration.name for configuration in there}
            made = tuple(c.model_copy(update={"baseline": c.name == reference, "against": ""}) for c in there)
            update = {
                "configurations": made,
                "verdicts": tuple(v for v in results.verdicts if v.configuration in names),
                "rankings": tuple(r for r in RANKINGS.of(results) if r.reference == reference),
                "factors": labels.factors,
                "effects": (),
                "surfaces": (),
            }
            level = self.labels.condition(
                next(configuration for configuration in there if configuration.name == reference)
            )
            parts[level] = _Subject(results.model_copy(update=update), self.metric, labels)
        return parts

    @property
    def clarity(self) -> tuple[int, float]:
        """Return a key to sort by: certain effects come first, the largest of them before all."""
        verdicts = metric_verdicts(self.results, self.metric.name)
        certain = [verdict.size for verdict in verdicts if verdict.verdict in _CERTAIN]
        if certain:
            return 2, max(certain)
        return int(any(verdict.verdict == "undecided" for verdict in verdicts)), 0.0

    def _with_levels(self, sentence: str, levels: Sequence[str]) -> str:
        # `With load = alone, none of 4 alternatives matters: …`; of several levels the name of one factor once.
        first, rest = levels[0], [level.partition(" = ")[2] for level in levels[1:]]
        named = listed([first, *rest]) if first.count(" = ") == 1 else "; ".join(levels)
        ordinary = sentence.split(maxsplit=1)[0].rstrip(":") in _FIRST_WORDS
        return f"With {named}, {in_sentence(sentence) if ordinary else sentence}"

    def headline(self) -> Headline | None:
        if LINES.of(self.results):
            return self._of_lines([line for line in LINES.of(self.results) if line.metric == self.metric.name])
        if is_screening(self.results):
            effects = EFFECTS.of(self.results)
            return self._of_effects([effect for effect in effects if effect.metric == self.metric.name])
        if predicted := self._of_rule():
            return self._say(predicted)
        verdicts = metric_verdicts(self.results, self.metric.name)
        if any(verdict.verdict == "undecided" for verdict in verdicts) and self._reasons:
            return self._say(f"{self._reasons}.")
        if averaged := self._over_conditions() or self._over_other_factors(verdicts):
            return self._say(averaged)
        return self._of_verdicts(verdicts) if verdicts else self._described()

    def _over_conditions(self) -> str:
        names = self.labels.conditions
        conditions = [factor for factor in self.labels.factors if factor.name in names]
        effects = [effect for effect in self._mains if effect.factors[0] not in names]
        return self._average_effect(self._foremost(effects), conditions) if conditions and effects else ""

    def _over_other_factors(self, verdicts: Sequence[Verdict]) -> str:
        # No single configuration is settled, and yet a factor may be: all its levels' trials are compared.
        if not self._mains or any(verdict.verdict != "undecided" for verdict in verdicts):
            return ""
        best = self._foremost(self._mains)
        others = [factor for factor in self.labels.factors if factor.name != best.factors[0]]
        return self._average_effect(best, others) if others and best.verdict in _CERTAIN else ""

    @property
    def _mains(self) -> list[FactorEffect]:
        return [
            effect for effect in EFFECTS.of(self.results) if effect.metric == self.metric.name and effect.kind == "main"
        ]

    def _foremost(self, effects: Sequence[FactorEffect]) -> FactorEffect:
        return min(effects, key=lambda effect: (_OF_CONDITIONS.index(effect.verdict), -effect.size))

    def _average_effect(self, best: FactorEffect, others: Sequence[Factor]) -> str:
        over = f"on average over {listed([self._factor_levels(factor) for factor in others])}"
        factor, old, new = (
            visible_line(best.factors[0]),
            *(self.labels.level(best.factors[0], level) for level in (best.against[0], best.levels[0])),
        )
        if best.verdict == "equivalent":
            return f"{factor} does not matter: {self._title} stays within {self._band} {over}."
        if best.verdict == "undecided":
            after = f" after {self.results.counted_blocks}" if self.results.blocks else ""
            return f"Not settled between {factor} = {old} and {new}{after}: {self._title} {over}."
        verb = "cuts" if (best.estimate or 0.0) < _no_effect(best) else "raises"
        size = " from {} to {}".format(*self._amounts(*sides)) if (sides := self._sides(best)) else ""
        does = f"{verb} {self._title}{size} {over}"
        if best.verdict == "improves":
            return f"Use {factor} = {new}: it {does}."
        return (
            f"Keep {factor} = {old}: {factor} = {new} {does}."
            if best.verdict == "worsens"
            else f"{factor} = {new} {does}."
        )

    def _factor_levels(self, factor: Factor) -> str:
        levels = [self.labels.level(factor.name, level) for level in factor.levels]
        name = visible_line(factor.name)
        return f"{name} {listed(levels)}" if len(levels) <= MOST_LEVELS else f"{len(levels)} levels of {name}"

    def _sides(self, effect: FactorEffect) -> tuple[float, float] | None:
        old = self._average(effect, effect.against[0])
        if old is not None and effect.scale == "ratio" and effect.estimate is not None:
            return old, old * effect.estimate  # where trials were left out, the sides are not of the same blocks
        new = self._average(effect, effect.levels[0])
        return None if old is None or new is None else (old, new)

    def _average(self, effect: FactorEffect, level: str) -> float | None:
        # On the scale of the effect.
        there = [c for c in self.results.configurations if c.levels.get(effect.factors[0]) == level]
        verdicts = {verdict.configuration: verdict for verdict in metric_verdicts(self.results, self.metric.name)}
        figures = [typical(c, verdicts, mean) for c in there if (mean := self._mean(c.name)) is not None]
        if not figures or len(figures) < len(there):
            return None
        return geometric_mean(figures) if effect.scale == "ratio" and min(figures) > 0 else fmean(figures)

    @property
    def _reasons(self) -> str:
        # Why nothing that varies can matter, if so.
        return "; ".join(reason.sentence for reason in explains_all(NO_CHANCE.of(self.results), self.results.factors))

    def _of_rule(self) -> str:
        # A study with a rule asks whether the rule predicts what is measured.
        residuals = [
            abs(prediction.residual)
            for prediction in PREDICTIONS.of(self.results)
            if prediction.metric == self.metric.name and prediction.residual is not None
        ]
        rule = RULE.of(self.results)
        if rule is None or not residuals:
            return ""
        if miss := worst_miss(PREDICTIONS.of(self.results), self.metric.name):
            return self._of_miss(rule.title, miss)
        most = max(residuals)
        within = f" to within {_amount(_rounded_up(most), self.metric.unit)}" if most else ""
        every = f"all {len(residuals)} configurations" if len(residuals) > 1 else "the configuration"
        return f"{rule.title} predict {self._title}{within} in {every}."

    def _of_miss(self, title: str, miss: Prediction) -> str:
        nearest = miss.high if (miss.residual or 0.0) > 0 else miss.low
        predicted, measured = (_amount(value, self.metric.unit) for value in (nearest, miss.measured or 0.0))
        why = " Other work on this machine may be why; a guest has none." if self.results.clock == "wall" else ""
        name = self._setting(miss.configuration)
        return f"{title} do not predict {self._title}: it is {measured} under {name}, not {predicted}.{why}"

    def _of_verdicts(self, verdicts: Sequence[Verdict]) -> Headline:
        unmeasured = all(self._mean(c.name) is None for c in self.results.configurations)
        if not self.results.blocks and (self.results.stopped == "failed" or unmeasured):
            return self._say(f"Nothing was measured: {self.results.stopped_because}.")
        if self.metric.direction == "none":
            return self._say(self._without_direction(verdicts))
        better = [v for v in verdicts if v.verdict == "improves" and v.estimate is not None]
        undecided = [v for v in verdicts if v.verdict == "undecided" and self._reaches(v, _no_effect(v))]
        worse = [v for v in verdicts if v.verdict in ("worsens", "undecided") and v not in undecided]
        if better:
            return self._of_best(better, verdicts)
        if len(verdicts) == 1:
            return self._say(self._of_single(verdicts[0]))
        if all(v.verdict == "equivalent" for v in verdicts):
            return self._say(self._none_matters(len(verdicts)))
        # What is worse by less than matters, in too few trials to say so, is no reason.
        matters = [v for v in worse if not v.few_trials]
        if worse and not undecided and not matters:
            return self._say(f"Keep {self._baseline}: none of {len(verdicts)} alternatives improves {self._title}.")
        worse = matters
        verb = "raise" if self.metric.direction == "lower" else "cut"
        verb = f"{verb}s" if len(worse) == 1 else verb
        counted = f"{len(worse)} of {len(verdicts)} alternatives"
        if not undecided:
            return self._say(f"Keep {self._baseline}: {counted} {verb} {self._title}.")
        rest = f"{counted} {verb} {self._title}" if worse else self._title
        return self._say(f"{self._not_settled([v.configuration for v in undecided])}: {rest}.")

    def _of_best(self, better: Sequence[Verdict], verdicts: Sequence[Verdict]) -> Headline:
        # The winner of the ranking or of the surface: nothing that is shown is better than what is called best.
        ranking, surface = self._ranking, self._surface
        winner = ranking.winner if ranking else surface.best if surface else None
        ranked = [verdict for verdict in better if verdict.configuration == winner]
        toward = min if self.metric.direction == "lower" else max
        best = ranked[0] if ranked else toward(better, key=lambda verdict: verdict.estimate or 0.0)
        name = self._name(best)
        rivals = self._rivals(best, verdicts)
        if not rivals:
            explained = {entry.name for entry in EXPLAINED.of(self.results)}
            is_setting = bool(self.labels.factors) and all(factor.name in explained for factor in self.labels.factors)
            subject = f"Use {name}: it" if is_setting else name
            answer = f"{subject} {self._change(best)}."
            return self._say(f"{answer} {best.is_typical}" if best.is_typical else answer, best.configuration)
        first = f"{name} {self._change(best, briefly=True)}"
        sentence = f"Not settled: {first}, but {self._count_or_name(rivals)} may be better."
        return self._say(sentence, best.configuration)

    def _rivals(self, best: Verdict, verdicts: Sequence[Verdict]) -> list[str]:
        # The configurations that may be better than `best` by more than what matters.
        if (ranking := self._ranking) is not None and ranking.winner == best.configuration:
            rivals = set(ranking.contenders)  # Others are worse for certain, be it by less than matters.
            return [
                other.configuration
                for other in ranking.others
                if other.verdict == "undecided" and other.configuration in rivals and self._may_matter(other)
            ]
        if (surface := self._surface) is not None and surface.best == best.configuration:
            return [name for name in surface.best_set if name != surface.best]
        others = (v for v in verdicts if v is not best and v.verdict in ("improves", "undecided"))
        return [
            v.configuration
            for v in others
            if best.estimate is None or v.scale != best.scale or self._reaches(v, best.estimate)
        ]

    def _may_matter(self, ranked: Ranked) -> bool:
        # Whether it may be better than the winner by more than what matters, as far as its interval says.
        if ranked.scale != "ratio" or ranked.low is None or ranked.high is None:
            return True
        most = 1 + self.results.smallest_effect
        return ranked.low < 1 / most if self.metric.direction == "lower" else ranked.high > most

    def _reaches(self, verdict: Verdict, effect: float) -> bool:
        # Whether the interval reaches to the better side of `effect`.
        bound = verdict.low if self.metric.direction == "lower" else verdict.high
        return bound is None or (bound < effect if self.metric.direction == "lower" else bound > effect)

    @property
    def _ranking(self) -> Ranking | None:
        return next((ranking for ranking in RANKINGS.of(self.results) if ranking.metric == self.metric.name), None)

    @property
    def _surface(self) -> Surface | None:
        # Of a grid with too many configurations for a ranking.
        return next(
            (
                surface
                for surface in SURFACES.of(self.results)
                if surface.metric == self.metric.name and not surface.fixed
            ),
            None,
        )

    def _of_single(self, verdict: Verdict) -> str:
        if verdict.verdict == "worsens":
            return f"Keep {self._baseline}: {self._name(verdict)} {self._change(verdict)}."
        if verdict.verdict == "equivalent":
            return self._none_matters(1, self._name(verdict))
        if words := verdict.within_limit(self.results.smallest_effect):
            return f"{self._name(verdict)} is {words}: {self._title}."
        if verdict.is_undecided and (
            sentence := facet_headline(self.results, self._name(verdict), self._title, verdict)
        ):
            return sentence
        if verdict.depends_on_machine:
            return f"Whether {self._name(verdict)} changes {self._title} depends on the machine."
        if verdict.too_coarse and verdict.old is not None and verdict.old == verdict.new:
            same = f"{sentence_start(self._title)} is {self._amounts(verdict.old)[0]} with both"
            return f"{same}: its figures are too coarse to prove {self._band}."
        if verdict.too_coarse:
            return f"{self._not_settled([verdict.configuration])}: the figures of {self._title} are too coarse."
        if verdict.typical is not None:
            typical = change(verdict.typical, verdict.scale, verdict.unit)
            title = in_sentence(self.metric.title)
            return f"Typical {title} is {typical} with {self._name(verdict)}: far values leave the mean open."
        if verdict.few_trials:
            alike = f"{self._name(verdict)} looks alike: {self._title} stays within {self._band} in {verdict.counted}"
            return f"{alike}, too few to exclude rare costs."
        if verdict.reverses:
            return (
                f"Keep {self._baseline}: {self._name(verdict)} improves {self._title} at once, but not when it stays."
            )
        return f"{self._not_settled([verdict.configuration])}: {self._title}."

    def _none_matters(self, count: int, name: str = "") -> str:
        # It matters all the same if another metric that decides may change.
        stays = f"{self._title} stays within {self._band}"
        deciding = deciding_metrics(self.results)
        if any(v.metric in deciding and v.verdict != "equivalent" for v in self.results.verdicts):
            return f"{sentence_start(stays)} with {name if count == 1 else f'all {count} alternatives'}."
        return f"{name} does not matter: {stays}." if count == 1 else f"None of {count} alternatives matters: {stays}."

    def _not_settled(self, others: Sequence[str]) -> str:
        # `Not settled between A and B after 12 blocks`.
        after = f" after {self.results.counted_blocks}" if self.results.blocks else ""
        other = ""
        if len(others) == 1 and len(self.labels.factors) == 1 and not self.labels.factors[0].speaks_for_itself:
            # The level of the only factor, whose name stands before it.
            other = next((self.labels.short(c) for c in self.results.configurations if c.name == others[0]), "")
        return f"Not settled between {self._baseline} and {other or self._count_or_name(others)}{after}"

    def _count_or_name(self, configurations: Sequence[str]) -> str:
        if len(configurations) > 1:
            return f"{len(configurations)} others"
        return self._setting(configurations[0])

    def _without_direction(self, verdicts: Sequence[Verdict]) -> str:
        certain = [verdict for verdict in verdicts if verdict.verdict == "differs"]
        if len(certain) == len(verdicts) and (trend := self._trend()):
            return trend
        if len(verdicts) == 1 and certain:
            return f"{self._name(verdicts[0])} {self._change(verdicts[0])}."
        if certain:
            far = max(certain, key=lambda verdict: abs((verdict.estimate or 0.0) - _no_effect(verdict)))
            verb = "changes" if len(certain) == 1 else "change"
            changed = f"{len(certain)} of {len(verdicts)} alternatives {verb} {self._title}"
            return f"{changed}; most of all {self._name(far)}: {self._from_to(far)}."
        if all(verdict.verdict == "equivalent" for verdict in verdicts):
            return self._none_matters(len(verdicts), self._name(verdicts[0]))
        if len(verdicts) == 1:
            return self._of_single(verdicts[0])
        return f"{self._no_effect_proved(len(verdicts), 'alternative')}."

    def _no_effect_proved(self, count: int, noun: str) -> str:
        # `No effect on elapsed time proved for either line after 12 blocks`.
        which = {1: f"the {noun}", 2: f"either {noun}"}.get(count, f"any of {count} {noun}s")
        after = f" after {self.results.counted_blocks}" if self.results.blocks else ""
        return f"No effect on {self._title} proved for {which}{after}"

    def _trend(self) -> str:
        if len(self.labels.factors) != 1 or len(self.results.configurations) < _FEWEST_OF_A_TREND:
            return ""
        factor = self.labels.factors[0]
        if numeric_levels(factor) is None:
            return ""
        ordered = sorted(self.results.configurations, key=lambda c: float(c.levels[factor.name]))
        means = [self._mean(c.name) for c in ordered]
        known_means = [mean for mean in means if mean is not None]
        if len(known_means) < len(means):
            return ""
        steps = [after - before for before, after in pairwise(known_means)]
        if not (all(step > 0 for step in steps) or all(step < 0 for step in steps)):
            return ""
        verb = "increases" if steps[0] > 0 else "cuts"
        low, high = (self.labels.level(factor.name, c.levels[factor.name]) for c in (ordered[0], ordered[-1]))
        first, last = self._amounts(known_means[0], known_means[-1])
        return f"Raising {factor.name} from {low} to {high} {verb} {self._title} from {first} to {last}."

    def _of_effects(self, effects: Sequence[FactorEffect]) -> Headline | None:
        mains = [effect for effect in effects if effect.kind == "main"]
        certain = [effect for effect in mains if effect.verdict in ("improves", "worsens", "differs")]
        if not mains:
            return None
        if not certain:
            return self._say(f"{self._no_effect_proved(len(mains), 'factor')}.")
        most = max(certain, key=lambda effect: effect.size)
        step = f"{most.factors[0]} {most.against[0]} → {most.levels[0]}"
        changes = "changes" if len(certain) == 1 else "change"
        return self._say(f"{len(certain)} of {len(mains)} factors {changes} {self._title}; most of all {step}.")

    def _of_lines(self, lines: Sequence[LineEffect]) -> Headline | None:
        parts = [line for line in lines if line.kind == "line"]
        if not parts:
            return None
        doing = [line for line in parts if line.role in ("helps", "harms", "matters")]
        if not doing:
            if all(line.role == "useless" for line in parts):
                return self._say(f"None of {len(parts)} lines matters: {self._title} stays within {self._band}.")
            return self._say(f"{self._no_effect_proved(len(parts), 'line')}.")
        most = max(doing, key=lambda line: line.size)
        verb = {"helps": "helps most", "harms": "harms most"}.get(most.role, "matters most")
        counted = f"{len(doing)} of {len(parts)} lines {'changes' if len(doing) == 1 else 'change'} {self._title}"
        return self._say(f"{counted}; {most.line} {verb} ({_size_text(most)}).")

    def _described(self) -> Headline | None:
        mean = next((self._mean(configuration.name) for configuration in self.results.configurations), None)
        if mean is None or len(self.results.configurations) != 1:
            return None
        name = self.labels.short(self.results.configurations[0])
        return self._say(f"{sentence_start(self.metric.title)} of {name}: {self._amounts(mean)[0]} on average.")

    def _say(self, sentence: str, winner: str = "") -> Headline:
        return Headline(self.metric.name, visible_line(sentence), winner)

    @property
    def _title(self) -> str:
        # The title within a sentence: `elapsed time`, `the longest delay`.
        title = in_sentence(self.metric.title)
        return f"the {title}" if title.startswith(_WITH_ARTICLE) or _PERCENTILE.match(title) else title

    @property
    def _band(self) -> str:
        return f"±{percent(self.results.smallest_effect)}"

    @property
    def _baseline(self) -> str:
        return next((self.labels.setting(c) for c in self.results.configurations if c.baseline), "the baseline")

    def _name(self, verdict: Verdict) -> str:
        return self._setting(verdict.configuration)

    def _setting(self, name: str) -> str:
        configuration = next((candidate for candidate in self.results.configurations if candidate.name == name), None)
        return self.labels.setting(configuration) if configuration is not None else name

    def _change(self, verdict: Verdict, *, briefly: bool = False) -> str:
        # `cuts elapsed time from 8.1 s to 7.1 s (−12 %)`; `briefly` it is `cuts elapsed time by 12 %`.
        estimate = verdict.estimate or 0.0
        verb = "cuts" if estimate < _no_effect(verdict) else "raises"
        size = _size_text(verdict)
        if briefly and size.endswith("%"):
            return f"{verb} {self._title} by {size.lstrip('+−')}"
        return f"{verb} {self._title} {self._from_to(verdict)}{f' ({size})' if size else ''}"

    def _from_to(self, verdict: Verdict) -> str:
        # On the scale of the estimate; by the means where the verdict does not say.
        if verdict.old is not None and verdict.new is not None:
            return "from {} to {}".format(*self._amounts(verdict.old, verdict.new))
        baseline = next((c.name for c in self.results.configurations if c.baseline), "")
        before, after = self._mean(baseline), self._mean(verdict.configuration)
        if before is None or after is None:
            return "by an unknown amount"
        return "from {} to {}".format(*self._amounts(before, after))

    def _mean(self, configuration: str) -> float | None:
        return next(
            (
                known(measured.metrics[self.metric.name].mean)
                for measured in self.results.configurations
                if measured.name == configuration and self.metric.name in measured.metrics
            ),
            None,
        )

    def _amounts(self, *values: float) -> tuple[str, ...]:
        return tuple(map(partial(_amount, unit=self.metric.unit), values))


def _no_effect(finding: Finding) -> float:
    return 1.0 if finding.scale == "ratio" else 0.0


def _rounded_up(value: float) -> float:
    # To two digits, so that nothing exceeds it.
    if value <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.2g}")


def _amount(value: float, unit: str) -> str:
    fmt = common_format([value], "" if unit in ("1", "count") else unit)
    return quantity(number(fmt.scaled(value)), fmt.unit)


def _size_text(finding: Verdict | LineEffect) -> str:
    # `−12 %`; nothing for a difference, whose two ends say it.
    if finding.estimate is None or finding.scale != "ratio":
        return ""
    return finding.effect


def first_sentence(results: Results, answers: Sequence[Headline]) -> str:
    """Return the first sentence on a run whose headlines are ``answers``."""
    return _broken_guard(results) or (answers[0].sentence if answers else results.answer or "Nothing was measured.")


def _broken_guard(results: Results) -> str:
    # No verdict says that a configuration broke a guard.
    baseline = next((configuration.name for configuration in results.configurations if configuration.baseline), "")
    broken = set(results.facets.get(LIVE, {}).get("breaches", ())) - {baseline}
    return results.answer if broken else ""

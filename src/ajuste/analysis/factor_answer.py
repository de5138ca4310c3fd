"""Which factors matter, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.analysis.wording import change, listed, percent
from ajuste.model.metric import Metric
from ajuste.model.verdict import FactorEffect

MOST_NAMED = 6
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
            title = f"{metric.title[:1].upper()}{metric.title[1:]}"
            sentences.append(f"{title}, of {_count(mains)} each averaged over the other factors: {said}.")
        if interactions:
            said = _groups(interactions, smallest_effect, ("is there", "are there", "is not", "are not"), named=named)
            of = "1 interaction" if len(interactions) == 1 else f"{len(interactions)} interactions"
            sentences.append(f"Of {of} of two factors: {said}.")
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
        few = f" ({listed([e.subject for e in undecided])})" if named and len(undecided) <= MOST_NAMED else ""
        parts.append(f"{len(undecided)} {'is' if len(undecided) == 1 else 'are'} undecided{few}")
    return "; ".join(parts)


def _named(certain: Sequence[FactorEffect]) -> str:
    """The largest of them, with estimate and interval."""
    ranked = sorted(certain, key=_size, reverse=True)
    said = [f"{effect.subject} ({_words(effect)})" for effect in ranked[:MOST_NAMED]]
    if len(ranked) > MOST_NAMED:
        said.append(f"{len(ranked) - MOST_NAMED} more")
    return listed(said)


def _size(effect: FactorEffect) -> float:
    if effect.estimate is None:
        return 0.0
    return max(effect.estimate, 1 / effect.estimate) if effect.scale == "ratio" else abs(effect.estimate)


def _words(effect: FactorEffect) -> str:
    def say(value: float | None) -> str:
        return change(value, effect.scale, effect.unit)

    return f"{say(effect.estimate)}, interval {say(effect.low)} to {say(effect.high)}"

"""What a search has found, in a sentence or two."""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.analysis.wording import amount, change, listed, percent
from ajuste.model.metric import Metric
from ajuste.model.tuning import KeptLimit, Tuning
from ajuste.model.verdict import Verdict


def search_answer(
    tuning: Tuning, verdicts: Sequence[Verdict], objectives: Sequence[Metric], smallest_effect: float
) -> str:
    """The answer; ``verdicts`` are those of the check."""
    if not tuning.chosen:
        return f"The search has not come to an end yet; {_tried(tuning)} so far."
    by_name = {(v.configuration, v.metric): v for v in verdicts}
    if not tuning.check_blocks:
        return f"{_tried(tuning).capitalize()}; the most promising, {tuning.chosen[0]}, is not checked yet."
    if tuning.winner is None:
        return _nothing_allowed(tuning, by_name, objectives)
    if len(objectives) > 1:
        return _front(tuning, by_name, objectives)
    verdict = by_name[tuning.winner, objectives[0].name]
    zone = percent(smallest_effect)
    effect = _effect(verdict, objectives[0])
    if verdict.verdict == "equivalent" and tuning.flat:
        said = (
            f"No setting matters here: {_tried(tuning)}, and even the best, {tuning.winner}, makes no difference of "
            f"more than ±{zone}: {effect}."
        )
    elif verdict.verdict == "improves":
        said = f"The best of {_count(tuning)} is {tuning.winner}: {effect}, {_fresh(tuning)}."
    elif verdict.verdict == "undecided":
        said = (
            f"The most promising of {_count(tuning)} is {tuning.winner}: {effect}, {_fresh(tuning)}, "
            f"which does not decide it yet."
        )
    else:
        said = (
            f"Nothing better than the baseline was found: of {_count(tuning)} the most promising is "
            f"{tuning.winner}: {effect}, {_fresh(tuning)}."
        )
    naive = "" if tuning.flat else _naive(tuning, verdict)
    return " ".join(filter(None, (said, naive, *_limits(tuning, tuning.winner))))


def search_question(tuning: Tuning, objectives: Sequence[Metric], combinations: int) -> str:
    """What a search asks, whatever its study does."""
    titles = [metric.title.lower() for metric in objectives]
    so_that = f", so that {listed(list(tuning.constraints))}" if tuning.constraints else ""
    if len(titles) > 1:
        return f"Which of {combinations:,} combinations are best between {listed(titles)}{so_that}?"
    most = "highest" if objectives[0].direction == "higher" else "lowest"
    return f"Which of {combinations:,} combinations has the {most} {titles[0]}{so_that}?"


def _count(tuning: Tuning) -> str:
    return "1 configuration that was tried" if tuning.tried == 1 else f"{tuning.tried} configurations that were tried"


def _tried(tuning: Tuning) -> str:
    return "1 configuration was tried" if tuning.tried == 1 else f"{tuning.tried} configurations were tried"


def _fresh(tuning: Tuning) -> str:
    blocks = "1 fresh block" if tuning.check_blocks == 1 else f"{tuning.check_blocks} fresh blocks"
    return f"measured in {blocks} that had no part in the choice"


def _effect(verdict: Verdict, metric: Metric) -> str:
    def say(value: float | None) -> str:
        return change(value, verdict.scale, metric.unit)

    return f"{metric.title.lower()} {say(verdict.estimate)} ({say(verdict.low)} to {say(verdict.high)})"


def _naive(tuning: Tuning, verdict: Verdict) -> str:
    if tuning.best_trial is None or verdict.scale != tuning.scales[0]:
        return ""
    said = change(tuning.best_trial, tuning.scales[0], verdict.unit)
    return f"The best single trial of the search had shown {said}."


def _front(tuning: Tuning, by_name: dict[tuple[str, str], Verdict], objectives: Sequence[Metric]) -> str:
    parts = [
        f"{name}: {', '.join(_effect(by_name[name, metric.name], metric) for metric in objectives)}"
        for name in tuning.chosen
    ]
    noun = "one configuration is" if len(parts) == 1 else f"{len(parts)} configurations are"
    titles = listed([metric.title.lower() for metric in objectives])
    said = f"Between {titles}, {noun} worth choosing from, {_fresh(tuning)}: {'; '.join(parts)}."
    return " ".join((said, *(text for name in tuning.chosen for text in _limits(tuning, name))))


def _nothing_allowed(tuning: Tuning, by_name: dict[tuple[str, str], Verdict], objectives: Sequence[Metric]) -> str:
    nearest = tuning.chosen[0]
    constraints = "the constraint" if len(tuning.constraints) == 1 else "all constraints"
    effects = ", ".join(_effect(by_name[nearest, metric.name], metric) for metric in objectives)
    said = f"None of {_count(tuning)} keeps {constraints}. The nearest is {nearest}: {effects}."
    return " ".join((said, *_limits(tuning, nearest)))


def _limits(tuning: Tuning, name: str) -> list[str]:
    words = {"yes": "is kept", "no": "is broken", "unknown": "may be kept or broken"}
    return [
        f'The constraint "{one.text}" {words[one.holds]} by {name}: {_range(one)}.'
        for one in tuning.limits
        if one.configuration == name
    ]


def _range(one: KeptLimit) -> str:
    def say(value: float | None) -> str:
        return change(value, "ratio", "") if one.relative else "?" if value is None else amount(value, one.unit)

    return f"{say(one.estimate)} ({say(one.low)} to {say(one.high)})"

"""The section on a search besides its verdict: how it went, where it looked, which settings matter."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.model.wording import count_of, percent, visible_line
from ajuste.report.document import Paragraph, Picture, Section
from ajuste.report.format import Labels
from ajuste_search.tuning.model import Tuning, tuning_of
from ajuste_search.tuning.plots import front_plot, importance_plot, search_history_plot, search_map

PLACE: Final = "metrics"
MORE_BLOCKS: Final = False  # its trials are allotted


def sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return the section on the search; empty if there was none."""
    tuning = tuning_of(results)
    if tuning is None:
        return ()
    known = {metric.name: metric for metric in results.metrics}
    metrics = tuple(known[name] for name in tuning.objectives)
    plots = (
        search_history_plot(tuning, metrics[0]),
        search_map(results, tuning, metrics[0], labels),
        front_plot(results, tuning, metrics),
        importance_plot(tuning, metrics[0]),
    )
    drawn = tuple(plot for plot in plots if plot is not None)
    paragraphs = map(Paragraph, _search_sentences(tuning))
    return (Section("The search", (*paragraphs, *map(Picture, drawn)), "search", "Search"),)


def _search_sentences(tuning: Tuning) -> Iterator[str]:
    in_check = sum(step.phase == "check" for step in tuning.steps)
    searched = len(tuning.steps) - in_check
    yield (
        f"{count_of(tuning.tried, 'configuration')} in {searched} trials beside the baseline ({tuning.sampler}), then "
        f"{count_of(in_check, 'trial')} of the choice in {count_of(tuning.check_blocks, 'fresh block')}; "
        f"{tuning.trials} of at most {tuning.allowed} trials in all."
    )
    if tuning.importance:
        shares = ", ".join(
            f"{visible_line(i.factor)} {percent(round(i.share, 2))} ({percent(round(i.low, 2))} to "
            f"{percent(round(i.high, 2))})"
            for i in tuning.importance
        )
        yield (
            f"Share of the variation that disappears if a setting is held fixed, by the model of the search: {shares}. "
            "If settings interact, the shares add up to more than 100 %."
        )


def compared(results: Results) -> Collection[str]:
    """Return the baseline and what was checked; while nothing is, all that was tried."""
    tuning = tuning_of(results)
    return {
        configuration.name
        for configuration in results.configurations
        if tuning is None or not tuning.check_blocks or configuration.baseline or configuration.name in tuning.chosen
    }


def draws(results: Results, metric: str) -> bool:  # noqa: ARG001 - of every run and metric
    """Return True: what a search has tried makes no lines, and its map is drawn."""
    return True


def objection(results: Results, configuration: str) -> RequestError | None:
    """Return the error for a configuration that may break a constraint of the search."""
    tuning = tuning_of(results)
    if tuning is None or not (broken := tuning.not_kept(configuration)):
        return None
    return RequestError(
        f"{configuration} may break the constraint {broken[0].text!r} of the search",
        hint="choose a configuration that meets every constraint",
    )

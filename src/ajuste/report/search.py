"""What is told of a search besides its verdict: how it went, where it looked, which settings matter."""

from __future__ import annotations

from collections.abc import Iterator

from ajuste.analysis.wording import percent
from ajuste.model.results import Results
from ajuste.model.tuning import Tuning
from ajuste.report.format import count_of
from ajuste.report.labels import Labels
from ajuste.report.plots.importance import importance_plot
from ajuste.report.plots.search_front import front_plot
from ajuste.report.plots.search_history import history_plot
from ajuste.report.plots.search_map import search_map
from ajuste.report.surfaces import SurfaceSection
from ajuste.report.visible import visible_line


def search_sections(results: Results, labels: Labels) -> tuple[SurfaceSection, ...]:
    """The section on the search; nothing where none was made."""
    tuning = results.tuning
    if tuning is None:
        return ()
    known = {metric.name: metric for metric in results.metrics}
    metrics = tuple(known[name] for name in tuning.objectives)
    plots = (
        history_plot(tuning, metrics[0], "search-history"),
        search_map(results, tuning, metrics[0], labels, "search-map"),
        front_plot(results, tuning, metrics, "search-front"),
        importance_plot(tuning, metrics[0], "search-importance"),
    )
    drawn = tuple(plot for plot in plots if plot is not None)
    return (SurfaceSection("The search", tuple(search_sentences(tuning)), drawn),)


def search_sentences(tuning: Tuning) -> Iterator[str]:
    """How it went, and which settings matter; the answer says the rest."""
    in_check = sum(step.phase == "check" for step in tuning.steps)
    searched = len(tuning.steps) - in_check
    yield (
        f"{count_of(tuning.tried, 'configuration')} in {searched} trials beside the baseline ({tuning.sampler}), then "
        f"{count_of(in_check, 'trial')} of the choice in {count_of(tuning.check_blocks, 'fresh block')}; "
        f"{tuning.trials} of at most {tuning.allowed} trials in all."
    )
    if tuning.importance:
        shares = ", ".join(
            f"{visible_line(one.factor)} {percent(round(one.share, 2))} ({percent(round(one.low, 2))} to "
            f"{percent(round(one.high, 2))})"
            for one in tuning.importance
        )
        yield (
            f"How much of what varies goes away if a setting is held fixed, by the model of what was tried: {shares}. "
            "Where settings interact the shares add up to more than all."
        )

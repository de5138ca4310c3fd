"""The section on figures that samplers read over time."""

from __future__ import annotations

from typing import Final

from ajuste.model.results import Results
from ajuste.report.document import Picture, Section
from ajuste.report.format import Labels
from ajuste.report.plots.timelines import timelines_plot

_ABOUT: Final = (
    "Values sampled while the workload ran and after it. Bold: the middle trial of each configuration; thin: the "
    "others."
)


def sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return the section with all figures in one picture; empty if none can be drawn."""
    plot = timelines_plot(results, labels)
    if plot is None:
        return ()
    return (Section("Timelines", (Picture(plot, "Timelines"),), "timelines-section", "Timelines", _ABOUT),)

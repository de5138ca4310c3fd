"""What is told of an experiment on a running service besides its verdicts: guards, and the metrics over time."""

from __future__ import annotations

from collections.abc import Iterator

from ajuste.model.live import duration
from ajuste.model.results import Results
from ajuste.model.wording import visible_line
from ajuste.report.document import Block, Paragraph, Picture, Section
from ajuste.report.format import count_of
from ajuste.report.labels import Labels
from ajuste.report.plots.live import live_plots


def live_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """The section with the timeline; nothing of other experiments."""
    if results.live is None:
        return ()
    pictures = (Picture(plot) for plot in live_plots(results, labels))
    return (Section("Over time", (*_sentences(results), *pictures), "live", "Over time"),)


def _sentences(results: Results) -> Iterator[Block]:
    live = results.live
    assert live is not None
    left = sum(bool(one.flag) for one in live.slices)
    yield Paragraph(
        f"{count_of(len(live.slices), 'slice')} of {duration(live.slice_s)}; the first {duration(live.washout_s)} of "
        f"each did not count. {count_of(left, 'slice')} left out of the verdicts."
    )
    for name, why in live.breaches.items():
        yield Paragraph(f"{visible_line(name)}: {visible_line(why)}. The old values were restored at once.")
    if live.guards and not live.breaches:
        yield Paragraph(f"No guard was broken: {visible_line('; '.join(live.guards))}.")


def live_headline(results: Results) -> str:
    """The answer where a configuration broke a guard: no verdict says so."""
    baseline = next((one.name for one in results.configurations if one.baseline), "")
    broken = results.live is not None and set(results.live.breaches) - {baseline}
    return results.answer if broken else ""

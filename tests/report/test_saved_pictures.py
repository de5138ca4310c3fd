"""Names of the files that pictures of a report are saved as."""

from __future__ import annotations

from ajuste.model.results import Results
from ajuste.report.document import saved_pictures
from ajuste.report.results import results_report


def test_every_plot_has_a_name_of_its_own(grid: Results, timed: Results, undecided: Results) -> None:
    for results in (grid, timed, undecided):
        page = results_report(results)
        pictures = list(saved_pictures(page))
        assert {picture.plot.name for picture in pictures} == {picture.plot.name for picture in page.pictures}
        stems = [picture.stem for picture in pictures]
        assert len(set(stems)) == len(stems)
    stems = [picture.stem for picture in saved_pictures(results_report(grid))]
    assert stems[:2] == ["hackbench-time-over-both", "hackbench-time-against-sched-min-granularity-ns"]
    assert "hackbench-time-every-trial" in stems

"""Versions of the kernel in the report: what is said and drawn."""

from __future__ import annotations

from typing import Any

import pytest
from tests.report.plotted import checked
from tests.report.simulated import HOSTILE

from ajuste.model.history import History, VersionChange, VersionPoint
from ajuste.model.results import Results
from ajuste.report.document import Paragraph, Picture, Section
from ajuste.report.format import result_labels
from ajuste.report.plots.plot import figure_json
from ajuste_ci.versions.sections import sections as history_sections

VERSIONS = {"5.10": ("CFS", 2.0), "6.1": ("CFS", 2.02), "6.12": ("EEVDF", 1.5)}


def history(metric: str, **about: Any) -> History:
    points = tuple(
        VersionPoint(
            configuration=f"kernel=debian:{version}",
            level=f"debian:{version}",
            version=version,
            scheduler=scheduler,
            value=value,
            low=value - 0.1,
            high=value + 0.1,
        )
        for version, (scheduler, value) in VERSIONS.items()
    )
    fields = {"metric": metric, "scale": "ratio", "flavour": "", "points": points, "known": True, "level": 0.95}
    return History.model_validate({**fields, "blocks": 6, **about})


@pytest.fixture
def with_histories(grid: Results) -> Any:
    """``told(history, …)``: results with these histories of the first metric."""

    def made(*abouts: dict[str, Any]) -> Results:
        name = grid.metrics[0].name
        return grid.model_copy(update={"histories": tuple(history(name, **about) for about in abouts)})

    return made


FALL = {"changes": (VersionChange(before="6.1", after="6.12", change=0.75),)}


def sentences(results: Results) -> list[str]:
    title = results.metrics[0].title
    (section,) = history_sections(results, result_labels(results))
    paragraphs = [block.text for block in section.blocks if isinstance(block, Paragraph)]
    return [paragraph.removeprefix(title).strip(": ") for paragraph in paragraphs]


def pictures(section: Section) -> list[Picture]:
    return [block for block in section.blocks if isinstance(block, Picture)]


def test_a_change_is_named_with_the_scheduler_that_came_with_it(with_histories: Any) -> None:
    assert sentences(with_histories(FALL)) == [
        "1 change: from 6.1 to 6.12, where EEVDF replaced CFS, by −25 %.",
    ]


def test_no_change_and_no_knowledge_are_told_apart(with_histories: Any) -> None:
    assert sentences(with_histories({}, {"known": False, "flavour": "rt"})) == [
        "(cloud): no change of more than 5 % from 5.10 to 6.12.",
        "(PREEMPT_RT): not yet precise enough to locate a change from 5.10 to 6.12.",
    ]


def test_the_picture_has_versions_in_order_the_border_and_the_change(with_histories: Any) -> None:
    results = with_histories(FALL)
    (section,) = history_sections(results, result_labels(results))
    drawn = checked(pictures(section)[0].plot).to_plotly_json()
    assert list(drawn["layout"]["xaxis"]["ticktext"]) == list(VERSIONS)
    assert drawn["layout"]["shapes"][0]["x0"] == 1.5
    assert list(drawn["data"][1]["text"]) == ["−25 %"]


def test_names_are_text(with_histories: Any) -> None:
    results = with_histories({"flavour": HOSTILE}, {"fixed": {"factor": HOSTILE}})
    (section,) = history_sections(results, result_labels(results))
    assert "<script>" not in figure_json(pictures(section)[0].plot.figure)


def test_nothing_is_told_where_no_versions_are_compared(grid: Results) -> None:
    assert history_sections(grid, result_labels(grid)) == ()

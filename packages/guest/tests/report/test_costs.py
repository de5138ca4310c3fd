"""Costs in the report, in the terminal and as a picture."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from matplotlib.patches import Rectangle
from rich.console import Console
from tests.report.plotted import checked

from ajuste.model.cost import KINDS, CostComparison, CostFunction, CostPart, NamedCosts
from ajuste.model.explanation import EXPLANATIONS, Recorded
from ajuste.model.results import Results
from ajuste.report.document import Folded, Picture, Section, Table
from ajuste.report.format import result_labels
from ajuste.report.html import render_html, write_report
from ajuste.report.markdown import markdown
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from ajuste_guest.analysis.explanation import explanation
from ajuste_guest.report.costs import cost_tables, costs_plots, costs_sections
from ajuste_guest.report.scheduling import explanation_report
from tiers import slow

EVIL = "</script><b>\x1b[31m"
"""A name that a program's file gives a function."""

FUNCTIONS = (
    CostFunction(name="main", file="/bin/program", space="user"),
    CostFunction(name="__x64_sys_sched_yield", file="", space="kernel"),
    CostFunction(name="schedule", file="", space="kernel"),
    CostFunction(name=EVIL, file=f"/lib/{EVIL}", space="user"),
    CostFunction(name="asm_exc_page_fault", file="", space="kernel"),
)
CALLED = ("750 µs", "75 ms")


def costs(yields: int, note: str = "") -> NamedCosts:
    """A workload that yields so often."""
    calls, itself = (1, yields, yields, 5, 3), (1_000_000, 100 * yields, 50 * yields, 70, 90)
    part = CostPart(
        role="workload",
        tasks=2,
        user=1_000_070,
        kernel=150 * yields + 90,
        loads=0,
        stores=0,
        branches=0,
        switches_in=yields,
        parents=(-1, 0, 1, 0, 3),
        functions=(0, 1, 2, 3, 4),
        kinds=tuple(map(KINDS.index, ("start", "syscall", "call", "call", "exception"))),
        calls=calls,
        instructions=itself,
    )
    return NamedCosts(faulted=0, functions=FUNCTIONS, parts=(part,), notes=(note,) if note else ())


def recorded(name: str, yields: int) -> Recorded:
    return Recorded(configuration=name, block=0, seed=7, problem="no tracefs", costs=costs(yields, "No names here."))


@pytest.fixture(scope="module")
def explained(granularity: Results) -> Results:
    baseline, changed, *_ = (configuration.name for configuration in granularity.configurations)
    return granularity.model_copy(
        update={"explanations": (explanation(recorded(changed, 20), recorded(baseline, 2_000)),)}
    )


@pytest.fixture(scope="module")
def compared(explained: Results) -> CostComparison:
    comparison = EXPLANATIONS.of(explained)[0].costs
    assert comparison is not None
    return comparison


@pytest.fixture(scope="module")
def section(explained: Results) -> Section:
    (costs_section,) = costs_sections(explained, result_labels(explained))
    return costs_section


def rows(table: Table) -> dict[str, tuple[str, ...]]:
    return {str(row.cells[0]): tuple(map(str, row.cells[1:])) for group in table.groups for row in group.rows}


def test_the_rows_add_up_to_the_whole_difference(compared: CostComparison) -> None:
    functions, tasks, entries, most = cost_tables(compared, CALLED)
    assert rows(functions) == {
        "__x64_sys_sched_yield": ("200,000", "2,000", "−198,000", "2,000 → 20"),
        "schedule": ("100,000", "1,000", "−99,000", "2,000 → 20"),
        "3 other functions": ("1,000,160", "1,000,160", "0", "9"),
        "All": ("1,300,160", "1,003,160", "−297,000", ""),
    }
    assert rows(tasks)["the workload"] == ("1,300,160", "1,003,160", "−297,000", "2,000 → 20")
    assert rows(entries) == {
        "sched_yield": ("300,000", "3,000", "−297,000", "2,000 → 20"),
        "page_fault (exception)": ("90", "90", "0", "3"),
    }
    assert next(iter(rows(most))) == "main (program)"


def test_what_differs_is_said_first(compared: CostComparison) -> None:
    assert compared.sentences == (
        "This configuration carries out 297,000 fewer instructions than the baseline (1 million instead of 1.3 "
        "million, −22.8 %).",
        "The functions that differ most are __x64_sys_sched_yield (−198,000) and schedule (−99,000): together 100 % of "
        "the whole.",
        "sched_yield: 20 times instead of 2,000, −297,000 instructions with all that it calls.",
    )
    same = explanation(recorded("own", 20), recorded("baseline", 20)).costs
    assert same is not None
    assert same.sentences == ("Both trials carry out 1 million instructions, not one more or less.",)
    assert rows(cost_tables(same, CALLED)[0])["All"] == ("1,003,160", "1,003,160", "0", "")


def test_the_page_has_the_tree_and_every_table(explained: Results, section: Section) -> None:
    page = render_html(results_report(explained))
    assert 'data-figure="costs-0-tree"' in page
    assert "</script><b>" not in page
    assert "\x1b" not in page
    titles = [block.title for block in section.blocks if isinstance(block, Folded)]
    assert titles[:2] == ["Functions that make up the difference", "Instructions by task"]
    assert titles[-1] == "Functions that cost most"
    assert "No names here." in page
    assert "sched_yield" in markdown(results_report(explained))


def test_a_terminal_has_the_short_answer_and_the_rest_on_demand(explained: Results, capsys: Any) -> None:
    print_report(results_report(explained), Console(width=80))
    short = capsys.readouterr().out
    print_report(results_report(explained), Console(width=80), verbose=True)
    whole = capsys.readouterr().out
    assert "carries out" not in short
    assert "carries out" in whole
    assert "Functions that make up the difference" not in short
    assert "Functions that make up the difference" in whole


def figure(section: Section) -> dict[str, Any]:
    picture, _ = (block for block in section.blocks if isinstance(block, Picture))
    drawn: dict[str, Any] = checked(picture.plot).to_plotly_json()["data"][0]
    return drawn


def test_a_frame_is_as_wide_as_both_trials_and_coloured_by_the_difference(section: Section) -> None:
    drawn = figure(section)
    by_label = {label: place for place, label in enumerate(drawn["labels"])}
    whole, yielding, main = (by_label[name] for name in ("all tasks", "__x64_sys_sched_yield", "main"))
    assert drawn["values"][whole] == 1_300_160 + 1_003_160
    assert drawn["values"][yielding] == 303_000
    assert drawn["marker"]["colors"][yielding] == "var(--fall-3)"
    assert drawn["marker"]["colors"][main] == "var(--fall-2)"
    assert drawn["parents"][yielding] == drawn["ids"][main]
    assert "300,000<br>" in drawn["hovertext"][yielding]
    assert "difference: −297,000 instructions" in drawn["hovertext"][yielding]
    for place, parent in enumerate(drawn["parents"][1:], start=1):
        siblings = [sibling for sibling, identifier in enumerate(drawn["parents"]) if identifier == parent]
        assert sum(drawn["values"][sibling] for sibling in siblings) <= drawn["values"][drawn["ids"].index(parent)], (
            place
        )


def test_what_the_kernel_did_has_a_tree_of_its_own_where_programs_did_more(compared: CostComparison) -> None:
    tree, kernel = (checked(plot).to_plotly_json()["data"][0] for plot in costs_plots(compared, CALLED, "costs"))
    assert {"main", "schedule"} <= set(tree["labels"])
    assert list(kernel["labels"]) == ["all tasks", "the workload", "others", "__x64_sys_sched_yield", "schedule"]
    assert kernel["values"][0] == 300_000 + 3_000 + 2 * 90
    busy = explanation(recorded("own", 20_000), recorded("baseline", 20_000)).costs
    assert busy is not None
    assert [plot.name for plot in costs_plots(busy, CALLED, "costs")] == ["costs-tree"]


def test_names_of_programs_are_shown_as_they_are(compared: CostComparison) -> None:
    swapped = compared.model_copy(update={"graph": compared.graph.model_copy(update={"names": (EVIL,) * 9})})
    labels = checked(costs_plots(swapped, CALLED, "costs")[0]).to_plotly_json()["data"][0]["labels"]
    assert labels[2] == r"&lt;/script&gt;&lt;b&gt;\x1b[31m"


def test_the_picture_has_the_frames_of_the_page(section: Section) -> None:
    drawing = pytest.importorskip("ajuste_share.drawing")
    picture, _ = (block for block in section.blocks if isinstance(block, Picture))
    (axes,) = drawing.draw(picture.plot, "title").axes
    frames = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    drawn = figure(section)
    assert sorted(round(frame.get_width() * drawn["values"][0]) for frame in frames) == sorted(drawn["values"])
    assert max(frame.get_x() + frame.get_width() for frame in frames) == pytest.approx(1)
    assert "main" in {text.get_text() for text in axes.texts}


def test_the_terminal_has_the_tables_also_without_a_recording(explained: Results) -> None:
    out = io.StringIO()
    print_report(
        explanation_report(explained, EXPLANATIONS.of(explained)[0], verbose=True), Console(file=out, width=110)
    )
    output = out.getvalue()
    assert output.startswith("This configuration carries out 297,000 fewer instructions")
    assert re.search(r"All +1,300,160 +1,003,160 +−297,000", output)
    assert "neither trial could be recorded: no tracefs" in output
    assert "\x1b" not in output


def test_without_costs_there_is_no_section(explained: Results) -> None:
    plain = EXPLANATIONS.of(explained)[0].model_copy(update={"costs": None})
    assert costs_sections(explained.model_copy(update={"explanations": (plain,)}), result_labels(explained)) == ()


def test_why_costs_are_missing_is_said() -> None:
    failed = Recorded(configuration="own", block=0, seed=7, problem="no tracefs", costs_problem="the lens ended early")
    explained = explanation(failed, recorded("baseline", 3))
    assert explained.costs is None
    assert "own: its costs could not be counted: the lens ended early" in explained.notes


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, *slow(1400)])
@pytest.mark.parametrize("theme", ["light", *slow("dark")])
def test_the_tree_is_drawn_without_a_network(
    browser: Any, explained: Results, section: Section, tmp_path: Path, width: int, theme: str
) -> None:
    complaints: list[str] = []
    write_report(results_report(explained), tmp_path / "costs.html")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, offline=True)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "costs.html").as_uri())
    page.wait_for_selector("html[data-drawn=yes]")
    frames = page.locator('[data-figure="costs-0-tree"] .icicle .slice')
    assert frames.count() == len(figure(section)["ids"])
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    box = page.locator('[data-figure="costs-0-tree"]').bounding_box()
    assert all(frame.bounding_box()["width"] <= box["width"] for frame in frames.all())
    fills = {frame.locator("path").first.evaluate("one => getComputedStyle(one).fill") for frame in frames.all()}
    assert len(fills) >= 3, "the difference is told by colour"
    context.close()
    assert complaints == []

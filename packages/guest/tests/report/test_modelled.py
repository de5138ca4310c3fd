"""Modelled time and misses in the report, in the terminal and as a picture; all of it says that it is modelled."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from matplotlib.patches import Rectangle
from rich.console import Console
from tests.report.plotted import checked

from ajuste.catalogue.loader import catalogue
from ajuste.model.cost import KINDS, CostComparison, CostFunction, CostPart, NamedCosts
from ajuste.model.explanation import EXPLANATIONS, Recorded
from ajuste.model.modelled import Missed
from ajuste.model.results import Results
from ajuste.report.document import Section, Table
from ajuste.report.format import result_labels
from ajuste.report.html import write_report
from ajuste.report.results import results_report
from ajuste.report.tables import not_supported
from ajuste.report.terminal import print_report
from ajuste_guest.analysis.explanation import explanation
from ajuste_guest.report.costs import cost_tables, costs_sections
from ajuste_guest.report.modelled import modelled_plot
from ajuste_guest.report.scheduling import explanation_report
from tiers import slow

CALLED = ("750 µs", "75 ms")
TEXTBOOK = catalogue().machines["textbook"]
FUNCTIONS = (
    CostFunction(name="main", file="/bin/program", space="user"),
    CostFunction(name="schedule", file="", space="kernel"),
)


def costs(switches: int, machine: Any = TEXTBOOK) -> NamedCosts:
    """A workload of 1,000,000 instructions, each switch of which costs 100 more and 50 lines from memory. One
    instruction takes a nanosecond, one line from memory 100.
    """
    missed = {0: Missed(l1d=10 + 50 * switches, l2=10 + 50 * switches, llc=50 * switches), 1: Missed(l1i=switches)}
    part = CostPart(
        role="workload",
        tasks=1,
        user=1_000_000,
        kernel=100 * switches,
        loads=0,
        stores=0,
        branches=0,
        switches_in=switches,
        parents=(-1, 0),
        functions=(0, 1),
        kinds=tuple(map(KINDS.index, ("start", "interrupt"))),
        calls=(1, switches),
        instructions=(1_000_000, 100 * switches),
        misses=missed if machine else {},
    )
    return NamedCosts(faulted=0, functions=FUNCTIONS, parts=(part,), machine=machine)


def recorded(name: str, switches: int, machine: Any = TEXTBOOK) -> Recorded:
    return Recorded(configuration=name, block=0, seed=7, problem="no tracefs", costs=costs(switches, machine))


def comparison(changed: Recorded, baseline: Recorded) -> CostComparison:
    counted = explanation(changed, baseline).costs
    assert counted is not None
    return counted


@pytest.fixture(scope="module")
def compared() -> CostComparison:
    return comparison(recorded("own", 10), recorded("baseline", 1000))


@pytest.fixture(scope="module")
def explained(granularity: Results) -> Results:
    baseline, changed, *_ = (configuration.name for configuration in granularity.configurations)
    both = explanation(recorded(changed, 10), recorded(baseline, 1000))
    return granularity.model_copy(update={"explanations": (both,)})


@pytest.fixture(scope="module")
def section(explained: Results) -> Section:
    (costs_section,) = costs_sections(explained, result_labels(explained))
    return costs_section


def rows(table: Table) -> dict[str, tuple[str, ...]]:
    return {str(row.cells[0]): tuple(map(str, row.cells[1:])) for group in table.groups for row in group.rows}


def test_the_parts_of_the_time_add_up(compared: CostComparison) -> None:
    parts, misses, tasks, functions = cost_tables(compared, CALLED)[-4:]
    assert rows(parts) == {
        "instructions themselves": ("1,100.0", "1,001.0", "−99.0"),
        "last-level cache": ("0.1", "0.1", "0.0"),
        "memory": ("5,000.0", "50.0", "−4,950.0"),
        "All": ("6,100.1", "1,051.1", "−5,049.0"),
    }
    assert rows(misses)["L1 data cache misses"] == ("50,010", "510", "−49,500")
    assert rows(misses)["L1 instruction cache misses"] == ("1,000", "10", "−990")
    assert rows(tasks)["All"] == rows(tasks)["the workload"] == rows(parts)["All"]
    assert list(rows(functions)) == ["main (program)", "schedule"]
    assert rows(functions)["main (program)"][:2] == ("6,000 → 1,050", "50,010 → 510")
    assert all("odelled" in table.title for table in (parts, misses, tasks, functions))


def test_it_is_said_in_words_that_it_is_modelled(compared: CostComparison) -> None:
    assert compared.modelled is not None
    first, waits, misses, functions = compared.modelled.sentences
    assert first.startswith("Modelled on a textbook's machine: L1 of 4 KiB, LLC of 64 KiB, the workload takes 1.05 ms")
    assert "6.1 ms" in first
    assert waits == "4.8 % of that are waits for caches, memory and branches, instead of 82 %."
    assert misses.startswith("Misses of the model: its L1 caches 520 instead of 51,010, its LLC 500 instead of 50,000")
    assert functions == "The functions whose modelled time differs most are main (−4.95 ms) and schedule (−99 µs)."


def test_without_a_machine_or_with_two_nothing_is_modelled() -> None:
    without = comparison(recorded("own", 10, None), recorded("baseline", 1000, None))
    assert without.modelled is None
    assert "modelled" not in without.model_dump_json()
    assert not any(word in costs(1, None).model_dump_json() for word in ("misses", "machine"))
    other = catalogue().machines["zen4-8c"]
    assert comparison(recorded("own", 10, other), recorded("baseline", 1000)).modelled is None


def test_what_is_stored_is_read_again(compared: CostComparison) -> None:
    recording = recorded("own", 10)
    assert Recorded.model_validate_json(recording.model_dump_json()) == recording
    assert CostComparison.model_validate_json(compared.model_dump_json()) == compared


def test_the_bars_are_stacked_in_the_picture_as_on_the_page(compared: CostComparison) -> None:
    assert compared.modelled is not None
    plot = modelled_plot(compared.modelled, CALLED, "bars")
    assert plot is not None
    traces = checked(plot).to_plotly_json()["data"]
    assert [entry.text for entry in plot.legend] == ["instructions themselves", "last-level cache", "memory"]
    ends = [base + length for base, length in zip(traces[-1]["base"], traces[-1]["x"], strict=True)]
    assert ends == pytest.approx([1.0511, 6.1001])


def test_the_bars_of_a_file_are_those_of_the_page(compared: CostComparison) -> None:
    drawing = pytest.importorskip("ajuste_share.drawing")
    assert compared.modelled is not None
    plot = modelled_plot(compared.modelled, CALLED, "bars")
    assert plot is not None
    (axes,) = drawing.draw(plot, "title").axes
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert len(bars) == 2 * len(checked(plot).data)
    assert max(bar.get_x() + bar.get_width() for bar in bars) == pytest.approx(6.1001)


def test_the_terminal_says_it_too(explained: Results) -> None:
    out = io.StringIO()
    print_report(
        explanation_report(explained, EXPLANATIONS.of(explained)[0], verbose=True), Console(file=out, width=110)
    )
    assert "Modelled on a textbook's machine" in out.getvalue()
    assert "Modelled misses of the workload" in out.getvalue()


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, *slow(1400)])
@pytest.mark.parametrize("theme", ["light", *slow("dark")])
def test_the_bars_are_drawn_without_a_network(
    browser: Any, explained: Results, tmp_path: Path, width: int, theme: str
) -> None:
    write_report(results_report(explained), tmp_path / "costs.html")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, offline=True)
    page = context.new_page()
    page.goto((tmp_path / "costs.html").as_uri())
    page.wait_for_selector("html[data-drawn=yes]")
    bars = page.locator('[data-figure="costs-0-modelled"] .bars .point path')
    assert bars.count() == 6
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    context.close()


def test_what_was_counted_stands_for_the_counters_of_hardware(explained: Results) -> None:
    known = EXPLANATIONS.of(explained)[0].costs
    assert known is not None
    (line,) = [line for line in not_supported(explained) if "hardware" in line]
    assert line.endswith(
        "Instructions and modelled misses, counted in one more trial of two configurations, are under Costs."
    )
    costs = known.model_copy(update={"modelled": None})
    plain = EXPLANATIONS.of(explained)[0].model_copy(update={"costs": costs})
    assert "modelled" not in "".join(not_supported(explained.model_copy(update={"explanations": (plain,)})))

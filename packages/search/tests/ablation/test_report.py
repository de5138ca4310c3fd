"""A profile that was taken apart, in the terminal and in the HTML report."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from packages.search.tests.apart import results
from rich.console import Console

from ajuste.model.results import Results
from ajuste.report.document import Badge
from ajuste.report.html import write_report
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from ajuste_search.ablation.table import line_table

FOUND = results({"sched_min_granularity_ns": -0.2, "vm.dirty_ratio": 0.05})


def printed(line_results: Results, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_report(results_report(line_results), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [160, 60])
def test_the_terminal_names_every_line_with_its_share_and_what_it_does(width: int) -> None:
    text = printed(FOUND, width)
    flat = " ".join(text.split())
    assert re.search(r"the whole profile .* helps", flat)
    assert re.search(r"vm.swappiness .*? useless", flat)
    assert re.search(r"sched_min_granularity_ns .*? helps", flat)
    assert re.search(r"vm.dirty_ratio .*? harms", flat)
    assert max(map(len, text.splitlines())) <= width


def test_the_whole_comes_first_then_the_lines_by_the_size_of_their_shares() -> None:
    table = line_table(FOUND, FOUND.metrics[:1])
    assert table is not None
    rows = [row.cells for row in table.groups[0].rows[:3]]
    assert [(str(name), str(badge.text)) for name, *_, badge in rows if isinstance(badge, Badge)] == [
        ("the whole profile", "helps"),
        ("sched_min_granularity_ns = 10000000", "helps"),
        ("vm.dirty_ratio = 40", "harms"),
    ]


def test_configurations_are_only_described_and_those_of_the_ways_are_not_shown() -> None:
    assert [configuration.name for configuration in FOUND.configurations][:3] == [
        "nothing of it",
        "the whole",
        "only vm.swappiness",
    ]
    assert len(FOUND.configurations) == 2 + 2 * 7
    assert not any(verdict.deciding for verdict in FOUND.verdicts)
    assert FOUND.tally.trials > 9 * len(FOUND.configurations)


def test_the_report_has_the_lines_a_picture_of_them_and_what_was_left_out(tmp_path: Path) -> None:
    report = results_report(FOUND)
    assert report.section("verdicts-section") is None
    assert report.pictures[0].plot.title == "Effect of the whole profile, divided among its lines, in %"
    assert [name for name in ("section-0", "section-1") if report.section(name) is not None] == ["section-1"]
    path = tmp_path / "report.html"
    write_report(report, path)
    text = path.read_text()
    assert "What each line does" in text
    assert "script script = x (is a program)" in text
    assert "vm.laptop_mode = 0" in text


def test_the_document_has_a_row_for_each_line_as_verdicts_are() -> None:
    rows = FOUND.model_dump(mode="json")["lines"]
    whole, *lines = [row for row in rows if row["metric"] == FOUND.metrics[0].name]
    assert (whole["kind"], whole["verdict"]) == ("whole", "improves")
    assert {row["line"]: row["role"] for row in lines}["vm.dirty_ratio"] == "harms"
    assert all(row["low"] < row["estimate"] < row["high"] and row["level"] == 0.95 for row in lines)

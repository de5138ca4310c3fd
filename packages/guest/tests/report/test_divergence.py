"""Divergence of two trials, in the report, in the terminal and as a picture."""

from __future__ import annotations

import io
from typing import Any

import pytest
from pydantic import ValidationError
from rich.console import Console
from tests.report.plotted import checked

from ajuste.model.decision import NamedDecisions
from ajuste.model.explanation import EXPLANATIONS, Explanation, Recorded
from ajuste.model.results import Results
from ajuste.report.document import CommandBlock, Folded, Picture, Section, Table
from ajuste.report.format import result_labels
from ajuste.report.html import render_html
from ajuste.report.markdown import markdown
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from ajuste_guest.analysis.explanation import explanation
from ajuste_guest.report.divergence import divergence_plot, divergence_report, divergence_sections
from decisions import KERNEL, Step, stream

EVIL = "</script><b>\x1b[31m"
COMMON: list[Step] = [("new", 0), ("new", 0), ("wakeup", 4), ("timer", 0), ("switch", 4), ("switch", 3)] * 4
ONE: list[Step] = [("resched", 3), ("wakeup", 5), ("switch", 5), ("switch", 3), ("switch", 0), ("switch", 4)]
OTHER: list[Step] = [("wakeup", 5), ("switch", 0), ("switch", 5), ("switch", KERNEL), ("switch", 4)]


def followed(name: str, steps: list[Step], **changes: Any) -> Recorded:
    return Recorded(
        configuration=name,
        block=0,
        seed=changes.pop("seed", 7),
        problem="no tracefs",
        decisions=evil(stream(steps, **changes)),
    )


def evil(decisions: NamedDecisions) -> NamedDecisions:
    """A thread of a module, and a function of it, can be called anything."""
    tasks = [task.model_copy(update={"name": EVIL}) if task.role == "kernel" else task for task in decisions.tasks]
    return decisions.model_copy(update={"tasks": tuple(tasks), "functions": (EVIL, *decisions.functions[1:])})


def explain(granularity: Results, changed: Recorded, baseline: Recorded) -> Results:
    return granularity.with_facet(EXPLANATIONS, (explanation(changed, baseline),))


@pytest.fixture(scope="module")
def names(granularity: Results) -> tuple[str, str]:
    baseline, changed, *_ = (configuration.name for configuration in granularity.configurations)
    return baseline, changed


@pytest.fixture(scope="module")
def explained(granularity: Results, names: tuple[str, str]) -> Results:
    baseline, changed = names
    return explain(granularity, followed(changed, [*COMMON, *OTHER]), followed(baseline, [*COMMON, *ONE]))


@pytest.fixture(scope="module")
def section(explained: Results) -> Section:
    (divergence_section,) = divergence_sections(explained, result_labels(explained))
    return divergence_section


def test_it_is_said_shown_and_listed(section: Section) -> None:
    assert section.title.startswith("Where the decisions part")
    (picture,) = (block for block in section.blocks if isinstance(block, Picture))
    drawn = checked(picture.plot)
    assert "They part" in picture.plot.description
    assert {trace.mode for trace in drawn.data} == {"lines", "markers"}
    assert len(drawn.layout.yaxis.ticktext) == 2
    (command,) = (line for block in section.blocks if isinstance(block, CommandBlock) for line in block.lines)
    assert command.endswith("--divergence --perfetto trace.pftrace")
    tables = [table for block in section.blocks if isinstance(block, Folded) for table in block.blocks]
    decisions, tasks = (table for table in tables if isinstance(table, Table))
    rows = [tuple(map(str, row.cells)) for group in decisions.groups for row in group.rows]
    assert [row[0] for row in rows] == ["−3", "−2", "−1", "0", "1", "2", "3", "4", "5", "6"]
    assert [row.marked for group in decisions.groups for row in group.rows].index(True) == 4
    assert "is preempted" in rows[4][1]
    assert "wakes" in rows[4][2]
    assert rows[9][2] == "–"
    assert any("the workload" in row.cells for group in tasks.groups for row in group.rows)


def test_the_picture_is_drawn_to_a_file_too(section: Section) -> None:
    drawing = pytest.importorskip("ajuste_share.drawing")
    (picture,) = (block for block in section.blocks if isinstance(block, Picture))
    assert drawing.draw(picture.plot, "title").axes


def test_an_imported_run_has_no_command_with_its_makers_names(explained: Results) -> None:
    (section,) = divergence_sections(explained.model_copy(update={"imported": True}), result_labels(explained))
    assert not any(isinstance(block, CommandBlock) for block in section.blocks)


def test_whatever_something_is_called_it_is_only_shown(explained: Results, section: Section) -> None:
    page = render_html(results_report(explained))
    assert EVIL not in page
    assert "Where the decisions part" in page
    out = io.StringIO()
    print_report(divergence_report(explained, EXPLANATIONS.of(explained)[0]), Console(file=out, width=100))
    assert "\x1b[31m" not in out.getvalue()
    assert "They part" in out.getvalue()
    text = markdown(results_report(explained))
    assert "They part" in text
    assert "\x1b" not in text
    assert section.name == "divergence-0"


def test_an_explanation_is_read_again_as_it_was_written(explained: Results) -> None:
    again = Results.model_validate_json(explained.model_dump_json())
    assert again == explained
    assert isinstance(EXPLANATIONS.of(again)[0], Explanation)
    wrong = explained.model_dump_json().replace('"sentences":', '"sentence":', 1)
    with pytest.raises(ValidationError, match="sentences"):
        EXPLANATIONS.of(Results.model_validate_json(wrong))


def test_two_that_never_part_have_no_picture(granularity: Results, names: tuple[str, str]) -> None:
    baseline, changed = names
    same = explain(granularity, followed(changed, COMMON), followed(baseline, COMMON))
    parting = EXPLANATIONS.of(same)[0].divergence
    assert parting is not None
    assert divergence_plot(parting, ("A", "B"), "name") is None
    (section,) = divergence_sections(same, result_labels(same))
    assert len(section.blocks) == 1
    assert "never part" in divergence_report(same, EXPLANATIONS.of(same)[0]).headline


def test_without_decisions_nothing_is_said(granularity: Results, names: tuple[str, str]) -> None:
    baseline, changed = (Recorded(configuration=name, block=0, seed=7, problem="no") for name in names)
    plain = explain(granularity, changed, baseline)
    assert divergence_sections(plain, result_labels(plain)) == ()
    assert "divergence" not in EXPLANATIONS.of(plain)[0].model_dump()
    assert Explanation.model_validate_json(EXPLANATIONS.of(plain)[0].model_dump_json()) == EXPLANATIONS.of(plain)[0]


def test_other_seeds_are_not_compared(granularity: Results, names: tuple[str, str]) -> None:
    baseline, changed = names
    other = explain(granularity, followed(changed, COMMON, seed=8), followed(baseline, COMMON))
    assert EXPLANATIONS.of(other)[0].divergence is None
    assert "different seeds" in EXPLANATIONS.of(other)[0].notes[-1]
    failed = Recorded(configuration=changed, block=0, seed=7, problem="no", decisions_problem="the guest hung")
    without = EXPLANATIONS.of(explain(granularity, failed, followed(baseline, COMMON)))[0]
    assert without.notes[-1].endswith("its decisions could not be followed: the guest hung")

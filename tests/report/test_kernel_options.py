"""Options in which the kernels of a run differ, in terminal and HTML."""

from __future__ import annotations

import io

from rich.console import Console
from tests.report.simulated import HOSTILE

from ajuste.model.kernel import KERNEL_OPTIONS, DifferingOption, KernelOptions
from ajuste.model.results import Results
from ajuste.report.document import Table
from ajuste.report.html import render_html
from ajuste.report.listings import kernel_options_section
from ajuste.report.markdown import markdown
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report

NUMA = DifferingOption(name="NUMA", title=f"NUMA {HOSTILE}", baseline="y", own="n", because="asked for")
BALANCING = DifferingOption(name="NUMA_BALANCING", title="", baseline="y", own="absent", because="because of NUMA")
OPTIONS = KernelOptions(baseline="mine:base", total=7, options=(NUMA, BALANCING))


def compared(results: Results, options: KernelOptions = OPTIONS) -> Results:
    stored = {"mine:non-numa": options.model_dump(mode="json"), "spoilt": {"options": 7}}
    return results.model_copy(update={"environment": {**results.environment, KERNEL_OPTIONS: stored}})


def test_a_run_of_one_kernel_has_no_table_of_options(granularity: Results) -> None:
    assert kernel_options_section(granularity) is None


def test_each_option_has_both_values_and_its_reason(granularity: Results) -> None:
    section = kernel_options_section(compared(granularity))
    assert section is not None
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    (group,) = table.groups
    assert group.title == "mine:non-numa: 7 options differ from mine:base, of which 2 are shown"
    assert [row.cells[:4] for row in group.rows] == [
        ("NUMA", "y", "n", "asked for"),
        ("NUMA_BALANCING", "y", "absent", "because of NUMA"),
    ]


def test_terminal_and_page_show_it_once_and_harmlessly(granularity: Results) -> None:
    results = compared(granularity)
    console = Console(file=io.StringIO(), width=200)
    print_report(results_report(results), console, verbose=True)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().count("because of NUMA") == 1
    page = render_html(results_report(results))
    assert page.count("<span>because of NUMA</span>") == 1
    assert HOSTILE not in page


def test_kernels_with_equal_options_have_a_sentence_and_no_empty_table(granularity: Results) -> None:
    results = compared(granularity, KernelOptions(baseline="mine:base", total=0, options=()))
    console = Console(file=io.StringIO(), width=200)
    print_report(results_report(results), console, verbose=True)
    assert isinstance(console.file, io.StringIO)
    for text in (console.file.getvalue(), markdown(results_report(results))):
        assert "no options differ" in text
        assert "Because" not in text

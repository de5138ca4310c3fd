"""Machines side by side, in terminal, HTML and CSV."""

from __future__ import annotations

import csv
import io

import pytest
from rich.console import Console
from tests.report.simulated import HOSTILE

from ajuste.model.results import Results
from ajuste.model.verdict import AcrossMachines, Agreement, MachineEffect
from ajuste.report.html import render_html
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from ajuste.report.trials import trials_csv


def shared(results: Results, agreement: Agreement, name: str = "lab2") -> Results:
    """The first deciding verdict as two machines see it."""
    verdict = next(verdict for verdict in results.verdicts if verdict.deciding)
    effects = (
        MachineEffect(machine="lab1", blocks=7, verdict="improves", estimate=0.8, low=0.7, high=0.9),
        MachineEffect(machine=name, blocks=5, verdict="worsens", estimate=1.25, low=1.1, high=1.4),
    )
    across = AcrossMachines(
        configuration=verdict.configuration,
        metric=verdict.metric,
        unit=verdict.unit,
        scale="ratio",
        machines=effects,
        p_value=0.0004,
        agreement=agreement,
        says="it depends",
    )
    trials = tuple(trial.model_copy(update={"machine": ("lab1", name)[trial.block % 2]}) for trial in results.trials)
    ratio = verdict.model_copy(update={"scale": "ratio"})
    verdicts = tuple(ratio if original is verdict else original for original in results.verdicts)
    return results.model_copy(update={"machines": (across,), "trials": trials, "verdicts": verdicts})


def printed(results: Results, width: int = 120) -> str:
    out = io.StringIO()
    print_report(results_report(results), Console(file=out, width=width))
    return " ".join(out.getvalue().split())


@pytest.mark.parametrize("width", [50, 120])
def test_the_terminal_shows_what_each_machine_says(granularity: Results, width: int) -> None:
    text = printed(shared(granularity, "depends"), width)
    assert "Results per machine" in text
    assert "The machines disagree: no verdict applies to all of them." in text
    assert "p = 0.0004 that all are equal" in text
    assert "−20.0 %" in text
    assert "+25.0 %" in text


def test_a_run_of_one_machine_does_not_speak_of_machines(granularity: Results) -> None:
    assert "Results per machine" not in printed(granularity)
    assert "Results per machine" not in render_html(results_report(granularity))
    assert "machine" not in trials_csv(granularity).splitlines()[0].split(",")


def test_the_report_has_a_table_with_nothing_hostile_in_it(granularity: Results) -> None:
    text = render_html(results_report(shared(granularity, "differ", HOSTILE)))
    assert '<table class="stacked" id="machines">' in text
    assert "The machines agree on the verdicts, but not on how large the effects are." in text
    assert HOSTILE not in text


def test_the_csv_says_the_machine_of_every_trial(granularity: Results) -> None:
    results = shared(granularity, "alike")
    rows = list(csv.DictReader(io.StringIO(trials_csv(results))))
    assert [row["machine"] for row in rows] == [trial.machine for trial in results.trials]

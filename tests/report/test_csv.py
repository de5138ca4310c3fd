"""The raw data: every trial, exactly."""

from __future__ import annotations

import csv
import io

from ajuste.model.results import Results
from ajuste.report.trials import trials_csv


def rows(results: Results) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(trials_csv(results), newline="")))


def test_every_trial_is_a_row_with_its_exact_figures(undecided: Results) -> None:
    table = rows(undecided)
    assert len(table) == len(undecided.trials)
    for row, trial in zip(table, undecided.trials, strict=True):
        assert row["configuration"] == trial.configuration
        assert (int(row["block"]), int(row["seed"]), row["status"]) == (trial.block, trial.seed, trial.status)
        assert row["warm_up"] == ("yes" if trial.warm_up else "no")
        assert row["reason"] == trial.reason
        assert row["elapsed [s]"] == ("" if trial.status == "failed" else repr(trial.metrics["elapsed"]))


def test_the_levels_have_a_column_each(grid: Results) -> None:
    levels = {configuration.name: configuration.levels for configuration in grid.configurations}
    for row in rows(grid):
        for factor, level in levels[row["configuration"]].items():
            assert row[factor] == level


def test_text_is_no_formula_but_numbers_stay(undecided: Results) -> None:
    trial = undecided.trials[0].model_copy(update={"reason": '=HYPERLINK("http://example.org")'})
    configurations = tuple(c.model_copy(update={"levels": {"vm.swappiness": "-15"}}) for c in undecided.configurations)
    changed = undecided.model_copy(update={"trials": (trial,), "configurations": configurations})
    [row] = rows(changed)
    assert row["reason"].startswith("'=")
    assert row["vm.swappiness"] == "-15"

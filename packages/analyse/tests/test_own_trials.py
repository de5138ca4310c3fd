"""Exports of Ajuste itself can be analysed by it, and come to what the trials say."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from scipy import stats

from ajuste.model.error import RequestError
from ajuste.model.measurements import Values
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Point, Results
from ajuste.model.trial import Factor
from ajuste.report.trials import trials_csv
from ajuste_analyse.files import read_files
from ajuste_analyse.verdicts import TableQuestion, analyse_table

ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower")
OWN = Metric(name="score", title="Score", unit="", direction="none")
OLD, NEW = [1.0, 1.2, 1.1, 1.3], [1.05, 1.24, 1.16, 1.33]


def trial(configuration: str, block: int, elapsed: float | None, **about: object) -> Point:
    metrics = {} if elapsed is None else {"elapsed": elapsed, "score": 10 * elapsed}
    return Point.model_validate(
        {"configuration": configuration, "block": block, "position": 0, "seed": 1, "status": "ok", "metrics": metrics}
        | about
    )


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """A study of two configurations whose names a spreadsheet would take for formulas, as its report exports it."""
    trials = [trial("-1", 4, 99.0, warm_up=True), trial("=4", 5, None, status="failed", reason="timeout, 5 s")]
    for block in range(4):
        trials += [trial("-1", block, OLD[block]), trial("=4", block, NEW[block], position=1)]
    results = Results(
        **dict.fromkeys(("study", "title", "question", "answer", "run", "digest", "stopped_because", "correction"), ""),
        seed=1,
        clock="wall",
        stopped="decided",
        level=0.95,
        smallest_effect=0.02,
        blocks=4,
        verdicts=(),
        configurations=tuple(Measured(name=name, levels={"nice": name}) for name in ("-1", "=4")),
        factors=(Factor(name="nice", levels=("-1", "=4"), baseline="-1"),),
        metrics=(ELAPSED, OWN),
        trials=tuple(trials),
    )
    path = tmp_path / "trials.csv"
    path.write_text(trials_csv(results), newline="")
    return path


def test_clean_trials_are_compared_within_their_blocks(exported: Path) -> None:
    table = read_files([exported])
    assert table.configurations == ("-1", "=4")
    assert table.samples["-1", "elapsed"] == Values(tuple(OLD), ("0", "1", "2", "3"))
    analysis = analyse_table(table, TableQuestion(metrics=("elapsed",), smallest_effect=0.001))
    [verdict] = [v for v in analysis.verdicts if v.deciding]
    theirs = stats.ttest_rel([math.log(v) for v in NEW], [math.log(v) for v in OLD])
    assert (verdict.verdict, verdict.blocks) == ("worsens", 4)
    assert verdict.p_value == pytest.approx(theirs.pvalue, rel=1e-9)


def test_levels_are_no_metrics_and_known_metrics_bring_their_direction(exported: Path) -> None:
    assert [(m.name, m.direction) for m in read_files([exported]).metrics] == [("elapsed", "lower"), ("score", "none")]


def test_what_is_left_out_is_counted(exported: Path) -> None:
    assert read_files([exported]).notes == (
        "trials.csv: left out, because Ajuste marked them: warm-up trials (1), failed trials (1).",
    )


def test_a_row_that_lost_its_end_is_an_error(exported: Path) -> None:
    exported.write_text(exported.read_text()[:-6], newline="")
    with pytest.raises(RequestError, match=r"trials.csv:11: found \d+ fields"):
        read_files([exported])

"""The public face for notebooks: tables that have every trial, a safe display, and an import that costs nothing."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest

import ajuste
from ajuste.model.error import RequestError
from ajuste.report.trials import trials_csv
from small_stores import DECIDED, DIGEST, Commands, small_store


@pytest.fixture(autouse=True)
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    small_store(tmp_path / "home" / "data" / "store.sqlite")
    return Commands(tmp_path / "home", monkeypatch)


def test_a_loaded_run_is_the_one_of_the_store(commands: Commands) -> None:
    run = ajuste.load(DECIDED)
    document = commands.json("report", DECIDED)
    assert (run.id, run.digest, run.answer) == (DECIDED, DIGEST, document["answer"])
    assert [verdict.verdict for verdict in run.verdicts] == [verdict["verdict"] for verdict in document["verdicts"]]


def test_tables_have_every_trial_with_the_figures_of_the_csv() -> None:
    run = ajuste.load(DECIDED)
    polars, pandas = run.to_polars(), run.to_pandas()
    rows = list(csv.DictReader(io.StringIO(trials_csv(run.results))))
    assert polars.height == len(pandas) == len(rows) > 0
    assert polars["configuration"].to_list() == [row["configuration"] for row in rows]
    assert polars["block"].to_list() == pandas["block"].tolist() == [int(row["block"]) for row in rows]
    (factor,) = run.results.factors
    assert polars[factor.name].to_list() == [row[factor.name] for row in rows]
    for metric in run.results.metrics:
        name = next(name for name in rows[0] if name.split(" [")[0] == metric.name)
        expected = [float(row[name]) if row[name] else None for row in rows]
        if metric.name in polars.columns:
            assert polars[metric.name].to_list() == expected


def test_what_a_notebook_shows_is_text_whatever_it_contains() -> None:
    run = ajuste.load(DECIDED)
    hostile = run.results.model_copy(update={"answer": "<script>alert(1)</script>", "study": "<b>"})
    html = ajuste.MeasuredRun(hostile, run.measurements)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr>") == len(run.verdicts) + 1


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(RequestError, match="not found in the store"):
        ajuste.load("nothing")
    with pytest.raises(AttributeError):
        _ = ajuste.nothing  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_of_it() -> None:
    code = (
        "import ajuste, sys; print([name for name in sys.modules if name.startswith(('ajuste.', 'numpy', 'pydantic'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

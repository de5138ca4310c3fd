"""Results of a run that ended are those that were first shown of it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import Any, NoReturn

import pytest

from ajuste.analysis import results
from ajuste.model.explanation import Recorded
from ajuste.store.store import Store
from small_stores import DECIDED, GOING_ON, Commands


@pytest.fixture
def first_results(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The results as they were first shown. From then on nothing can be computed."""
    first = commands.json("report", DECIDED)

    def fail(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("it is computed")

    monkeypatch.setattr(results, "assemble", fail)
    return first


def test_it_is_shown_again_without_computing_it(commands: Commands, first_results: Any) -> None:
    assert commands.json("report", DECIDED) == first_results
    assert "not settled between" in " ".join(commands.run("report", DECIDED)[1].split())


def test_it_is_shown_without_loading_what_computes_it(commands: Commands, first_results: Any) -> None:
    program = "import sys; from ajuste.cli.main import main; sys.argv[0] = 'ajuste'; main()"
    for words in (["report"], ["report", DECIDED, "--json"]):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", program, *words], capture_output=True, text=True, check=True
        )
        assert DECIDED in done.stdout
        loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert "ajuste.store.store" in loaded
        assert not loaded & {"numpy", "alembic", "ajuste.store.trials", "ajuste.run.outcome"}


def test_a_run_that_can_go_on_is_computed_each_time(commands: Commands, first_results: Any) -> None:
    code, _, complained = commands.run("report", GOING_ON)
    assert code == 1
    assert "it is computed" in complained


def test_what_is_recorded_later_belongs_to_what_is_said(commands: Commands, first_results: Any) -> None:
    with Store(f"sqlite:///{commands.store}") as store:
        recorded = Recorded(
            configuration=first_results["configurations"][0]["name"], block=0, seed=7, problem="Permission denied"
        )
        store.keep_recorded(store.find_run(DECIDED), recorded)
    assert "it is computed" in commands.run("report", DECIDED)[2]


def test_a_flipped_bit_of_it_is_named(commands: Commands, first_results: Any) -> None:
    with closing(sqlite3.connect(commands.store)) as connection, connection:
        ((document,),) = connection.execute("SELECT document FROM documents WHERE kind = 'results'").fetchall()
        damaged = document[:100] + bytes([document[100] ^ 1]) + document[101:]
        connection.execute("UPDATE documents SET document = ? WHERE kind = 'results'", [damaged])
    code, output, complained = commands.run("report", DECIDED)
    assert (code, output) == (1, "")
    assert f"the kept report of run {DECIDED} is damaged" in complained
    assert any("the kept report" in line for line in commands.run("store", "check")[1].splitlines())

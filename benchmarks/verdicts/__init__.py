"""Verdicts under simulated noise: Ajuste beside what people do today.

Writes the tables of docs/reference/simulated-verdicts.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from benchmarks.comparison import RESULTS, Comparison
from benchmarks.verdicts.cells import Cell, simulate
from benchmarks.verdicts.counts import counts
from benchmarks.verdicts.methods import ALPHA, METHODS, PAIRS
from benchmarks.verdicts.noise import NOISES
from benchmarks.verdicts.page import tables, write
from benchmarks.verdicts.picture import PICTURE, picture
from benchmarks.verdicts.planning import plans

MORE_THAN_FIXED: Final = 1.3
"""How many times the trials of the fixed t test a study of a 2 % effect may take on average."""
LESS_THAN_FIXED: Final = 0.5
"""The same for an effect of 10 %."""


def measure() -> tuple[Comparison, ...]:
    """Simulates everything (about a minute), and writes tables, picture and ``results/verdict-cells.json``."""
    cells, planned, counted = simulate(), plans(), counts()
    RESULTS.mkdir(exist_ok=True)
    document = {
        "cells": [c.model_dump() for c in cells],
        "plans": [p.model_dump() for p in planned],
        "counts": [c.model_dump() for c in counted],
    }
    (RESULTS / "verdict-cells.json").write_text(json.dumps(document, indent=1) + "\n")
    write(tables(cells, planned, counted))
    PICTURE.write_text(picture(cells))
    return judged(cells)


def judged(cells: Sequence[Cell]) -> tuple[Comparison, ...]:
    """The goals: false verdicts, coverage, trials."""
    false = {m.title: [_percent(c.wrong, c) for c in cells if c.method == m.name and c.effect == 0] for m in METHODS}
    own = [cell for cell in cells if cell.method == "ajuste"]
    always = [_percent(cell.always or 0, cell) for cell in own]
    return (
        Comparison(
            name="verdicts",
            what=f"studies without effect that find one, in {len(NOISES)} kinds of noise",
            unit="%",
            figures=false,
            goal=f"Ajuste at most {100 * ALPHA:g} % in each",
            reached=max(false[METHODS[0].title]) <= 100 * ALPHA,
        ),
        Comparison(
            name="verdicts-coverage",
            what="studies in which Ajuste's interval has the truth in it at every look",
            unit="%",
            figures={"ajuste": always},
            goal=f"at least {100 * (1 - ALPHA):g} % in each noise, for each effect",
            reached=min(always) >= 100 * (1 - ALPHA),
        ),
        _trials(own, 0.02, MORE_THAN_FIXED),
        _trials(own, 0.10, LESS_THAN_FIXED),
    )


def _trials(own: Sequence[Cell], effect: float, factor: float) -> Comparison:
    (cell,) = (c for c in own if c.noise == "gaussian" and c.effect == effect)
    return Comparison(
        name=f"verdicts-trials-{100 * effect:g}",
        what=f"trials to a verdict on {100 * effect:g} %, white noise of 1 %",
        unit="trials",
        figures={"ajuste": [cell.trials], "fixed paired t for 2 %, 90 % power": [2.0 * PAIRS]},
        goal=f"below {factor:g} × the fixed test's",
        reached=cell.trials < factor * 2 * PAIRS,
    )


def _percent(count: int, cell: Cell) -> float:
    return 100 * count / cell.studies

"""Verdicts under simulated noise: Ajuste beside what people do today.

Writes the tables of docs/reference/simulated-verdicts.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from benchmarks.comparison import RESULTS, Comparison
from benchmarks.verdicts.cases import (
    FORKS,
    RANDOM_ORDER,
    SEEDS,
    CaseCell,
    Efficiency,
    case_tables,
    efficiency,
    simulate_cases,
)
from benchmarks.verdicts.cells import Cell, simulate
from benchmarks.verdicts.counts import counts
from benchmarks.verdicts.estimates import estimate_tables, reported, winners
from benchmarks.verdicts.factors import factor_table, simulate_factors
from benchmarks.verdicts.methods import ALPHA, METHODS, PAIRS
from benchmarks.verdicts.noise import NOISES
from benchmarks.verdicts.page import tables, write
from benchmarks.verdicts.picture import PICTURE, picture
from benchmarks.verdicts.planning import plans
from benchmarks.verdicts.traps import TrapCell, simulate_before, simulate_traps, trap_table

MORE_THAN_FIXED: Final = 1.3
"""Multiple of the trials of the fixed t test that a study of a 2 % effect may take on average."""
MORE_THAN_MIXTURE: Final = 1.1
"""Multiple of the blocks of normal intervals that a study may take, on average over effects, in normal noise."""
NINE_OF_TEN: Final = 1.6
"""Multiple of the pairs of a fixed t test of 90 % power for nine of ten studies, of 5 and 10 % at 3 % noise."""


def measure() -> tuple[Comparison, ...]:
    """Simulates everything (about a minute), and writes tables, picture and ``results/verdict-cells.json``."""
    cells, planned, counted, cased, taken = simulate(), plans(), counts(), simulate_cases(), efficiency()
    estimates, best, factors = reported(), winners(), simulate_factors()
    trapped, before = simulate_traps(), simulate_before()
    RESULTS.mkdir(exist_ok=True)
    document = {
        "cells": [c.model_dump() for c in cells],
        "plans": [p.model_dump() for p in planned],
        "counts": [c.model_dump() for c in counted],
        "cases": [c.model_dump() for c in cased],
        "efficiency": [e.model_dump() for e in taken],
        "reported": [r.model_dump() for r in estimates],
        "winners": [w.model_dump() for w in best],
        "factors": [f.model_dump() for f in factors],
        "traps": [asdict(t) for t in trapped],
        "traps before": [asdict(t) for t in before],
    }
    (RESULTS / "verdict-cells.json").write_text(json.dumps(document, indent=1) + "\n")
    write(
        tables(cells, planned, counted)
        + "\n"
        + "\n".join(
            (
                case_tables(cased, taken),
                trap_table(trapped, before),
                factor_table(factors),
                estimate_tables(estimates, best),
            )
        )
    )
    PICTURE.write_text(picture(cells))
    return (*judged(cells), *judged_cases(cased, taken), judged_traps(trapped, before))


def judged(cells: Sequence[Cell]) -> tuple[Comparison, ...]:
    """The goals: false verdicts, coverage, trials."""
    false = {m.title: [_percent(c.wrong, c) for c in cells if c.method == m.name and c.effect == 0] for m in METHODS}
    ajuste_cells = [cell for cell in cells if cell.method == "ajuste"]
    always = [_percent(cell.always or 0, cell) for cell in ajuste_cells]
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
        _trials(ajuste_cells, 0.02, MORE_THAN_FIXED),
    )


def judged_cases(cells: Sequence[CaseCell], taken: Sequence[Efficiency]) -> tuple[Comparison, ...]:
    """The goals: false verdicts where normal intervals break, and what that costs in normal noise."""
    meant = [cell for cell in cells if cell.kind in (RANDOM_ORDER, SEEDS, FORKS)]
    wrong = {
        name: [100 * cell.wrong / cell.studies for cell in meant if cell.method == method]
        for name, method in (("ajuste", "signs"), ("normal", "mixture"))
    }
    ratio = sum(cost.blocks for cost in taken) / sum(cost.mixture for cost in taken)
    late = [cost.most / cost.fixed for cost in taken if cost.fixed and cost.noise == 0.03 and cost.effect >= 0.05]
    return (
        Comparison(
            name="verdicts-cases",
            what="wrong verdicts under periods, of seeds of real guests, of forks",
            unit="%",
            figures=wrong,
            goal=f"Ajuste at most {100 * ALPHA:g} % in each",
            reached=max(wrong["ajuste"]) <= 100 * ALPHA,
        ),
        Comparison(
            name="verdicts-blocks",
            what="blocks in normal noise, as a multiple of those of normal intervals",
            unit="times",
            figures={"ajuste": [ratio]},
            goal=f"at most {MORE_THAN_MIXTURE:g}",
            reached=ratio <= MORE_THAN_MIXTURE,
        ),
        Comparison(
            name="verdicts-nine-of-ten",
            what="blocks of nine of ten studies of 5 and 10 % at 3 % noise, over those of a fixed t test",
            unit="times",
            figures={"ajuste": late},
            goal=f"at most {NINE_OF_TEN:g}",
            reached=round(max(late), 1) <= NINE_OF_TEN,
        ),
    )


def judged_traps(cells: Sequence[TrapCell], before: Sequence[TrapCell] = ()) -> Comparison:
    """The goal: no trap is fallen into, but for those that so few blocks cannot see, which the verdict says."""
    figures = {
        f"{name}{cell.kind}: {cell.name}": [100 * cell.wrong / cell.studies]
        for name, side in (("before, ", before), ("", cells))
        for cell in side
    }
    return Comparison(
        name="verdicts-traps",
        what="wrong verdicts of coarse figures, rare counts, rare trials and means that disagree",
        unit="%",
        figures=figures,
        goal=f"at most {100 * ALPHA:g} % in each, but for what so few blocks cannot see",
        reached=all(cell.wrong <= ALPHA * cell.studies for cell in cells if not cell.remark),
    )


def _trials(cells: Sequence[Cell], effect: float, factor: float) -> Comparison:
    (cell,) = (c for c in cells if c.noise == "gaussian" and c.effect == effect)
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

"""Switchbacks on simulated services: Ajuste beside a comparison of before and after.

Writes the tables of docs/reference/simulated-switchbacks.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.comparison import RESULTS, Comparison
from benchmarks.switchback.cells import EFFECT, SwitchbackCell, simulate
from benchmarks.switchback.experiments import ALPHA
from benchmarks.switchback.later import LaterCell, later_table, simulate_later
from benchmarks.switchback.services import SERVICES
from benchmarks.switchback.stays import StayCell, simulate_stays, stays_table
from benchmarks.verdicts.page import write

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "simulated-switchbacks.md"
COMMAND: Final = "switchback"
MOST_OFF: Final = 2.0
"""Factor by which a plan may be off."""
FOUND: Final = 0.95

FALSE: Final = {
    "before/after": "before_after",
    "alternately": "by_turns",
    "Ajuste": "false",
    "Ajuste with control": "false_at_load",
    "falsely equivalent": "false_equivalent",
}
PLANNED: Final = {"planned": "plan", "half": "typical", "95 %": "most", "95 %, with control": "most_at_load"}


def measure() -> tuple[Comparison, ...]:
    """Simulates everything (a few minutes), writes tables, page and ``results/switchback-cells.json``."""
    cells, later, stays = simulate(), simulate_later(), simulate_stays()
    RESULTS.mkdir(exist_ok=True)
    document = [cell.model_dump() for cell in (*cells, *later, *stays)]
    (RESULTS / "switchback-cells.json").write_text(json.dumps(document, indent=1) + "\n")
    tables = (false_verdicts(cells), found_effects(cells), later_verdicts(later), adopted_after_stays(stays))
    write("\n".join(table.markdown for table in tables), PAGE, COMMAND)
    console = Console(width=130)
    for table in tables:
        console.print(table.console_table)
    return (*judged(cells), judged_later(later), judged_stays(stays))


@dataclass(frozen=True)
class CellTable:
    """A table with a row for each service."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def console_table(self) -> Table:
        table = Table(title=self.title, title_justify="left")
        for name in self.head:
            table.add_column(name, justify="left" if name == self.head[0] else "right")
        for row in self.rows:
            table.add_row(*row)
        return table

    @property
    def markdown(self) -> str:
        lines = [self.head, ["---"] + ["---:"] * (len(self.head) - 1), *self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"**{self.title}**\n\n{table}\n"


def false_verdicts(cells: Sequence[SwitchbackCell]) -> CellTable:
    return CellTable(
        f"False verdicts, in % of {cells[0].runs:,} experiments",
        ("service", *FALSE),
        tuple((_title(cell), *(_share(cell, name) for name in FALSE.values())) for cell in cells),
    )


def found_effects(cells: Sequence[SwitchbackCell]) -> CellTable:
    return CellTable(
        f"An effect of {100 * EFFECT:g} %: in how many % it is found, and after how many slices",
        ("service", "before/after", "Ajuste, within 2 × planned", *PLANNED),
        tuple(
            (
                _title(cell),
                _share(cell, "before_after_right"),
                _share(cell, "found"),
                *(f"{getattr(cell, name):.0f}" for name in PLANNED.values()),
            )
            for cell in cells
        ),
    )


def later_verdicts(cells: Sequence[LaterCell]) -> CellTable:
    head, rows = later_table(cells)
    title = f"What a setting does to later slices: verdicts, in % of {cells[0].runs:,} experiments of up to four hours"
    return CellTable(title, head, rows)


def adopted_after_stays(cells: Sequence[StayCell]) -> CellTable:
    head, rows = stays_table(cells)
    title = (
        f"Costs that come later: verdicts without stays (four hours) and with them (eight hours), in % of "
        f"{cells[0].runs:,} experiments, and after how many slices half of these have one"
    )
    return CellTable(title, head, rows)


def judged_stays(cells: Sequence[StayCell]) -> Comparison:
    """The goal for costs that stays can show."""
    wrong = [cell for cell in cells if cell.costs and cell.seen]
    return Comparison(
        name="switchback-stays",
        what="experiments that would adopt a setting whose cost comes up to five slices later, or grows",
        unit="%",
        figures={
            "with stays": [100 * cell.adopted / cell.runs for cell in wrong],
            "with stays and control": [100 * cell.adopted_at_load / cell.runs for cell in wrong],
            "without stays": [100 * cell.improves / cell.runs for cell in wrong],
        },
        goal=f"with stays at most {100 * ALPHA:g} % of each",
        reached=max(max(cell.adopted, cell.adopted_at_load) / cell.runs for cell in wrong) <= ALPHA,
    )


def judged_later(cells: Sequence[LaterCell]) -> Comparison:
    """The goal for costs that the next slice bears."""
    wrong = [100 * cell.wrong / cell.runs for cell in cells if cell.deferred and "15 %" in cell.case]
    return Comparison(
        name="switchback-deferred",
        what="verdicts on a setting that saves 10 % and costs 15 % in the next slice",
        unit="%",
        figures={"ajuste": wrong},
        goal="at most 5 % wrong on each service",
        reached=max(wrong) <= 100 * ALPHA,
    )


def _title(cell: SwitchbackCell) -> str:
    return next(service.title for service in SERVICES if service.name == cell.service)


def _share(cell: SwitchbackCell, name: str) -> str:
    return f"{100 * getattr(cell, name) / cell.runs:.1f}"


def judged(cells: Sequence[SwitchbackCell]) -> tuple[Comparison, ...]:
    """The goals: false verdicts, and how good the plan is."""

    def shares(name: str) -> list[float]:
        return [100 * getattr(cell, name) / cell.runs for cell in cells]

    false = {
        "ajuste": shares("false"),
        "ajuste, with control": shares("false_at_load"),
        "ajuste, falsely equivalent": shares("false_equivalent"),
    }
    found_percent = shares("found")
    off = [cell.most / cell.plan for cell in cells]
    return (
        Comparison(
            name="switchback",
            what=f"false verdicts with a look after every slice, {len(cells)} services",
            unit="%",
            figures={
                **false,
                "before and after, Welch's t": shares("before_after"),
                "alternately, paired t and looks": shares("by_turns"),
            },
            goal=f"Ajuste at most {100 * ALPHA:g} % on each service",
            reached=max(max(figures) for figures in false.values()) <= 100 * ALPHA,
        ),
        Comparison(
            name="switchback-found",
            what=f"experiments that find {100 * EFFECT:g} % within {MOST_OFF:g} × the slices planned",
            unit="%",
            figures={"ajuste": found_percent, "before and after, an hour each": shares("before_after_right")},
            goal=f"Ajuste at least {100 * FOUND:g} % on each service",
            reached=min(found_percent) >= 100 * FOUND,
        ),
        Comparison(
            name="switchback-plan",
            what=f"slices in which {100 * FOUND:g} % find it, over those planned",
            unit="×",
            figures={"ajuste": off},
            goal=f"between 1/{MOST_OFF:g} and {MOST_OFF:g} on each service",
            reached=min(off) >= 1 / MOST_OFF and max(off) <= MOST_OFF,
        ),
    )

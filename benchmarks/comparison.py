"""Result of a benchmark: figures of two or more ways of doing the same, measured by turns."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


class Comparison(BaseModel):
    """``figures`` by way, in the order of measuring. ``goal`` is what must hold, ``reached`` whether it does here."""

    name: str
    what: str
    unit: str
    figures: dict[str, list[float]]
    goal: str
    reached: bool


def by_turns(ways: dict[str, Callable[[], float]], rounds: int, seed: int = 1) -> dict[str, list[float]]:
    """Call every way once a round, in random order, so that a busy moment of the machine hits all alike."""
    figures: dict[str, list[float]] = {name: [] for name in ways}
    order = random.Random(seed)
    for _ in range(rounds):
        for name in order.sample(list(ways), len(ways)):
            figures[name].append(ways[name]())
    return figures


def seconds(work: Callable[[], object]) -> float:
    """Return how long ``work`` takes on this machine's clock."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def show(comparison: Comparison, console: Console) -> None:
    """Print a table and write ``results/NAME.json``."""
    table = Table(title=f"{comparison.name}: {comparison.what}", title_justify="left", min_width=64)
    for column in ("", "median", "least", "most", "times"):
        table.add_column(column, justify="left" if not column else "right")
    for name, values in comparison.figures.items():
        cells = (f"{value:.2f} {comparison.unit}" for value in (median(values), min(values), max(values)))
        table.add_row(name, *cells, str(len(values)))
    console.print(table)
    console.print(f"{comparison.goal}: {'reached' if comparison.reached else 'NOT REACHED'}\n", highlight=False)
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(comparison.model_dump(), indent=2)
    (RESULTS / f"{comparison.name}.json").write_text(text + "\n")

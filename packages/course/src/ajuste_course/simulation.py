"""Made data of a sheet on statistics: a student's own, the same on every machine, with a truth that is known."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Final

import numpy as np

from ajuste.model.error import RequestError
from ajuste_course.sheet import Sheet, SimulateStep, filled
from ajuste_course.student import drawn

BASE: Final = "base"
OTHER: Final = "other"
METRIC: Final = "value"
COLUMNS: Final = ("configuration", "block", METRIC)
_LEVEL: Final = 100.0
_MOST_BLOCKS: Final = 10_000


@dataclass(frozen=True)
class MadeData:
    """Rows in the order in which they would have been measured: configuration, block, place in time, value."""

    rows: tuple[tuple[str, int, int, float], ...]

    def values(self, configuration: str) -> list[float]:
        """Return the values of a configuration by block."""
        return [value for name, _, _, value in sorted(self.rows, key=lambda row: row[1]) if name == configuration]

    def text(self) -> str:
        """Return the data as CSV for ``ajuste analyse``, a row for each trial in the order of time."""
        written = io.StringIO()
        rows = csv.writer(written, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows((name, block + 1, f"{value:.6g}") for name, block, _, value in self.rows)
        return written.getvalue()


def made_configuration(wanted: str) -> str:
    """Return the configuration of made data that a sheet names; empty: the base. Raises RequestError."""
    if wanted not in ("", BASE, OTHER):
        raise RequestError(f"made data have no configuration {wanted!r}; expected {BASE} or {OTHER}")
    return wanted or BASE


def made_data(sheet: Sheet, step: SimulateStep, student: str, seed: int) -> MadeData:
    """Return the data of a step. Raises RequestError for values that are no numbers in its ranges."""
    values = filled(step.model_dump(), {**drawn(sheet, student), "seed": (seed,)})
    try:
        blocks, noise = int(values["blocks"]), float(values["noise"])
        ratio, drift = float(values["ratio"]), float(values["drift"])
    except (TypeError, ValueError):
        raise RequestError(
            f"step {step.name} of {sheet.name}: expected numbers of blocks, noise, ratio and drift"
        ) from None
    if not (3 <= blocks <= _MOST_BLOCKS and 0 < noise < 2 and 0.01 <= ratio <= 100 and -0.9 <= drift <= 10):
        raise RequestError(
            f"step {step.name} of {sheet.name}: expected 3 to {_MOST_BLOCKS} blocks, noise between 0 and 2, a ratio "
            "between 0.01 and 100, and a drift between -0.9 and 10"
        )
    generator = np.random.Generator(np.random.PCG64(seed))
    order = _order(blocks, step.order, generator)
    spread = generator.normal(0.0, noise, len(order))
    last = max(len(order) - 1, 1)
    rows = [
        (
            name,
            block,
            time,
            _LEVEL * (ratio if name == OTHER else 1.0) * (1 + drift * time / last) * float(np.exp(error)),
        )
        for time, ((name, block), error) in enumerate(zip(order, spread, strict=True))
    ]
    # As the file has them: what a student computes from it is what is marked.
    return MadeData(tuple((name, block, time, float(f"{value:.6g}")) for name, block, time, value in rows))


def _order(blocks: int, order: str, generator: np.random.Generator) -> list[tuple[str, int]]:
    if order == "fixed":
        return [(name, block) for name in (BASE, OTHER) for block in range(blocks)]
    pairs = [generator.permutation([BASE, OTHER]).tolist() for _ in range(blocks)]
    return [(name, block) for block, names in enumerate(pairs) for name in names]

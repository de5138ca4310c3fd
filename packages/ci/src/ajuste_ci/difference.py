"""A long run less a short one of the same program: what remains are their additional iterations.

What a program does once, such as its start, is in both runs, and is gone from the difference.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ajuste.analysis.pairs import Clean, clean_trials
from ajuste.analysis.verdict import judge
from ajuste.model.error import RunError
from ajuste.model.measurements import Gathering, Measurements
from ajuste.model.results import Results
from ajuste.model.trial import Configuration

SHORT: Final = "-short"
"""Ending of the name of a revision's short run."""


def of_difference(
    results: Results, measured: Measurements, sides: tuple[str, ...], *, confidence: float, limit: float
) -> Results:
    """Return ``results`` with verdicts on what the long run of each of ``sides`` has beyond its short one. Raises
    RunError where that is nothing.
    """
    names = {verdict.metric for verdict in results.verdicts if verdict.deciding}
    deciding = [metric for metric in results.metrics if metric.name in names]
    differences = subtract(clean_trials(measured), sides, tuple(metric.column for metric in deciding))
    configurations = [
        Configuration(name=made.name, levels=made.levels, baseline=made.name == sides[0])
        for made in results.configurations
        if made.name in sides
    ]
    verdicts = judge(
        configurations,
        differences,
        deciding,
        confidence=confidence,
        smallest_effect=limit,
        order_matters=False,
        limited=True,
    )
    return results.model_copy(update={"verdicts": verdicts})


def subtract(clean: Clean, sides: tuple[str, ...], metrics: tuple[str, ...]) -> Clean:
    """Return a trial of each side in each block: its long run less its short one. Raises RunError."""
    gathering = Gathering(read_written=tuple, read_not_supported=dict)
    for side in sides:
        long, short = clean.places(side), clean.places(f"{side}{SHORT}")
        blocks = np.flatnonzero((long >= 0) & (short >= 0))
        columns = {name: clean.measured.metrics[name] for name in metrics}
        values = [
            {name: float(column[long[block]] - column[short[block]]) for name, column in columns.items()}
            for block in blocks
        ]
        if empty := next((name for value in values for name, number in value.items() if number <= 0), ""):
            raise RunError(f"more iterations have no more {empty}", hint="check that the benchmark does something")
        count = len(blocks)
        gathering.extend(
            block=[int(clean.blocks[block]) for block in blocks],
            position=list(range(count)),
            attempt=[0] * count,
            seed=[0] * count,
            warm_up=[False] * count,
            metrics=values,
            configuration=[side] * count,
            status=["ok"] * count,
            reason=[""] * count,
            written=[()] * count,
            not_supported=[()] * count,
        )
    return clean_trials(gathering.measurements())

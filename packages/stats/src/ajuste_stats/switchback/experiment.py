"""Switchback experiments from arrays: which treatment is drawn for which slice, and what the slices say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ajuste_stats.comparison import check_shares
from ajuste_stats.multiplicity import bonferroni
from ajuste_stats.switchback.judge import SliceJudgement, judge_treatment
from ajuste_stats.switchback.slices import Slice
from ajuste_stats.terms import Direction, Measure, Scale


def judge_switchback(
    values: ArrayLike,
    treatments: Sequence[str],
    blocks: ArrayLike,
    *,
    baseline: str,
    direction: Direction = "none",
    control: ArrayLike | None = None,
    stays: ArrayLike | None = None,
    smallest_effect: float = 0.05,
    scale: Scale = "ratio",
    resolution: float = 0.0,
    unit: str = "",
    confidence: float = 0.95,
    metrics: int = 1,
) -> dict[str, SliceJudgement]:
    """Judge every treatment but the ``baseline`` on the slices so far; it may be asked for after every slice.

    ``values`` has a number for each slice in the order of time, NaN for a slice that does not count; ``treatments`` and
    ``blocks`` have the treatment of each and the number of its block, as ``order_of_block`` draws them. ``control`` is
    a figure of the load in each slice that treatments do not change, such as requests per second. ``stays`` has the
    place (1 …) of each slice in its stay in blocks of stays and 0 elsewhere; with it nothing improves that does not
    when it stays. ``baseline`` names a treatment.

    The verdicts on all treatments and so many ``metrics`` hold together with ``confidence`` at all looks, whatever the
    load does, because the order of every block is random. Other arguments are those of ``compare``.

    Raises ValueError for sequences of unequal length, and where the baseline or another treatment has no slice.
    """
    check_shares(confidence=confidence, smallest_effect=smallest_effect)
    figures = np.asarray(values, np.float64)
    count = len(figures)
    columns = {
        "treatments": np.asarray(treatments, np.str_),
        "blocks": np.asarray(blocks, np.int64),
        "control": np.full(count, np.nan) if control is None else np.asarray(control, np.float64),
        "stays": np.zeros(count, np.int64) if stays is None else np.asarray(stays, np.int64),
    }
    for name, column in columns.items():
        if column.shape != (count,):
            raise ValueError(f"{name} has the shape {column.shape}; expected {count} figures, as values has")
    names = list(dict.fromkeys(str(name) for name in treatments))
    if baseline not in names or len(names) < 2:
        raise ValueError(f"treatments are {', '.join(map(repr, names))}; expected the baseline {baseline!r} and others")
    slices = [
        Slice(
            number,
            int(columns["blocks"][number]),
            str(columns["treatments"][number]),
            float(number),
            number + 1.0,
            float(figures[number]),
            None if control is None else float(columns["control"][number]),
            stay=int(columns["stays"][number]),
        )
        for number in range(count)
    ]
    quantity = Measure(direction, scale, resolution, unit=unit)
    return {
        name: judge_treatment(
            slices,
            quantity,
            baseline=baseline,
            treatment=name,
            alpha=bonferroni(confidence, (len(names) - 1) * metrics),
            smallest_effect=smallest_effect,
            stays=stays is not None,
        )
        for name in names
        if name != baseline
    }

"""What is found in the noise of slices: the diagnostics of every measurement, in the words of slices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.diagnostics.diagnose import diagnose
from ajuste.model.diagnostic import Diagnostic, Diagnostics
from ajuste.model.measurements import Gathering
from ajuste.model.metric import Metric
from ajuste.model.slices import Slice

_TRIAL: Final = re.compile(r"\btrial(s?)\b")

_WHY: Final = {
    "autocorrelation": "The order of every block is drawn at random, so verdicts hold however slices resemble each "
    "other.",
    "carry-over": "A longer wash-out would show the effect in full; a false one cannot come from this.",
}
FEWEST_BLOCKS: Final = 20
SURE: Final = 3.0
"""So many standard errors from nothing is taken for a change of the effect."""


def noise_of(slices: Sequence[Slice], metric: Metric) -> Diagnostics:
    """What is found in the slices that count."""
    found = diagnose(_measurements(slices, metric).measurements(), (metric,), "wall")
    return found.model_copy(
        update={
            "found": tuple(map(_of_slices, found.found)),
            "naive": tuple(one.model_copy(update={"says": _in_slices(one.says)}) for one in found.naive),
        }
    )


def sentences(diagnostics: Diagnostics) -> tuple[str, ...]:
    """Those findings that are there and matter, and what they mean for the verdicts."""
    return (
        *(f"{one.says} {one.why}".strip() for one in diagnostics.found if one.matters),
        *(one.says for one in diagnostics.naive),
    )


def changes_over_time(differences: NDArray[np.float64]) -> bool:
    """Whether the effect itself changes: whether differences of neighbouring blocks resemble each other.

    Under one and the same effect their signs around it are independent, so the products of neighbours add up to
    nothing, with the sum of their squares as variance, whatever the noise is.
    """
    if len(differences) < FEWEST_BLOCKS:
        return False
    away = differences - np.mean(differences)
    products = away[1:] * away[:-1]
    return float(np.sum(products)) > SURE * float(np.sqrt(np.sum(products**2)))


def _of_slices(found: Diagnostic) -> Diagnostic:
    why = _WHY.get(found.kind, found.why) if found.present else found.why
    return found.model_copy(
        update={
            "says": _in_slices(found.says),
            "measures": _in_slices(found.measures),
            "why": _in_slices(why),
            "verdict_affected": found.verdict_affected and found.kind not in _WHY,
        }
    )


def _in_slices(text: str) -> str:
    return _TRIAL.sub(r"slice\1", text)


def _measurements(slices: Sequence[Slice], metric: Metric) -> Gathering:
    """The slices as if they were trials. Where a block has a configuration several times, it is as many blocks: its
    first slices, its second ones and so on.
    """
    counting = [one for one in sorted(slices, key=lambda one: one.number) if one.counts]
    seen: Counter[tuple[int, str]] = Counter()
    numbers: dict[tuple[int, int], int] = {}
    positions: Counter[int] = Counter()
    blocks, places = [], []
    for one in counting:
        part = (one.block, seen[one.block, one.configuration])
        seen[one.block, one.configuration] += 1
        block = numbers.setdefault(part, len(numbers))
        blocks.append(block)
        places.append(positions[block])
        positions[block] += 1
    count = len(counting)
    gathering = Gathering(read_written=tuple, read_not_supported=dict)
    gathering.extend(
        block=blocks,
        position=places,
        attempt=[0] * count,
        seed=[0] * count,
        warm_up=[False] * count,
        metrics=[{metric.name: one.value or 0.0} for one in counting],
        configuration=[one.configuration for one in counting],
        status=["ok"] * count,
        reason=[""] * count,
        written=[()] * count,
        not_supported=[()] * count,
    )
    return gathering

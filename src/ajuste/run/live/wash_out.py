"""The wash-out of a live experiment: how long its metrics take to respond, from the first slices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from ajuste.analysis.live import in_order, readings_of
from ajuste.design.wash_out import WashOut, estimate_wash_out
from ajuste.model.live import LiveDesign
from ajuste.model.trial import Trial
from ajuste.run.live.monitor import LOOK_SECONDS
from ajuste.study.resolved import ResolvedStudy

PILOT_BLOCKS: Final = 1
"""Blocks that only show how long it takes, where nobody said it."""
_FIRST_SHARE: Final = 0.25
_LEAST_SECONDS: Final = 1.0


def first_wash_out(slice_s: float) -> float:
    """What is left out while nothing is known."""
    return _FIRST_SHARE * slice_s


def wash_out_of(study: ResolvedStudy, trials: Sequence[Trial], live: LiveDesign) -> WashOut:
    """The longest that any of the deciding metrics takes, at most half of a slice."""
    ordered = [one for one in in_order(trials) if one.status == "ok"]
    found = [_of_metric(metric.name, study, ordered, live) for metric in study.deciding]
    longest = max(found, key=lambda one: one.seconds)
    if longest.seconds <= live.slice_s / 2:
        return longest
    words = f"{longest.says}; limited to half of a slice, so give a longer --slice"
    return WashOut(live.slice_s / 2, known=longest.known, says=words)


def _of_metric(metric: str, study: ResolvedStudy, ordered: Sequence[Trial], live: LiveDesign) -> WashOut:
    """From the changes between the baseline and another configuration; those back are mirrored."""
    responses = []
    for before, after in pairwise(ordered):
        names = (before.slot.configuration, after.slot.configuration)
        if names[0] == names[1] or study.baseline not in names:
            continue
        values = [value for _, value in readings_of(after, metric) if value is not None]
        if len(values) >= live.slice_s / LOOK_SECONDS / 2:
            responses.append((1 if names[0] == study.baseline else -1) * np.array(values))
    least = min(max(_LEAST_SECONDS, 0.1 * live.slice_s), live.slice_s / 4)
    if not responses:
        return WashOut(least, known=False, says="no response to the changes is seen")
    return estimate_wash_out(responses, LOOK_SECONDS, least_s=least)

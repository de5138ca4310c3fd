"""The wash-out of a live experiment: how long its metrics take to respond, from the first slices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ajuste.analysis.live import in_order, readings_of
from ajuste.design.switchback import StepResponse, WashOut, estimate_wash_out
from ajuste.model.live import LiveDesign
from ajuste.model.trial import Trial
from ajuste.run.live.monitor import LOOK_SECONDS
from ajuste.study.resolved import ResolvedStudy

ENOUGH_BLOCKS: Final = 5
"""Have enough changes to tell, where nobody said how long it takes."""
_LEAST_SECONDS: Final = 1.0
_LEAST_SHARE: Final = 0.1


def wash_out_of(study: ResolvedStudy, trials: Sequence[Trial], live: LiveDesign) -> WashOut:
    """The longest that any of the deciding metrics takes, at most half of a slice."""
    ordered = [one for one in in_order(trials) if one.status == "ok"]
    found = [_of_metric(metric.name, ordered, live) for metric in study.deciding]
    longest = max(found, key=lambda one: one.seconds)
    if longest.seconds <= live.slice_s / 2:
        return longest
    words = f"{longest.says}; limited to half of a slice, so give a longer --slice"
    return WashOut(live.slice_s / 2, longest.constant_s, words)


def _of_metric(metric: str, ordered: Sequence[Trial], live: LiveDesign) -> WashOut:
    """From every change from one configuration to another, slice after slice."""
    responses = []
    for before, after in pairwise(ordered):
        values = tuple(value for _, value in readings_of(after, metric) if value is not None)
        old, new = before.slot.configuration, after.slot.configuration
        if old != new and len(values) >= live.slice_s / LOOK_SECONDS / 2:
            responses.append(StepResponse(old, new, values))
    least_s = min(max(_LEAST_SECONDS, _LEAST_SHARE * live.slice_s), live.slice_s / 4)
    return estimate_wash_out(responses, LOOK_SECONDS, least_s=least_s)

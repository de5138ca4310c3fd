"""Verdicts on slices: what a live experiment would print, run by run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.switchback.plan import noise_of_pilot, plan_slices
from ajuste_stats.terms import SwitchbackOrder


def test_mirrored_blocks_are_planned_shorter_where_load_changes_quickly_and_noise_needs_enough_values() -> None:
    random = np.random.default_rng(8)
    ramps = np.exp(np.abs(np.arange(96) % 48 - 24) * 0.05 + random.normal(0, 0.01, 96))
    flat = np.exp(random.normal(0, 0.01, 96))

    def slices(pilot: NDArray[np.float64], order: SwitchbackOrder) -> int:
        noise = noise_of_pilot(pilot, 4, order, ratio=True)
        assert noise is not None
        return plan_slices(noise, np.log1p(0.03), 0.05, 4, order).slices or 10**9

    assert slices(ramps, "mirrored") < slices(ramps, "random")
    assert slices(flat, "random") <= slices(flat, "mirrored")
    assert noise_of_pilot(flat[:5], 2, "random", ratio=True) is None
    assert noise_of_pilot(np.zeros(20), 2, "random", ratio=True) is None

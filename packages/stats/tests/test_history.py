"""Versions of the kernel with known changes, and how often noise makes changes where there are none."""

from __future__ import annotations

import math

import numpy as np

from ajuste_stats.change_points import change_points


def test_noise_makes_no_changes() -> None:
    random = np.random.default_rng(2)
    weights = np.full(6, 1.0)
    wrong = sum(change_points(random.normal(size=6), weights, 30, 0.05) != [0] for _ in range(400))
    assert wrong <= 0.05 * 400 + 2 * math.sqrt(400 * 0.05 * 0.95)

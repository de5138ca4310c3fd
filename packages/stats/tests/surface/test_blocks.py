"""Levels and noise of configurations that were measured in different blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from .conftest import Draw

TRUTH = np.array([0.0, 0.5, -0.3, 0.2])


def test_levels_of_complete_blocks_are_means(draw: Draw) -> None:
    blocks = draw(np.random.default_rng(1), TRUTH)
    assert blocks.levels == pytest.approx(blocks.values.mean(axis=1))


def test_levels_of_incomplete_blocks_are_those_of_least_squares(draw: Draw) -> None:
    blocks = draw(np.random.default_rng(2), TRUTH)
    values = blocks.values.copy()
    values[3, :4] = values[1, 2:5] = np.nan
    rows, columns = np.nonzero(np.isfinite(values))
    design = np.hstack([np.eye(4)[rows], np.eye(6)[columns]])
    fitted, *_ = np.linalg.lstsq(design, values[rows, columns], rcond=None)
    levels = replace(blocks, values=values).levels
    assert np.diff(levels) == pytest.approx(np.diff(fitted[:4]), abs=1e-6)


def test_variances_are_of_what_differs_within_blocks(draw: Draw) -> None:
    noise = np.array([0.01, 0.01, 0.04, 0.01, 0.01, 0.01, 0.01, 0.01])
    blocks = draw(np.random.default_rng(3), np.zeros(8), blocks=4000, noise=noise)
    assert np.sqrt(blocks.variances[2]) == pytest.approx(0.04, rel=0.1)
    assert np.median(np.sqrt(blocks.variances)) == pytest.approx(0.01, rel=0.2)

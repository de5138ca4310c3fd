"""Quantities that many tests measure."""

from __future__ import annotations

import pytest

from ajuste_stats import Measure


@pytest.fixture
def elapsed() -> Measure:
    return Measure("lower", unit="s", resolution=1e-9)


@pytest.fixture
def switches() -> Measure:
    return Measure("none", "difference", resolution=1)

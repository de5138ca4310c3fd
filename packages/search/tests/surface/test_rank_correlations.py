"""Rank correlations over the configurations of a study."""

from __future__ import annotations

import pytest

from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Summary
from ajuste_search.surface.rank_correlations import correlations

ELAPSED, SWITCHES, FAULTS = (Metric(name=name, title=name, unit="", direction="none") for name in "esf")


def configuration(name: str, **means: float) -> Measured:
    rest = dict(n=1, median=None, sd=None, sem=None, minimum=None, maximum=None)
    return Measured(name=name, levels={}, metrics={k: Summary(mean=v, **rest) for k, v in means.items()})


def test_what_rises_together_and_what_does_not_vary() -> None:
    measured = [configuration(f"c{n}", e=n**2, s=100 - n, f=7) for n in range(10)]
    (only,) = correlations(measured, [ELAPSED], [ELAPSED, SWITCHES, FAULTS], 0.95)
    assert (only.metric, only.other, only.rho, only.n) == ("e", "s", pytest.approx(-1), 10)
    assert only.low <= only.rho <= only.high < -0.9


def test_few_configurations_tell_nothing() -> None:
    assert correlations([configuration(f"c{n}", e=n, s=n) for n in range(5)], [ELAPSED], [SWITCHES], 0.95) == ()

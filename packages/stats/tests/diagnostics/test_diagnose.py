"""Defects are found where they are, and hardly any where there is none."""

from __future__ import annotations

from ajuste_stats.multiplicity import holm


def test_holm_is_as_in_his_paper() -> None:
    assert holm([0.01, 0.04, 0.03, None, 0.005], 0.05) == [True, False, False, False, True]
    assert holm([], 0.05) == []

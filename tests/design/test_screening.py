from __future__ import annotations

from itertools import combinations as chosen

import numpy as np
import pytest

from ajuste.design.combinations import combination_count, combinations, signs
from ajuste.model.trial import Factor


@pytest.mark.parametrize(
    ("factors", "levels", "configurations"),
    [(5, 2, 16), (7, 2, 16), (11, 2, 24), (12, 2, 32), (19, 2, 40), (24, 2, 64), (4, 3, 9), (6, 3, 13), (12, 3, 25)],
)
def test_main_effects_are_clear_of_each_other_and_of_interactions_of_two(
    factors: int, levels: int, configurations: int
) -> None:
    design = np.array(signs(factors, levels))
    assert design.shape == (configurations, factors)
    assert len(set(map(tuple, design))) == configurations
    assert np.array_equal(design.T @ design, design[:, 0] @ design[:, 0] * np.eye(factors))
    assert not np.any(design.sum(axis=0))
    for first, second in chosen(range(factors), 2):
        assert not np.any(design.T @ (design[:, first] * design[:, second]))


@pytest.mark.parametrize(("levels", "baseline"), [(("0", "1"), "0"), (("0", "1"), "1"), (("0", "1", "2"), "1")])
def test_the_baseline_comes_first_and_what_does_not_vary_stays(levels: tuple[str, ...], baseline: str) -> None:
    factors = [Factor(name=f"f{place}", levels=levels, baseline=baseline) for place in range(6)]
    factors.insert(2, Factor(name="fixed", levels=("7",), baseline="7"))
    rows = combinations(factors, "screening")
    assert rows[0] == (baseline, baseline, "7", *4 * [baseline])
    assert {row[2] for row in rows} == {"7"}
    assert len(rows) == combination_count(factors, "screening")

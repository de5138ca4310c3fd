"""The best division of points into stretches beside all divisions that there are."""

from __future__ import annotations

from itertools import chain, combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste_stats.regions import partition


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=8), st.floats(0, 2_000))
def test_no_division_costs_less(values: list[int], penalty: float) -> None:
    def cost(start: int, end: int) -> float:
        return float(np.var(values[start:end])) * (end - start)

    def whole(ends: tuple[int, ...]) -> float:
        return sum(cost(start, end) + penalty for start, end in pairwise((0, *ends)))

    inner = range(1, len(values))
    every = chain.from_iterable(combinations(inner, size) for size in range(len(values)))
    best_ends = partition(len(values), cost, penalty)
    assert best_ends == sorted(set(best_ends))
    assert best_ends[-1] == len(values)
    assert whole(tuple(best_ends)) == pytest.approx(min(whole((*ends, len(values))) for ends in every))

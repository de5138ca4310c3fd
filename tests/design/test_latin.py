from __future__ import annotations

import numpy as np
from benchmarks.orders import ever_wrong, played


def test_where_the_place_in_a_block_matters_squares_cancel_it_and_mislead_no_more_often() -> None:
    latin, random = played("latin", 40), played("random", 40)
    assert np.std(latin.mean(axis=1)) < 0.75 * np.std(random.mean(axis=1))
    assert np.count_nonzero(ever_wrong(latin)) <= 5  # more than 5 of 40 would be seen in 2 of 100 such tests at 5 %

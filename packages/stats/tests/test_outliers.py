from __future__ import annotations

import numpy as np

from ajuste_stats.outliers import median


def test_the_median_is_numpys() -> None:
    noise = np.random.default_rng(1)
    for n in range(1, 30):
        for values in (noise.normal(size=n), noise.integers(0, 3, n).astype(float), np.full(n, 1e308)):
            with np.errstate(over="ignore"):
                assert median(values) == np.median(values)

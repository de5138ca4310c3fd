"""Differences that are no evidence, and how many values evidence would have taken."""

from __future__ import annotations

import numpy as np

from ajuste_analyse.comparison import not_evidence
from ajuste_stats.fixed_samples import paired, unpaired


def test_two_sentences_say_it_from_the_numbers() -> None:
    sample = np.array([10.1, 10.2, 10.3, 10.4, 10.5])
    contrast = unpaired(sample, sample + 0.1)
    spread = float(np.std(sample, ddof=1))
    text = not_evidence(
        contrast, (spread, spread), (5, 5), 0.05, scale="difference", unit="s", estimate=contrast.difference
    )
    assert text == (
        "The difference, +100 ms, is 1 times its standard error (100 ms): from 5 and 5 values that spread as these do, "
        "chance alone gives one at least as large in 35 % of cases (p = 0.35). "
        "Here a difference is significant below p = 0.05; it "
        "would have taken about 54 values of each to see a difference of this size in nine of ten such comparisons."
    )


def test_within_blocks_it_is_blocks_that_it_would_have_taken() -> None:
    sample = np.array([1.0, 2.0, 3.0, 4.0])
    contrast = paired(sample, sample + np.array([0.1, -0.1, 0.2, -0.1]))
    text = not_evidence(contrast, (0.15,), (4, 4), 0.05, scale="difference", unit="", estimate=contrast.difference)
    assert "from 4 blocks that spread as these do" in text
    assert "it would have taken about 381 blocks to see" in text

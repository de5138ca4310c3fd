from __future__ import annotations

from scipy import stats

from ajuste.design.blocks import TICK_NS, perturbation


def test_the_same_seed_is_the_same_perturbation_and_others_differ() -> None:
    assert perturbation(12) == perturbation(12)
    assert len({perturbation(seed).entropy for seed in range(1000)}) == 1000


def test_padding_and_delay_cover_a_page_and_a_tick_evenly() -> None:
    made = [perturbation(seed) for seed in range(4000)]
    paddings = [p.environment_bytes for p in made]
    assert {p % 16 for p in paddings} == {0}
    assert (min(paddings), max(paddings)) == (0, 4080)
    delays = [p.start_delay_ns / TICK_NS for p in made]
    assert stats.kstest(delays, "uniform").pvalue > 0.001
    assert 0 <= min(delays) <= max(delays) < 1

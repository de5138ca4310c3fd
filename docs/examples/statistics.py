"""Ajuste's statistics on data of your own: docs/how-to/notebook.md."""

import numpy as np

from ajuste_stats import Monitor, blocks_needed, compare, pair_variance, rank

# A verdict that you may ask for after every block. baseline_first says which of the two ran first.
random = np.random.default_rng(7)
monitor = Monitor(direction="lower", smallest_effect=0.01)
while not monitor.decided:
    baseline, changed = random.normal(10.0, 0.1), random.normal(9.5, 0.1)  # seconds
    monitor.add(baseline, changed, baseline_first=bool(random.random() < 0.5))

verdict = monitor.verdict
print(f"{verdict.word} after {verdict.blocks} blocks: {verdict.low:.3f} to {verdict.high:.3f} of the baseline")
assert verdict.word == "improves"
assert verdict.low < 0.95 < verdict.high < 1

# How many blocks would show 1 %, if single runs scatter by 1 %?
needed = blocks_needed(0.01, pair_variance(0.01), alpha=0.05)
print(f"{needed} blocks")
assert needed > verdict.blocks

# From arrays, with another smallest effect that matters.
baselines, others = random.normal(10.0, 0.1, 40), random.normal(9.5, 0.1, 40)
assert compare(baselines, others, smallest_effect=0.20).word == "equivalent"

# Which of several is the best, and which may be as good?
table = {"a": baselines, "b": others, "c": random.normal(9.5, 0.1, 40)}
ranking = rank(table, direction="lower")
print(f"best: {', '.join(ranking.contenders)}")
assert "a" not in ranking.contenders

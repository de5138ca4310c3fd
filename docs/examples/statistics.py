"""Ajuste's statistics on data of your own: docs/how-to/notebook.md."""

import numpy as np

from ajuste.model.metric import Metric
from ajuste_stats.confidence_sequences import fewest, mean_interval, values_needed
from ajuste_stats.decision import verdict_word
from ajuste_stats.effects import effect, margin
from ajuste_stats.pairs import Pairs

# The confidence sequence for the mean of roughly normal values: look after every value.
random = np.random.default_rng(7)
baseline = random.normal(10.0, 0.1, 40)  # seconds
changed = random.normal(9.5, 0.1, 40)
ratios = np.log(changed / baseline)

for n in range(fewest(0.05), 21):  # below three values nothing can be said
    interval = mean_interval(ratios[:n], alpha=0.05)
    if interval.high < 0:
        break

low, high = np.exp([interval.low, interval.high])
print(f"after {n} pairs: {low:.3f} to {high:.3f} of the baseline")
assert low < 0.95 < high < 1

# How many pairs would show 1 %, with the present scatter?
needed = values_needed(float(np.var(ratios, ddof=1)), np.log(1.01), 0.05, most=10_000)
print(f"{needed} pairs")
assert needed > n

# Effects and the zone of equivalence. baseline_first says which of a pair ran first, where that can matter.
elapsed = Metric(name="elapsed", title="elapsed time", unit="s", direction="lower")
pairs = Pairs(baseline, changed, baseline_first=random.random(40) < 0.5)
found = effect(pairs, elapsed, alpha=0.05)

assert found.scale == "ratio"
assert verdict_word(found, elapsed, margin(found, smallest_effect=0.01)) == "improves"
assert verdict_word(found, elapsed, margin(found, smallest_effect=0.20)) == "equivalent"

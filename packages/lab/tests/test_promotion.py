"""Evidence and the error budget of campaigns, against what they promise."""

from __future__ import annotations

from tests.analysis.conftest import build_trials

from ajuste.analysis.pairs import clean_trials
from ajuste.model.metric import Metric
from ajuste_lab.campaign.promotion import evidence


def test_a_proposal_whose_rare_trials_cost_more_than_the_others_save_has_no_evidence() -> None:
    base = [1 + 0.0001 * (number % 3) for number in range(40)]
    better = [0.995 * value for value in base]
    rare = [2 * value if number in (11, 29) else value for number, value in enumerate(better)]
    metric = Metric(name="elapsed", title="elapsed time", unit="s", direction="lower")
    clean, spoilt = (clean_trials(build_trials({"knob=1": base, "knob=2": sample})) for sample in (better, rare))
    assert evidence(clean, "knob=1", "knob=2", metric, order_matters=False) > 1e6
    assert evidence(spoilt, "knob=1", "knob=2", metric, order_matters=False) == 0

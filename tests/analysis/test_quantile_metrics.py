from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ajuste.analysis.pairs import clean_trials
from ajuste.analysis.summary import measured, with_quantile_columns, with_quantiles
from ajuste.analysis.verdict import judge
from ajuste.model.measurements import measurements
from ajuste.model.metric import Metric

RANDOM = np.random.default_rng(9)
VALUES = {"knob=1": list(RANDOM.lognormal(0, 0.02, 80)), "knob=2": list(1.3 * RANDOM.lognormal(0, 0.02, 80))}


def test_a_quantile_is_judged_summarised_and_drawn_from_the_trials_of_its_metric(
    configurations: Any, trials: Any, elapsed: Metric
) -> None:
    metric = elapsed.at(0.9)
    columns = with_quantile_columns(measurements(trials(VALUES)), [elapsed, metric])
    clean = clean_trials(columns)
    summaries = with_quantiles(measured(configurations("1", "2"), clean), clean, [elapsed, metric])
    for configuration in summaries:
        summary = configuration.metrics["elapsed@p90"]
        assert summary.mean == pytest.approx(np.quantile(VALUES[configuration.name], 0.9))
        assert (summary.sd, summary.sem, summary.n) == (None, None, 80)
        assert configuration.metrics["elapsed"].mean == pytest.approx(np.mean(VALUES[configuration.name]))
    assert columns.metrics["elapsed@p90"] is columns.metrics["elapsed"]


def test_its_verdict_names_it_and_says_how_many_blocks_it_needs(
    configurations: Any, trials: Any, elapsed: Metric
) -> None:
    both, metric = configurations("1", "2"), elapsed.at(0.9)
    (verdict,) = judge(both, trials(VALUES), [metric])
    assert (verdict.metric, verdict.verdict, verdict.blocks) == ("elapsed@p90", "worsens", 80)
    assert verdict.estimate == pytest.approx(np.quantile(VALUES["knob=2"], 0.9) / np.quantile(VALUES["knob=1"], 0.9))
    few = {name: values[:20] for name, values in VALUES.items()}
    (verdict,) = judge(both, trials(few), [metric])
    assert (verdict.verdict, verdict.more_blocks) == ("undecided", None)
    assert verdict.reason == "20 blocks of the 40 that an interval requires"


def test_without_quantiles_nothing_is_copied(trials: Any, elapsed: Metric) -> None:
    columns = measurements(trials(VALUES))
    assert with_quantile_columns(columns, [elapsed]) is columns

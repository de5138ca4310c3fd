from __future__ import annotations

import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ajuste.analysis.summary import measured, summarise
from ajuste.model.event import Written


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_a_summary_agrees_with_the_standard_library_and_scipy(values: list[float]) -> None:
    summary = summarise(values)
    assert summary.n == len(values)
    assert summary.mean == pytest.approx(statistics.fmean(values), abs=1e-6)
    assert summary.median == pytest.approx(statistics.median(values))
    assert (summary.minimum, summary.maximum) == (min(values), max(values))
    if len(values) < 2:
        assert summary.sd is None
        assert summary.sem is None
    else:
        assert summary.sd == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)
        assert summary.sem == pytest.approx(stats.sem(values), rel=1e-6, abs=1e-6)


def test_only_clean_trials_are_summarised_and_what_was_read_back_is_shown(configurations: Any, trials: Any) -> None:
    data = trials({"knob=1": [1.0, 2.0, 3.0]})
    write = Written(at_ns=1, tunable="knob", asked="1", before="5", after="1")
    data = [t.model_copy(update={"written": (write,), "not_supported": {"cycles": "no PMU"}}) for t in data]
    data[2] = data[2].model_copy(update={"status": "flagged", "written": (write.model_copy(update={"after": "4"}),)})
    (configuration,) = measured(configurations("1"), data)
    assert configuration.baseline
    assert configuration.metrics["elapsed"].n == 2
    assert configuration.metrics["elapsed"].maximum == 2.0
    assert configuration.read_back == {"knob": "1, 4"}
    assert configuration.not_supported == {"cycles": "no PMU"}


def test_a_value_that_the_kernel_only_writes_otherwise_is_not_another(configurations: Any, trials: Any) -> None:
    write = Written(at_ns=1, tunable="knob", asked="1 2", before="5", after="1\t2")
    data = [t.model_copy(update={"written": (write,)}) for t in trials({"knob=1": [1.0, 2.0]})]
    (configuration,) = measured(configurations("1"), data)
    assert configuration.read_back == {"knob": "1 2"}

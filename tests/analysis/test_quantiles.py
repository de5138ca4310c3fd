from __future__ import annotations

import pytest

from ajuste.model.metric import Metric, split_percentile

ELAPSED = Metric(name="elapsed", title="elapsed time", unit="s", direction="lower")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("elapsed@p95", ("elapsed", 0.95)),
        ("jitter.max@p99.9", ("jitter.max", 0.999)),
        ("elapsed", ("elapsed", None)),
        ("elapsed@p0", ("elapsed@p0", None)),
        ("elapsed@p100", ("elapsed@p100", None)),
        ("@p50", ("@p50", None)),
    ],
)
def test_a_percentile_is_named_after_its_metric(name: str, parts: tuple[str, float | None]) -> None:
    assert split_percentile(name) == parts
    if parts[1] is not None:
        metric = ELAPSED.model_copy(update={"name": parts[0]}).at(parts[1])
        assert (metric.name, metric.column) == (name, parts[0])

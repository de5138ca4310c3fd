"""Trials with a known answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Slot, Trial

Build = Callable[..., list[Trial]]


@pytest.fixture
def elapsed() -> Metric:
    return Metric(name="elapsed", title="elapsed time", unit="s", direction="lower", resolution=1e-9)


@pytest.fixture
def switches() -> Metric:
    return Metric(
        name="switches", title="involuntary switches", unit="", direction="none", scale="difference", resolution=1
    )


@pytest.fixture
def configurations() -> Callable[..., list[Configuration]]:
    def build(*levels: str, factor: str = "knob") -> list[Configuration]:
        return [
            Configuration(name=f"{factor}={level}", levels={factor: level}, baseline=index == 0)
            for index, level in enumerate(levels)
        ]

    return build


def build_trials(values: Mapping[str, Sequence[float]], metric: str = "elapsed") -> list[Trial]:
    """``build_trials({"knob=1": [block 0, block 1, …], …})``: trials with these values, in alternating order."""
    return [
        Trial(
            slot=Slot(block=block, position=(position + block) % len(values), configuration=name, seed=block + 100),
            status="ok",
            metrics={metric: float(value)},
        )
        for position, (name, sample) in enumerate(values.items())
        for block, value in enumerate(sample)
    ]


@pytest.fixture
def trials() -> Build:
    return build_trials

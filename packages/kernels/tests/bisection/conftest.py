"""A session whose measurements are played: each kernel has the effect that the test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.cli.choice import Choices, chosen_study
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.verdict import Verdict
from ajuste.study.schema import Study
from ajuste_kernels.bisection.bisect import Watching
from ajuste_kernels.bisection.session import BisectionSession, StepMeasurement
from ajuste_kernels.building.built import find_built
from ajuste_stats.terms import Word


@dataclass
class Lab:
    """``ratios`` by kernel, 1 where nothing is said; ``broken`` kernels do not boot. The interval of a ratio is as wide
    as ``width`` over the number of blocks, in both directions.
    """

    ratios: Mapping[str, float] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    width: float = 0.1
    measured: list[tuple[str, int]] = field(default_factory=list)

    def __call__(self, study: Study) -> StepMeasurement:
        _, kernel = study.factors[0].levels
        blocks = study.budget.min_blocks
        self.measured.append((kernel, blocks))
        if kernel in self.broken:
            raise RequestError(f"{kernel} does not boot", of_candidate=True)
        ratio = self.effect(kernel)
        low, high = ratio - self.width / blocks, ratio + self.width / blocks
        word: Word = "worsens" if low > 1 else "equivalent" if high < 1.05 else "undecided"
        return StepMeasurement(
            Verdict(
                metric="elapsed", unit="s", direction="lower", scale="ratio", verdict=word, estimate=ratio, low=low,
                high=high, level=0.95, blocks=blocks, reason="as the test says", configuration=kernel,
            ),
            run=f"run-{kernel}",
            report=f"{kernel}.html",
        )  # fmt: skip

    def effect(self, kernel: str) -> float:
        return self.ratios.get(kernel, 1.0)


@pytest.fixture
def session_in() -> Callable[[Lab], Callable[[str, int], BisectionSession]]:
    study = chosen_study("granularity", catalogue(), Choices())
    return lambda lab: lambda good, tests: BisectionSession(study, "elapsed", good, lab, tests, lambda _: None)


@dataclass
class LabByConfig(Lab):
    """The effect of a kernel that was built is that of its configuration."""

    home: Home | None = None
    of_config: Callable[[str], float] = field(default=lambda _: 1.0)

    def effect(self, kernel: str) -> float:
        assert self.home is not None
        config = find_built(kernel.removeprefix("mine:"), self.home).image.config
        assert config is not None
        return self.of_config(config.read_text())


@pytest.fixture
def lab_by_config() -> Callable[[Home, Callable[[str], float]], Lab]:
    return lambda home, of_config: LabByConfig(home=home, of_config=of_config)


class _Silent:
    def say(self, text: str) -> None: ...

    def compiling(self, expected: int | None) -> None: ...

    def compiled(self, count: int) -> None: ...


@pytest.fixture
def silent() -> Watching:
    """Shows nothing of a build."""
    return lambda: nullcontext(_Silent())


@pytest.fixture
def lab() -> type[Lab]:
    return Lab

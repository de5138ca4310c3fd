"""Versions of the kernel with known changes, and how often noise makes changes where there are none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ajuste.analysis.block_values import Promise
from ajuste.analysis.pairs import clean_trials
from ajuste.model.history import History
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Factor, Slot, Trial
from ajuste_ci.versions.histories import histories

TIME = Metric(name="time", title="Time", unit="s", direction="lower")
CLOUD = ("debian:6.12", "debian:5.10", "debian:6.1", "debian:7.3", "debian:6.16", "debian:6.18.15")
TRUTH = {"5.10": 2.0, "6.1": 2.02, "6.12": 1.5, "6.16": 1.5, "6.18": 1.51, "7.3": 1.8}


def simulated_histories(
    levels: tuple[str, ...], truth: dict[str, float], *, noise: float = 0.005, blocks: int = 6
) -> list[History]:
    """The histories of a simulated study, whose blocks differ by much more than its kernels."""
    random = np.random.default_rng(1)
    factor = Factor(name="kernel", levels=levels, baseline=levels[0])
    made = [Configuration(name=level, levels={"kernel": level}, baseline=level == levels[0]) for level in levels]
    trials = []
    for block in range(blocks):
        common = random.normal(0, 0.3)
        for place, configuration in enumerate(made):
            value = truth.get(".".join(configuration.name.partition(":")[2].split("/")[0].split(".")[:2]), 1.0)
            slot = Slot(configuration=configuration.name, block=block, position=place, seed=block)
            trials.append(
                Trial(slot=slot, status="ok", metrics={"time": value * math.exp(common + random.normal(0, noise))})
            )
    return list(histories([factor], made, clean_trials(trials), [TIME], Promise(0.95, 0.05, order_matters=False)))


def test_versions_stand_in_their_own_order_with_their_schedulers() -> None:
    (history,) = simulated_histories(CLOUD, TRUTH)
    assert [point.version for point in history.points] == ["5.10", "6.1", "6.12", "6.16", "6.18", "7.3"]
    assert [point.scheduler for point in history.points] == ["CFS"] * 2 + ["EEVDF"] * 4


def test_changes_are_found_where_they_are_and_as_large_as_they_are() -> None:
    (history,) = simulated_histories(CLOUD, TRUTH)
    assert history.known
    assert [(change.before, change.after) for change in history.changes] == [("6.1", "6.12"), ("6.18", "7.3")]
    assert [change.change for change in history.changes] == pytest.approx([1.5 / 2.01, 1.8 / 1.503], rel=0.01)


def test_the_truth_is_within_the_intervals_but_for_what_blocks_have_in_common() -> None:
    (history,) = simulated_histories(CLOUD, TRUTH)
    first = history.points[0]
    for point in history.points:
        assert point.low is not None
        assert point.high is not None
        assert point.low / first.value < TRUTH[point.version] / TRUTH["5.10"] < point.high / first.value


def test_certain_changes_that_are_too_small_to_matter_are_none() -> None:
    (history,) = simulated_histories(
        CLOUD, {version: 2.0 + 0.01 * place for place, version in enumerate(TRUTH)}, noise=1e-5
    )
    assert history.known
    assert history.changes == ()


def test_versions_whose_few_trials_are_of_one_mode_by_chance_make_no_changes() -> None:
    """Two in five trials are 8 % slower: a version that has none of them, or only such, seems to have no noise."""
    levels = tuple(f"debian:6.{version}" for version in range(1, 11))
    factor = Factor(name="kernel", levels=levels, baseline=levels[0])
    made = [Configuration(name=level, levels={"kernel": level}, baseline=level == levels[0]) for level in levels]
    random, wrong = np.random.default_rng(3), 0
    for _ in range(150):
        values = np.exp(0.08 * (random.random((5, 10)) < 0.4) + 0.005 * random.standard_normal((5, 10)))
        trials = [
            Trial(
                slot=Slot(configuration=level, block=block, position=place, seed=block),
                status="ok",
                metrics={"time": float(values[block, place])},
            )
            for block in range(5)
            for place, level in enumerate(levels)
        ]
        promise = Promise(0.95, 0.01, order_matters=False)
        (history,) = histories([factor], made, clean_trials(trials), [TIME], promise)
        wrong += bool(history.changes)
    assert wrong <= 7  # 5 % are 7.5


def test_one_block_says_nothing_of_changes() -> None:
    (history,) = simulated_histories(CLOUD, TRUTH, blocks=1)
    assert (history.known, history.changes) == (False, ())


def test_each_flavour_has_a_line_of_its_own() -> None:
    levels = (*CLOUD, *(f"debian:{version}/rt" for version in ("6.1", "6.12", "7.3")))
    assert [(h.flavour, len(h.points)) for h in simulated_histories(levels, TRUTH)] == [("", 6), ("rt", 3)]


@pytest.mark.parametrize(
    "levels",
    [("debian:5.10", "debian:6.1"), ("mine:a", "mine:b", "mine:c"), ("debian:5", "debian:6", "debian:7")],
    ids=["two versions", "kernels by names", "the newest of each"],
)
def test_what_is_no_line_of_versions_has_no_history(levels: tuple[str, ...]) -> None:
    assert simulated_histories(levels, {}) == []


def test_levels_in_order_are_versions_whatever_they_are_called() -> None:
    levels = ("e3", "a1", "c2", "b4")
    factor = Factor(name="command", levels=levels, baseline="e3", in_order=True)
    made = [Configuration(name=level, levels={"command": level}, baseline=level == "e3") for level in levels]
    random = np.random.default_rng(2)
    trials = [
        Trial(
            slot=Slot(configuration=configuration.name, block=block, position=place, seed=block),
            status="ok",
            metrics={"time": (1.2 if place >= 2 else 1.0) * math.exp(random.normal(0, 0.005))},
        )
        for block in range(6)
        for place, configuration in enumerate(made)
    ]
    promise = Promise(0.95, 0.05, order_matters=False)
    (history,) = histories([factor], made, clean_trials(trials), [TIME], promise)
    assert [point.version for point in history.points] == list(levels)
    assert (history.factor, {point.scheduler for point in history.points}) == ("command", {""})
    assert [(change.before, change.after) for change in history.changes] == [("a1", "c2")]
    unordered = factor.model_copy(update={"in_order": False})
    assert histories([unordered], made, clean_trials(trials), [TIME], promise) == ()

"""Made data. Truth: what they were made with, found again with SciPy and NumPy."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from packages.course.tests.cheating import LIGHT
from scipy.stats import linregress, ttest_1samp

from ajuste.model.error import RequestError
from ajuste_course.sheet import Sheet, SimulateStep, read_sheet
from ajuste_course.simulation import BASE, OTHER, made_data


@pytest.fixture(scope="module")
def sheet() -> Sheet:
    return read_sheet(LIGHT)


def step(**changes: object) -> SimulateStep:
    return SimulateStep.model_validate({"kind": "simulate", "name": "made", "text": "Data.", **changes})


def logs(sheet: Sheet, seed: int, made: SimulateStep) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = made_data(sheet, made, "1", seed).rows
    names = np.array([name for name, _, _, _ in rows])
    times = np.array([time for _, _, time, _ in rows])
    return names, times, np.log([value for _, _, _, value in rows])


def test_ratio_and_noise_are_found_again(sheet: Sheet) -> None:
    made = step(blocks=5_000, noise=0.05, ratio=0.9)
    names, _, values = logs(sheet, 3, made)
    difference = values[names == OTHER].mean() - values[names == BASE].mean()
    assert difference == pytest.approx(np.log(0.9), abs=5 * 0.05 * np.sqrt(2 / 5_000))
    for name in (BASE, OTHER):
        assert values[names == name].std(ddof=1) == pytest.approx(0.05, rel=0.06)


def test_a_drift_goes_from_the_first_to_the_last_trial(sheet: Sheet) -> None:
    for order in ("random", "fixed"):
        _, times, values = logs(sheet, 3, step(blocks=5_000, noise=0.02, drift=0.3, order=order))
        line = linregress(times, np.exp(values))
        assert times.tolist() == list(range(10_000))
        assert line.slope * times[-1] / line.intercept == pytest.approx(0.3, rel=0.03)


def test_blocks_take_the_drift_out_and_a_fixed_order_does_not(sheet: Sheet) -> None:
    false = {}
    for order in ("random", "fixed"):
        significant = 0
        for seed in range(200):
            data = made_data(sheet, step(blocks=30, noise=0.05, drift=0.2, order=order), "1", seed)
            base, other = np.log(data.values(BASE)), np.log(data.values(OTHER))
            significant += ttest_1samp(other - base, 0).pvalue < 0.05
        false[order] = significant
    assert false["random"] < 25  # 10 of 200 are expected; 25 come once in 20,000 times
    assert false["fixed"] > 195


def test_each_block_has_both_in_an_order_by_chance(sheet: Sheet) -> None:
    rows = made_data(sheet, step(blocks=400), "1", 5).rows
    first = [name for name, _, time, _ in rows if time % 2 == 0]
    assert 150 < first.count(BASE) < 250
    assert all({rows[n][0], rows[n + 1][0]} == {BASE, OTHER} for n in range(0, 800, 2))
    fixed = made_data(sheet, step(blocks=4, order="fixed"), "1", 5).rows
    assert [name for name, _, _, _ in fixed] == [BASE] * 4 + [OTHER] * 4


def test_the_same_seed_gives_the_same_data_and_another_one_others(sheet: Sheet) -> None:
    made = step(blocks=10)
    assert made_data(sheet, made, "1", 5) == made_data(sheet, made, "1", 5)
    assert made_data(sheet, made, "1", 5) != made_data(sheet, made, "1", 6)


def test_the_file_has_what_is_marked(sheet: Sheet) -> None:
    data = made_data(sheet, step(blocks=10), "1", 5)
    rows = list(csv.DictReader(io.StringIO(data.text())))
    for name in (BASE, OTHER):
        by_block = {int(row["block"]): float(row["value"]) for row in rows if row["configuration"] == name}
        assert [by_block[block] for block in range(1, 11)] == data.values(name)


def test_values_may_be_drawn(sheet: Sheet) -> None:
    # {size} of student 1 is one of 60 … 100.
    assert len(made_data(sheet, step(blocks="{size}"), "1", 5).rows) in {120, 140, 160, 180, 200}


@pytest.mark.parametrize(
    "changes",
    [
        {"blocks": 2},
        {"blocks": 10**6},
        {"noise": 0.0},
        {"ratio": "a"},
        {"ratio": 0.0},
        {"drift": -1.0},
        {"noise": "{large}"},
    ],
)
def test_values_out_of_their_ranges_are_refused(sheet: Sheet, changes: dict[str, object]) -> None:
    with pytest.raises(RequestError, match="step made of light"):
        made_data(sheet, step(**changes), "1", 5)

"""Effect of the order within blocks where the place in a block matters much: drawn anew, or in Latin squares."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.design.blocks import Order, block
from ajuste_stats.confidence_sequences import half_width
from benchmarks.comparison import Comparison

STUDIES: Final = 1500
BLOCKS: Final = 40
FEWEST: Final = 4
NAMES: Final = ("a", "b", "c", "d")
STRENGTH: Final = 3.0  # of the place, in standard deviations of a trial
ALPHA: Final = 0.05


def measure() -> tuple[Comparison, ...]:
    """Studies of four configurations that do not differ, where the first trial of a block takes longer."""
    orders: tuple[Order, ...] = ("latin", "random")
    differences = {order: played(order, STUDIES) for order in orders}
    wrong = {order: [100 * float(np.mean(ever_wrong(d)))] for order, d in differences.items()}
    spread = {order: [float(np.std(np.mean(d, axis=1)))] for order, d in differences.items()}
    what = f"{STUDIES} studies without effect, the first trial of {len(NAMES)} slower by {STRENGTH:g} sd"
    return (
        Comparison(
            name="orders-wrong",
            what=f"{what}: ever wrong, looked at after every block up to the {BLOCKS}th",
            unit="%",
            figures={f"order = {order}": figures for order, figures in wrong.items()},
            goal=f"at most {100 * ALPHA:g} %",
            reached=max(figures[0] for figures in wrong.values()) <= 100 * ALPHA,
        ),
        Comparison(
            name="orders-spread",
            what=f"{what}: spread of the mean difference of two after {BLOCKS} blocks",
            unit="sd",
            figures={f"order = {order}": figures for order, figures in spread.items()},
            goal="less with Latin squares",
            reached=spread["latin"][0] < spread["random"][0],
        ),
    )


def played(order: Order, studies: int) -> NDArray[np.float64]:
    """The differences of the second and the first configuration: a row for each study, a column for each block."""
    return np.array([_differences(order, seed) for seed in range(studies)])


def ever_wrong(differences: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the studies of which an interval ever excludes no difference."""
    counts = np.arange(1, differences.shape[1] + 1)
    means = np.cumsum(differences, axis=1) / counts
    variances = np.maximum(np.cumsum(differences**2, axis=1) / counts - means**2, 1e-12)
    widths = np.array([half_width(int(n), 1.0, ALPHA) for n in counts]) * np.sqrt(variances)
    wrong: NDArray[np.bool_] = np.any((np.abs(means) > widths)[:, FEWEST - 1 :], axis=1)
    return wrong


def _differences(order: Order, seed: int) -> NDArray[np.float64]:
    noise = np.random.default_rng(seed).normal(size=(BLOCKS, len(NAMES)))
    for number in range(BLOCKS):
        first = block(number, NAMES, seed, order=order)[0]
        noise[number, NAMES.index(first.configuration)] += STRENGTH
    return noise[:, 1] - noise[:, 0]

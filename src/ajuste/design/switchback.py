"""Switchback designs: which configuration a live system has in which slice of time, and how long it takes to settle.

A block is what is drawn at random as one. Under every order any two configurations of a block could as well have been
exchanged: that alone makes the verdicts of ``analysis.switchback`` valid, whatever the load does (Bojinov, Simchi-Levi
and Zhao 2023, "Design and analysis of switchback experiments", Management Science 69).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from ajuste.model.wording import number
from ajuste_stats.orders import latin_order, raw_bits
from ajuste_stats.terms import SwitchbackOrder

Floats = NDArray[np.float64]

LEFT: Final = 0.05
"""Share of a response that is left at the end of the wash-out."""
LEVEL: Final = 0.05
"""Share of wash-outs that are found of a system that does not respond."""
FEWEST: Final = 3
"""Changes between the same two configurations, with fewer of which noise cannot be distinguished from a response."""
CONSTANTS: Final = 16
STAY: Final = 6
"""Slices in a row under one configuration in a block of stays."""


@dataclass(frozen=True)
class StepResponse:
    """The response of a metric to the change from one configuration to another: ``values`` at equal steps from the
    change on.
    """

    old: str
    new: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class WashOut:
    """``seconds`` after a change until ``LEFT`` of the response is left; it decays with ``constant_s``.

    ``constant_s`` is None where no response stands out from the noise: then ``seconds`` is the least that was asked
    for.
    """

    seconds: float
    constant_s: float | None
    says: str


def estimate_wash_out(responses: Sequence[StepResponse], step_s: float, *, least_s: float = 0.0) -> WashOut:
    """Return the wash-out from ``responses`` with a value every ``step_s`` seconds.

    An exponential decay is fitted to each response alone, for a range of time constants. Whether there is one is a t
    test over the responses to the same change, whose amplitudes do not depend on how the noise within each of them is
    correlated; Bonferroni over changes and constants.
    """
    groups = _grouped(responses)
    if not groups:
        return WashOut(least_s, None, f"fewer than {FEWEST} changes between the same two configurations were seen")
    length = min(responses_of_change.shape[1] for responses_of_change in groups)
    constants = np.geomspace(1.0, length / 3, CONSTANTS)
    tests = len(groups) * CONSTANTS
    standing_out = [
        responses_of_change[:, :length]
        for responses_of_change in groups
        if min(_p_value(responses_of_change[:, :length], constant) for constant in constants) * tests < LEVEL
    ]
    if not standing_out:
        return WashOut(least_s, None, "no response to the changes stands out from the noise")
    errors = [
        sum(_left_over(responses_of_change.mean(axis=0), constant) for responses_of_change in standing_out)
        for constant in constants
    ]
    constant_s = float(constants[int(np.argmin(errors))]) * step_s
    seconds = max(least_s, math.ceil(constant_s * -math.log(LEFT) / step_s) * step_s)
    return WashOut(
        seconds,
        constant_s,
        f"after a change the metric settles with a time constant of {number(constant_s)} s: "
        f"{number(100 * LEFT)} % of the response is left after {number(seconds)} s",
    )


def _grouped(responses: Sequence[StepResponse]) -> list[Floats]:
    # The responses to each change as a table, cut to the shortest; of at least `FEWEST`, with six values or more.
    by_change: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for response in responses:
        if len(response.values) >= 6 and all(map(math.isfinite, response.values)):
            by_change.setdefault((response.old, response.new), []).append(response.values)
    tables = []
    for responses_of_change in by_change.values():
        if len(responses_of_change) >= FEWEST:
            shortest = min(map(len, responses_of_change))
            tables.append(np.array([values[:shortest] for values in responses_of_change]))
    return tables


def _decay(length: int, constant: float) -> Floats:
    # A decay with its mean taken out: the level that it ends at is not known.
    decay = np.exp(-np.arange(length) / constant)
    return np.asarray(decay - decay.mean())


def _left_over(mean: Floats, constant: float) -> float:
    # The sum of squares that the decay does not explain.
    decay = _decay(len(mean), constant)
    away = mean - mean.mean()
    return float(np.sum((away - decay * np.sum(away * decay) / np.sum(decay**2)) ** 2))


def _p_value(responses: Floats, constant: float) -> float:
    # Two-sided, of a mean amplitude of zero; the least-squares amplitude of the decay in each response.
    decay = _decay(responses.shape[1], constant)
    amplitudes = responses @ decay / np.sum(decay**2)
    spread = float(np.std(amplitudes, ddof=1))
    if spread == 0:
        return 0.0 if np.any(amplitudes) else 1.0
    t = float(np.mean(amplitudes)) / spread * math.sqrt(len(amplitudes))
    return float(2 * stdtr(len(amplitudes) - 1, -abs(t)))


# Keeps the random numbers of these blocks apart from those of others.
_MIRRORED = 2


def slices_a_block(configurations: int, order: SwitchbackOrder = "random") -> int:
    """Return the number of slices of a block."""
    if order == "random":
        return configurations
    if order == "mirrored":
        return 2 * configurations
    return configurations**2 * (2 if configurations % 2 else 1)


def order_of_block(
    number: int, configurations: Sequence[str], seed: int, order: SwitchbackOrder = "random", *, stay: int = 1
) -> tuple[str, ...]:
    """Return the configurations of the slices of block ``number`` (0 …), in the order drawn by ``seed``.

    A block whose configurations are fewer than before (some are decided) is drawn in the same way, and so is a block of
    stays, in which each configuration of the random order remains for ``stay`` slices.
    """
    if stay > 1 and order != "random":
        raise ValueError(f"the order {order} has no stays")
    if number < 0 or seed < 0:
        raise ValueError(f"block {number}, seed {seed}: none may be negative")
    if len(set(configurations)) != len(configurations) or len(configurations) < 2:
        raise ValueError("expected at least two configurations of different names")
    if order == "latin":
        size = len(configurations)
        rows = slices_a_block(size, order) // size
        drawn = [latin_order(row, configurations, (seed, number, _MIRRORED)) for row in range(rows)]
        return tuple(name for row in drawn for name in row)
    keys = raw_bits((seed, number, _MIRRORED), len(configurations))
    once = [name for _, name in sorted(zip(keys, configurations, strict=True))]
    return tuple([name for name in once for _ in range(stay)] if order == "random" else [*once, *reversed(once)])

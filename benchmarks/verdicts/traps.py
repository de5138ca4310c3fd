"""Traps: studies whose verdict is easily wrong, played by the product itself, block by block, as a user would.

``python -m benchmarks verdicts`` plays them here and, if ``AJUSTE_BEFORE`` names a checkout of an earlier version, by
that version, too. Only public functions that both have are used. ``python benchmarks/verdicts/traps.py 100 state``
plays 100 studies of one kind.
"""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.block_values import Promise
from ajuste.analysis.pairs import clean_trials
from ajuste.analysis.summary import precisions
from ajuste.model.measurements import Values
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Factor, Slot, Trial
from ajuste_analyse.comparison import compare_samples
from ajuste_ci.versions.histories import histories
from ajuste_search.surface.surfaces import surfaces
from ajuste_stats.decision import verdict_word
from ajuste_stats.effects import Effect, effect, margin
from ajuste_stats.pairs import Pairs

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], tuple[Array, ...]]
"""Values of baseline and other, and which of them ran first in each block if that matters to them."""
Play = Callable[[np.random.Generator], tuple[bool, int]]

ALPHA: Final = 0.05
STUDIES: Final = 200
LOOKS: Final = (*range(6, 13), 15, 18, 21, 25, 29, 30)
"""Blocks after which a study is looked at, up to as many as it has by default."""
LIMIT: Final = 0.01
BEFORE: Final = "AJUSTE_BEFORE"

TIME: Final = Metric(name="time", title="Time", unit="s", direction="lower")
CLOCK: Final = TIME.model_copy(update={"resolution": 1e-9})
MEDIAN: Final = CLOCK.model_copy(update={"quantile": 0.5})
EVENTS: Final = Metric(name="events", title="Events", unit="", direction="lower", scale="difference", resolution=1)


@dataclass(frozen=True)
class Trap:
    """``draw`` gives the values of baseline and other; of ``wrong`` words none is true. ``looks`` are the blocks after
    which a study is looked at; with ``values`` there are so many of each, measured elsewhere.
    """

    kind: str
    name: str
    draw: Draw
    wrong: tuple[str, ...]
    metric: Metric = CLOCK
    limit: float = LIMIT
    of_seeds: bool = False
    remark: str = ""
    looks: tuple[int, ...] = LOOKS
    values: int = 0


@dataclass(frozen=True)
class TrapCell:
    """Counts of ``studies`` studies: how many say something ``wrong``, how many anything, after how many ``blocks``."""

    kind: str
    name: str
    studies: int
    wrong: int
    decided: int
    blocks: float
    remark: str = ""


def _printed(first: float, second: float, spread: float) -> Draw:
    def draw(random: np.random.Generator, n: int) -> tuple[Array, Array]:
        base, other = (np.round(mean + spread * random.standard_normal(n), 2) for mean in (first, second))
        return base, other

    return draw


def _counted(base: Callable[[np.random.Generator, int], Array], times: float) -> Draw:
    # The other has `times` as many: its counts are those of that much longer trials.
    def draw(random: np.random.Generator, n: int) -> tuple[Array, Array]:
        more = base(random, n)
        extra = np.where(random.random(n) < times - 1, base(random, n), 0) if times <= 2 else base(random, n)
        return base(random, n), more + extra

    return draw


def _few(random: np.random.Generator, n: int) -> Array:
    return random.choice([0.0, 1.0, 2.0], n, p=[0.92, 0.06, 0.02])


def _poisson(rate: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda random, n: random.poisson(rate, n).astype(np.float64)


def _mostly_none(random: np.random.Generator, n: int) -> Array:
    return np.where(random.random(n) < 0.05, random.integers(1, 9, n), 0).astype(np.float64)


def _slower(share: float, mean: float, others: float = 0.0, noise: float = 0.003) -> Draw:
    """Return a draw in which a ``share`` of one's trials is so much slower that its mean changes by ``mean``, while
    the others change by ``others``.
    """
    slow = (1 + mean - (1 - share) * (1 + others)) / share

    def draw(random: np.random.Generator, n: int) -> tuple[Array, Array]:
        base, other = np.exp(noise * random.standard_normal((2, n)))
        return base, other * np.where(random.random(n) < share, slow, 1 + others)

    return draw


def _lasting(correlation: float, spread: float) -> Draw:
    """Return a draw in which each configuration has a state of that ``spread``, in noise of 1 %."""

    def draw(random: np.random.Generator, n: int) -> tuple[Array, Array]:
        logs = 0.01 * random.standard_normal((2, n))
        state = spread * random.standard_normal(2)
        for block in range(n):
            logs[:, block] += state
            state = correlation * state + math.sqrt(1 - correlation**2) * spread * random.standard_normal(2)
        base, other = np.exp(logs)
        return base, other

    return draw


def _by_boot(blocks: int) -> Draw:
    """Return a draw in which every boot of so many blocks makes one of the two 2 % slower, or faster, or neither."""

    def draw(random: np.random.Generator, n: int) -> tuple[Array, Array]:
        base, other = np.exp(0.01 * random.standard_normal((2, n)))
        modes = 0.02 * random.integers(-1, 2, -(-n // blocks))
        return base, other * np.exp(np.repeat(modes, blocks)[:n])

    return draw


def _white(effect: float, noise: float) -> Draw:
    def draw(random: np.random.Generator, n: int) -> tuple[Array, Array]:
        base, other = np.exp(noise * random.standard_normal((2, n)))
        return base, other * (1 + effect)

    return draw


EQUAL: Final = ("equivalent",)
ANY: Final = ("improves", "worsens")
NONE_AND_TWO: Final = ((0.0, ANY), (0.02, ("improves", "equivalent")))
"""Effects with the words that are wrong for them."""
LONG: Final = (*LOOKS, *range(33, 61, 3))
"""Looks of studies of up to 60 blocks."""


def _like(noise: Callable[[np.random.Generator, int], Array], effect: float) -> Draw:
    """Return a draw of two with the same ``noise``, logarithms, that differ by ``effect``."""
    return lambda random, n: (np.exp(noise(random, n)), np.exp(noise(random, n)) * (1 + effect))


def _far(random: np.random.Generator, n: int) -> Array:
    far = random.random(n) < 0.05
    return np.asarray(0.01 * random.standard_normal(n) + np.where(far, random.uniform(-0.5, 0.5, n), 0.0))


def _later(random: np.random.Generator, n: int) -> Array:
    far = random.random(n) < 0.05
    return np.asarray(0.01 * random.standard_normal(n) + np.where(far, np.log(random.uniform(2, 10, n)), 0.0))


def _normal(random: np.random.Generator, n: int) -> Array:
    return np.asarray(0.01 * random.standard_normal(n))


def _lognormal(random: np.random.Generator, n: int) -> Array:
    return np.asarray(0.01 * np.exp(random.standard_normal(n)))


def _pareto(random: np.random.Generator, n: int) -> Array:
    return np.asarray(0.01 * random.pareto(1.5, n))


def _bimodal(random: np.random.Generator, n: int) -> Array:
    return np.asarray(0.08 * (random.random(n) < 0.4) + 0.005 * random.standard_normal(n))


BETS: Final = (
    *(
        Trap("edge", f"{name}: 1 % at a limit of 1 %", _like(noise, LIMIT), (*EQUAL, "improves"), looks=LONG)
        for name, noise in (("noise 1 %", _normal), ("5 % far trials", _far), ("lognormal", _lognormal))
    ),
    *(
        Trap("bets", f"{name}: {effect:.0%}", _like(noise, effect), wrong, looks=LONG)
        for name, noise in (
            ("noise 1 %", _normal),
            ("5 % far trials", _far),
            ("lognormal", _lognormal),
            ("Pareto", _pareto),
            ("40 % slower by 8 %", _bimodal),
        )
        for effect, wrong in NONE_AND_TWO
    ),
    Trap("bets", "median, noise 0.3 %: none", _like(lambda r, n: 0.3 * _normal(r, n), 0.0), ANY, MEDIAN),
    *(
        Trap(
            "files",
            f"{values} values each, 5 % of both 2 to 10 times as long: {effect:.0%}",
            _like(_later, effect),
            wrong,
            values=values,
            remark=remark,
        )
        for values in (10, 30)
        for effect, wrong, remark in (
            (0.0, ANY, ""),
            (-0.05, ("worsens", *EQUAL), "the mean stays open: the headline has the typical change"),
        )
    ),
    Trap(
        "files",
        "10 values each, 10 % slower, 4.5 % on average, the others 3 % faster",
        _slower(0.1, 0.045, -0.03),
        ("improves",),
        values=10,
        remark="10 values have none of them in 35 %: a note says so",
    ),
)

EACH: Final = tuple(range(6, 31))
"""A look after every block."""


def _in_turn(noise: Callable[[np.random.Generator, int], Array], effect: float = 0.0) -> Draw:
    """Return a draw of two that differ by ``effect`` and meet the same ``noise``, in the order in which they run."""

    def draw(random: np.random.Generator, n: int) -> tuple[Array, ...]:
        early, late = np.exp(noise(random, 2 * n)).reshape(n, 2).T
        first = random.random(n) < 0.5
        base, other = np.where(first, early, late), np.where(first, late, early)
        return base, other * (1 + effect), first.astype(np.float64)

    return draw


def _throttled(random: np.random.Generator, n: int) -> Array:
    # Heat builds up until the clock falls by 20 %, which lasts until half of it is gone.
    heat, slow, logs = random.uniform(0, 1), False, np.empty(n)
    for trial in range(n):
        heat += random.uniform(0.05, 0.25) - (0.3 if slow else 0.0)
        slow = heat > 0.5 if slow else heat > 1
        logs[trial] = 0.22 * slow + 0.02 * heat
    return np.asarray(logs + 0.005 * random.standard_normal(n))


def _warming(random: np.random.Generator, n: int) -> Array:
    # A cold cache costs 60 %, and makes trials vary; both decay.
    cold = 0.8 ** np.arange(n)
    return np.asarray(0.6 * cold + (0.004 + 0.2 * cold) * random.standard_normal(n))


def _budget(random: np.random.Generator, n: int) -> Array:
    # Turbo saves 10 % while its budget lasts, which pauses of any length refill.
    left, logs = 1.0, np.empty(n)
    for trial in range(n):
        left = min(1.0, left + random.exponential(0.4))
        used = min(left, 0.7)
        logs[trial], left = -0.1 * used / 0.7, left - used
    return np.asarray(logs + 0.003 * random.standard_normal(n))


def _collecting(random: np.random.Generator, n: int) -> tuple[Array, ...]:
    # Every 7th trial of the other one collects garbage, which costs 20 %: 2.9 % on average.
    base, other = np.exp(0.003 * random.standard_normal((2, n)))
    return base, other * np.where((np.arange(n) + random.integers(7)) % 7 == 0, 1.2, 1.0)


def _scheduled(random: np.random.Generator, n: int) -> tuple[Array, ...]:
    # A job at every full minute evicts what only the other one needs (25 %); trials of about 7 s meet 1 of 8.6.
    first = random.random(n) < 0.5
    starts = random.uniform(0, 60) + np.cumsum(random.uniform(6.9, 7.1, 2 * n)).reshape(n, 2)
    start = np.where(first, starts[:, 1], starts[:, 0])
    base, other = np.exp(0.003 * random.standard_normal((2, n)))
    return base, other * np.where(start % 60 >= 53, 1.25, 1.0), first.astype(np.float64)


def _retried(random: np.random.Generator, n: int) -> tuple[Array, ...]:
    # Each retry waits twice as long as the one before; 30 % of attempts fail, 40 % of the other: 2.5 % more on average.
    def waits(chance: float) -> Array:
        return np.asarray(0.02 * (2.0 ** (random.geometric(1 - chance, n) - 1) - 1))

    noise = np.exp(0.003 * random.standard_normal((2, n)))
    return noise[0] * (1 + waits(0.3)), noise[1] * (1 + waits(0.4))


def _left_behind(random: np.random.Generator, n: int) -> tuple[Array, ...]:
    # The other one leaves dirty pages, which cost the trial after it 4 %, whichever that is.
    first = random.random(n) < 0.5
    before = np.r_[False, first[:-1]]  # the other one ended the block before
    base, other = np.exp(0.003 * random.standard_normal((2, n)))
    base *= np.where(np.where(first, before, True), 1.04, 1.0)
    return base, other * np.where(~first & before, 1.04, 1.0), first.astype(np.float64)


def _fewer_digits(random: np.random.Generator, n: int) -> tuple[Array, ...]:
    base, other = 0.096 + 0.0005 * random.standard_normal(n), 0.1 + 0.0005 * random.standard_normal(n)
    return np.round(base, 2), np.round(other, 4)


def _ticking(random: np.random.Generator, n: int) -> tuple[Array, ...]:
    # A clock that says nanoseconds and counts 10 ms, read with a jitter of 0.1 ms.
    times = (mean + 0.0003 * random.standard_normal(n) for mean in (0.096, 0.104))
    base, other = (np.round(time, 2) + 1e-4 * random.exponential(1, n) for time in times)
    return base, other


def _capped(random: np.random.Generator, n: int) -> tuple[Array, ...]:
    # Figures end at 1 s, which five of six trials reach; without that the other one takes 5 % longer.
    base, other = np.exp(0.1 + 0.1 * random.standard_normal((2, n)))
    return np.minimum(base, 1.0), np.minimum(1.05 * other, 1.0)


def _shared(share: float, spread: float) -> Draw:
    """Return a draw of equal means, a ``share`` of one slower and the others 3 % faster, in blocks that vary by
    ``spread`` together.
    """
    alone = _slower(share, 0.0, -0.03)

    def draw(random: np.random.Generator, n: int) -> tuple[Array, ...]:
        together = np.exp(spread * random.standard_normal(n))
        base, other = alone(random, n)
        return base * together, other * together

    return draw


def _mixing(random: np.random.Generator, n: int) -> Array:
    slow = random.random(n) < np.linspace(0.05, 0.95, n)
    return np.asarray(0.08 * slow + 0.005 * random.standard_normal(n))


def _by_level(random: np.random.Generator, n: int) -> Array:
    # The level wanders from block to block, and the spread grows with its square.
    level = np.repeat(np.cumsum(0.15 * random.standard_normal(n // 2)), 2)
    return np.asarray(level + 0.01 * np.exp(2 * level) * random.standard_normal(n))


ATTACKS: Final = (
    *(
        Trap("attack", f"{name}: {effect:.0%}", _in_turn(noise, effect), wrong, looks=EACH)
        for name, noise in (
            ("heat and throttling by 20 %", _throttled),
            ("a cold cache that warms", _warming),
            ("a turbo budget that pauses refill", _budget),
            ("a slow mode from 5 % of trials to 95 %", _mixing),
            ("a spread that grows with a level that wanders", _by_level),
        )
        for effect, wrong in NONE_AND_TWO
    ),
    Trap("attack", "garbage collection, 20 % in every 7th trial of one", _collecting, (*EQUAL, "improves"), looks=EACH),
    Trap(
        "attack",
        "a job each minute that slows one by 25 %, trials of 7 s",
        _scheduled,
        (*EQUAL, "improves"),
        looks=EACH,
    ),
    Trap("attack", "retries that back off, 2.5 % on average", _retried, (*EQUAL, "improves"), looks=EACH),
    Trap("attack", "one leaves 4 % to the trial after it", _left_behind, ANY, looks=EACH),
    Trap("attack", "96 ms printed as 0.10, 100 ms as 0.1000", _fewer_digits, EQUAL, TIME, 0.02, looks=EACH),
    Trap(
        "attack",
        "96 and 104 ms by ticks of 10 ms with jitter",
        _ticking,
        EQUAL,
        CLOCK,
        0.02,
        looks=EACH,
        remark="figures cannot show it: state `resolution`",
    ),
    Trap("attack", "figures end at 1 s, 5 % without that", _capped, EQUAL, looks=EACH),
    *(
        Trap(
            "attack",
            f"{share:.0%} slower, the others 3 % faster, equal means, blocks vary by 5 %",
            _shared(share, 0.05),
            ANY,
            looks=EACH,
            remark=remark,
        )
        for share, remark in ((0.5, ""), (0.3, "6 blocks have none of them in 12 %: the headline says so"))
    ),
)

TRAPS: Final = (
    Trap("coarse", "0.096 and 0.104 s, printed as 0.10", _printed(0.096, 0.104, 0.0), EQUAL, TIME, 0.02),
    Trap("coarse", "the same, noise of 1 ms", _printed(0.096, 0.104, 0.001), EQUAL, TIME, 0.02),
    Trap("coarse", "0.1049 and 0.1051 s, printed as 0.10 and 0.11", _printed(0.1049, 0.1051, 0), ANY, TIME, 0.02),
    Trap("coarse", "1.004 and 0.996 s, noise of 3 ms", _printed(1.004, 0.996, 0.003), ANY[1:], TIME, 0.005),
    *(
        Trap("rare", f"{name}, {times:g} times as many", _counted(base, times), EQUAL, EVENTS, 0.3)
        for name, base in (
            ("0, 1 or 2, 0.1 on average", _few),
            ("Poisson of 0.2", _poisson(0.2)),
            ("95 % zeros", _mostly_none),
        )
        for times in (1.31, 1.9)
    ),
    *(
        Trap("blind", f"{percent} % of trials slower, 3 % on average", _slower(percent / 100, 3 * LIMIT), EQUAL)
        for percent in (30, 20, 10)
    ),
    Trap(
        "blind",
        "5 % of trials slower, 3 % on average",
        _slower(0.05, 3 * LIMIT),
        EQUAL,
        remark="29 trials may miss it: the verdict says so",
    ),
    Trap("blind", "in guests: 10 %, 3 % on average", _slower(0.1, 3 * LIMIT), EQUAL, of_seeds=True),
    *BETS,
    *(
        Trap(
            "means",
            f"{percent} % slower, the others 3 % faster, equal means",
            _slower(percent / 100, 0.0, -0.03),
            ANY,
            remark=remark,
        )
        for percent, remark in (
            (50, ""),
            (30, "6 blocks have none of them in 12 %: the headline says so"),
            (20, "6 blocks have none of them in 26 %: the headline says so"),
            (10, "6 blocks have none of them in 53 %: the headline says so"),
        )
    ),
    Trap(
        "means",
        "20 % slower, 2 % on average, the others 3 % faster",
        _slower(0.2, 0.02, -0.03),
        ("improves",),
        remark="6 blocks have none of them in 26 %: the headline says so",
    ),
    Trap("power", "none, noise 0.3 %", _white(0, 0.003), ANY),
    Trap("power", "none, noise 1 %, limit 5 %", _white(0, 0.01), ANY, limit=0.05),
    Trap("power", "2 %, noise 1 %", _white(0.02, 0.01), ("improves", "equivalent")),
    Trap("power", "−5 %, noise 3 %", _white(-0.05, 0.03), ("worsens", "equivalent")),
    Trap("power", "10 %, noise 3 %", _white(0.1, 0.03), ("improves", "equivalent")),
    *(
        Trap("state", name, draw, ANY, remark="half of them within 9 blocks, which show no state that lasts longer")
        for name, draw in (
            ("1 %, correlation 0.6 from block to block", _lasting(0.6, 0.01)),
            ("1 %, correlation 0.9 from block to block", _lasting(0.9, 0.01)),
            ("4 %, correlation 0.9 from block to block", _lasting(0.9, 0.04)),
            ("a mode of 2 % by boot, 5 blocks in each", _by_boot(5)),
        )
    ),
    *ATTACKS,
)


@dataclass(frozen=True)
class Line:
    """A line of equal versions or levels, the mean of one configuration, or seeds: ``play`` plays one study, and
    returns whether what it says is wrong, after how many blocks.
    """

    kind: str
    name: str
    play: Play
    remark: str = ""


def _of_period_4(random: np.random.Generator, trials: int) -> Array:
    wave = 0.03 * np.sin(np.pi / 2 * np.arange(trials) + random.uniform(0, 2 * np.pi))
    return np.asarray(wave + 0.005 * random.standard_normal(trials))


def _study(
    random: np.random.Generator, noise: Callable[[np.random.Generator, int], Array], levels: int, blocks: int
) -> tuple[Factor, list[Configuration], list[Trial]]:
    """Return a study of so many equal levels, the trials of each block in random order."""
    names = tuple(str(level + 1) for level in range(levels))
    made = [Configuration(name=name, levels={"v": name}, baseline=name == "1") for name in names]
    values = np.exp(noise(random, levels * blocks))
    trials = []
    for block in range(blocks):
        for position, place in enumerate(random.permutation(levels)):
            slot = Slot(block=block, position=position, configuration=names[place], seed=block)
            metrics = {TIME.name: float(values[block * levels + position])}
            trials.append(Trial(slot=slot, status="ok", metrics=metrics))
    return Factor(name="v", levels=names, baseline="1"), made, trials


def _changes(noise: Callable[[np.random.Generator, int], Array]) -> Play:
    def play(random: np.random.Generator) -> tuple[bool, int]:
        factor, made, trials = _study(random, noise, 10, 5)
        versions = factor.model_copy(update={"in_order": True})
        (history,) = histories([versions], made, clean_trials(trials), [CLOCK], Promise(1 - ALPHA, LIMIT))
        return bool(history.changes), history.blocks

    return play


def _not_flat(noise: Callable[[np.random.Generator, int], Array]) -> Play:
    def play(random: np.random.Generator) -> tuple[bool, int]:
        factor, made, trials = _study(random, noise, 8, 4)
        (surface,) = surfaces([factor], made, clean_trials(trials), [CLOCK], [], [], Promise(1 - ALPHA, LIMIT))
        return [region.shape for curve in surface.curves for region in curve.regions] != ["flat"], surface.blocks

    return play


def _mean_known(correlation: float, limit: float) -> Play:
    """Return a play of runs of a spread of 2 %, up to the first look at which their mean is known to ``limit``."""

    def play(random: np.random.Generator) -> tuple[bool, int]:
        noise = random.standard_normal(300)
        for run in range(1, len(noise)):
            noise[run] = correlation * noise[run - 1] + math.sqrt(1 - correlation**2) * noise[run]
        _, _, runs = _study(random, lambda _, trials: np.log1p(0.02 * noise[:trials]), 1, len(noise))
        for n in (*range(4, 30, 2), *range(30, 60, 5), *range(60, 301, 40)):
            (mean,) = precisions(runs[:n], [CLOCK], confidence=1 - ALPHA, smallest_effect=limit)
            if mean.known and mean.interval is not None:
                return abs(mean.interval.mean - 1) > mean.wanted, n
        return False, len(noise)

    return play


def _of_guests(random: np.random.Generator) -> tuple[bool, int]:
    """Return whether 30 seeds of a real guest exclude the mean of all 200."""
    with Path(__file__).with_name("pools.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["question"].startswith("nice 0,2")]
    base, other = (np.array([float(row[name]) for row in rows]) for name in ("baseline_s", "other_s"))
    truth, drawn = float(np.mean(np.log(other / base))), random.integers(len(rows), size=30)
    known = effect(Pairs(base[drawn], other[drawn]), CLOCK, ALPHA)
    assert known is not None
    return not known.interval.low <= truth <= known.interval.high, len(drawn)


LINES: Final = (
    Line("history", "10 equal versions, 5 blocks, bimodal", _changes(_bimodal)),
    Line("history", "10 equal versions, 5 blocks, period of 4 trials", _changes(_of_period_4)),
    Line("curve", "8 equal levels, 4 blocks, bimodal", _not_flat(_bimodal)),
    Line("curve", "8 equal levels, 4 blocks, period of 4 trials", _not_flat(_of_period_4)),
    Line("mean", "one configuration, to 1 %, 2 % with correlation 0.9 from run to run", _mean_known(0.9, 0.01)),
    Line("mean", "one configuration, to 1 %, white noise of 2 %", _mean_known(0.0, 0.01)),
    Line("guests", "nice 0,2 on matrix: the interval of 30 seeds excludes the truth", _of_guests),
)


def simulate_lines(studies: int = STUDIES, kinds: Sequence[str] = ()) -> tuple[TrapCell, ...]:
    """Play all lines, or those of some ``kinds``."""
    cells = []
    for number, line in enumerate(LINES):
        if kinds and line.kind not in kinds:
            continue
        ends = [line.play(np.random.default_rng((20_263, number, study))) for study in range(studies)]
        wrong, blocks = (sum(figures) for figures in zip(*ends, strict=True))
        cells.append(TrapCell(line.kind, line.name, studies, wrong, studies, blocks / studies, line.remark))
    return tuple(cells)


def played(trap: Trap, studies: int = STUDIES) -> TrapCell:
    """Play ``studies`` studies, each until its first verdict."""
    wrong = decided = blocks = 0
    for study in range(studies):
        random = np.random.default_rng((20_262, TRAPS.index(trap), study))
        most = trap.values or trap.looks[-1]
        base, other, *order = trap.draw(random, most)
        first = order[0] > 0 if order else random.random(most) < 0.5
        for n in (most,) if trap.values else trap.looks:
            if trap.values:
                known = compare_samples(Values(tuple(base)), Values(tuple(other)), trap.metric, ALPHA).effect
            else:
                known = _effect_in(Pairs(base[:n], other[:n], None if trap.of_seeds else first[:n]), trap.metric)
            word = verdict_word(known, trap.metric, margin(known, trap.limit))
            if word != "undecided":
                wrong, decided = wrong + (word in trap.wrong), decided + 1
                break
        blocks += n
    return TrapCell(trap.kind, trap.name, studies, wrong, decided, blocks / studies, trap.remark)


def _effect_in(pairs: Pairs, metric: Metric) -> Effect:
    known = effect(pairs, metric, ALPHA)
    assert known is not None
    return known


def simulate_traps(studies: int = STUDIES, kinds: Sequence[str] = ()) -> tuple[TrapCell, ...]:
    """Play all of them, or those of some ``kinds``."""
    traps = (trap for trap in TRAPS if not kinds or trap.kind in kinds)
    return (*(played(trap, studies) for trap in traps), *simulate_lines(studies, kinds))


def simulate_before(studies: int = STUDIES) -> tuple[TrapCell, ...]:
    """Play all of them by the checkout that ``AJUSTE_BEFORE`` names; nothing without."""
    checkout = os.environ.get(BEFORE)
    if not checkout:
        return ()
    env = os.environ | {"PYTHONPATH": str(Path(checkout) / "src")}
    argv = [sys.executable, __file__, str(studies)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    return tuple(TrapCell(**cell) for cell in json.loads(done.stdout))


def trap_table(cells: Sequence[TrapCell], before: Sequence[TrapCell]) -> str:
    """Return the table as Markdown, with what an earlier version said beside it."""
    earlier = {(cell.kind, cell.name): cell for cell in before}
    rows = []
    for cell in cells:
        was = earlier.get((cell.kind, cell.name))
        sides = [
            (wrong_percent(was), f"{was.blocks:.1f}") if was else ("", ""),
            (wrong_percent(cell), f"{cell.blocks:.1f}"),
        ]
        (was_wrong, was_blocks), (wrong, blocks) = sides
        rows.append(
            f"| {cell.kind} | {cell.name} | {was_wrong} | {wrong} | {was_blocks} | {blocks} | "
            f"{100 * cell.decided / cell.studies:.0f} | {cell.remark} |"
        )
    return "\n".join(
        [
            f"**Traps**: wrong verdicts of {cells[0].studies:,} studies of up to {LOOKS[-1]} blocks (a mean: 300 runs) "
            "in per cent, and blocks until the verdict. *Before* is an earlier version in the same studies.\n",
            "| trap | what happens | before: wrong | wrong | before: blocks | blocks | decided | remark |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
            *rows,
            "",
        ]
    )


def wrong_percent(cell: TrapCell) -> str:
    return f"{100 * cell.wrong / cell.studies:.1f}"


def main() -> int:
    print(json.dumps([asdict(cell) for cell in simulate_traps(int(sys.argv[1]), sys.argv[2:])]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

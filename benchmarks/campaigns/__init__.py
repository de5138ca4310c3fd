"""Campaigns: proposals that are useless, better, or cheat: ``python -m benchmarks campaigns``.

A trial varies by 2 %, so that a pair varies by 2.8 %. Each proposal is explored in 5 blocks and, if it looks better,
tested in 40 more, with the e-values and the error budget of Ajuste itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ajuste.model.metric import Metric
from ajuste.model.trial import Slot, Trial
from ajuste_lab.campaign.model import Campaign
from ajuste_lab.campaign.promotion import PROOF_BLOCKS, ConfirmedPart, judgement, rare_costs
from ajuste_stats.e_values import ErrorBudget, improvement_log_value, is_promoted
from benchmarks.campaigns.played import CHEATS, GUESSED, HONEST, NOISE, promoted
from benchmarks.comparison import Comparison

CAMPAIGNS = 1000
PROPOSALS = 200
IMPROVEMENT = 0.03
CHEATING_CAMPAIGNS = 4

RULES = Campaign(name="rules", study="", study_sha256="", metric="elapsed", tunables=("x",), proposals=PROPOSALS)


@dataclass(frozen=True)
class PlayedCampaigns:
    """Promoted proposals of each campaign; ``planted`` is the place of the better one, if there is one.
    ``trials`` were measured in a campaign on average.
    """

    promoted: NDArray[np.bool_]
    planted: NDArray[np.int64] | None = None
    trials: float = 0.0

    @property
    def false(self) -> float:
        """The share of campaigns with at least one false promotion."""
        false = self.promoted.copy()
        if self.planted is not None:
            false[np.arange(len(false)), self.planted] = False
        return float(np.mean(np.any(false, axis=1)))

    @property
    def promoted_better(self) -> float:
        """The share of campaigns that promoted what is better."""
        assert self.planted is not None
        return float(np.mean(self.promoted[np.arange(len(self.promoted)), self.planted]))


def play(
    campaigns: int,
    seed: int,
    *,
    improvement: float = 0.0,
    noise: float = NOISE,
    tail: float = 0,
    t_tests: bool = False,
    rules: Campaign = RULES,
) -> PlayedCampaigns:
    """Campaigns of useless proposals, of which one at a random place is better by ``improvement``. With a ``tail`` the
    pairs have Student's distribution of so many degrees of freedom, scaled to the same spread. With
    ``t_tests`` each proposal is promoted by a t test of its own, at the whole error rate.
    """
    random = np.random.default_rng(seed)
    planted = random.integers(0, rules.proposals, campaigns)
    effect = np.zeros((campaigns, rules.proposals))
    if improvement:
        effect[np.arange(campaigns), planted] = -np.log1p(-improvement)
    spread = noise * np.sqrt(2)
    explored = effect + _pairs(random, (campaigns, rules.proposals, rules.explore), spread, tail).mean(axis=2)
    confirmed = _pairs(random, (campaigns, rules.proposals, rules.confirm), spread, tail)
    mean, variance = effect + confirmed.mean(axis=2), confirmed.var(axis=2)
    values = np.exp(np.minimum(improvement_log_value(np.full(mean.shape, rules.confirm), mean, variance), 600))
    spent = ErrorBudget(rules.error_rate, rules.proposals)
    tested, ups = np.zeros(campaigns, int), np.zeros(campaigns, int)
    if t_tests:
        scores = mean / np.sqrt(variance / (rules.confirm - 1))
        better = scores > stdtrit(rules.confirm - 1, 1 - rules.error_rate)
        return PlayedCampaigns(better & (explored > 0), planted if improvement else None)
    promotions = np.zeros((campaigns, rules.proposals), bool)
    for number in range(rules.proposals):
        promising = explored[:, number] > 0
        for campaign in np.flatnonzero(promising):
            level = spent.level(int(tested[campaign]), int(ups[campaign]))
            promotions[campaign, number] = is_promoted(float(values[campaign, number]), level)
        tested += promising
        ups += promotions[:, number]
    trials = 2 * (rules.proposals * rules.explore + float(np.mean(tested)) * rules.confirm)
    return PlayedCampaigns(promotions, planted if improvement else None, trials)


def _pairs(random: np.random.Generator, shape: tuple[int, ...], spread: float, tail: float) -> NDArray[np.float64]:
    if not tail:
        return random.normal(0, spread, shape)
    return np.asarray(random.standard_t(tail, shape) * spread / np.sqrt(tail / (tail - 2)), np.float64)


RARE: Final = ((0.02, 3.0), (0.03, 2.0), (0.05, 1.6))
"""Shares of trials that a proposal makes so many times as long; the others are 2 % faster, the mean 1 to 2 % slower."""
_QUIET: Final = 0.005


def rare_costs_promoted(proposals: int = 400, *, rules: Campaign = RULES) -> dict[str, tuple[float, float]]:
    """Return the percentage of such proposals that is promoted at the first level: by the evidence of the confirmation
    alone, as it was before, and with the blocks that prove that no rare trial costs more.
    """
    level = ErrorBudget(rules.error_rate, rules.proposals).level(0, 0)
    shares = {}
    for share, times in RARE:
        random = np.random.default_rng((5, round(100 * share)))
        before = after = 0
        for _ in range(proposals):
            base = np.exp(_QUIET * random.standard_normal(PROOF_BLOCKS))
            slow = np.where(random.random(PROOF_BLOCKS) < share, times, 0.98)
            trials = _trials(base, slow * np.exp(_QUIET * random.standard_normal(PROOF_BLOCKS)))
            parts = [
                ConfirmedPart(trials[slice(*ends)], "a", "b", (_ELAPSED,), ends[1] - ends[0], {})
                for ends in ((0, 2 * rules.confirm), (2 * rules.confirm, 2 * PROOF_BLOCKS))
            ]
            passed = is_promoted(judgement(parts[:1]).e_value, level)
            before += passed
            after += passed and not rare_costs(parts[:1], parts[1:])
        shares[f"{100 * share:g} % × {times:g}"] = 100 * before / proposals, 100 * after / proposals
    return shares


_ELAPSED: Final = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower")


def _trials(base: NDArray[np.float64], other: NDArray[np.float64]) -> list[Trial]:
    return [
        Trial(
            slot=Slot(block=block, position=position, configuration=name, seed=block),
            status="ok",
            metrics={"elapsed": float(value)},
        )
        for block, both in enumerate(zip(base, other, strict=True))
        for position, (name, value) in enumerate(zip("ab", both, strict=True))
    ]


def cheats(campaigns: int = CHEATING_CAMPAIGNS) -> dict[str, list[float]]:
    """Return how many proposals of each kind were promoted, by campaign."""
    counts: dict[str, list[float]] = {}
    for kind in (*CHEATS, GUESSED, HONEST):
        for seed in range(campaigns):
            with tempfile.TemporaryDirectory() as directory:
                counts.setdefault(kind, []).append(float(promoted(kind, Path(directory), seed)))
    return counts


def measure() -> Iterator[Comparison]:
    false = {
        "useless, normal noise": 100 * play(CAMPAIGNS, 1).false,
        "useless, heavy tails": 100 * play(CAMPAIGNS, 2, tail=3).false,
        "one better by 3 %": 100 * play(CAMPAIGNS, 3, improvement=IMPROVEMENT).false,
    }
    goal = max(false.values()) <= 5
    false["useless, a t test for each"] = 100 * play(CAMPAIGNS, 1, t_tests=True).false
    yield Comparison(
        name="campaigns",
        what=f"{CAMPAIGNS:,} campaigns of {PROPOSALS} proposals with a false promotion",
        unit="%",
        figures={name: [value] for name, value in false.items()},
        goal="at least one false promotion in at most 5 % of campaigns with a shared budget",
        reached=goal,
    )
    power = 100 * play(CAMPAIGNS, 4, improvement=IMPROVEMENT).promoted_better
    yield Comparison(
        name="campaigns-found",
        what="campaigns that find one improvement of 3 % among 199 useless proposals",
        unit="%",
        figures={"trials vary by 2 %": [power]},
        goal="found in at least 90 %",
        reached=power >= 90,
    )
    rare = rare_costs_promoted()
    yield Comparison(
        name="campaigns-rare",
        what="proposals that make a few trials longer, the others 2 % shorter, and the mean 1 to 2 % longer: promoted",
        unit="%",
        figures={
            **{f"{name}, confirmation only": [before] for name, (before, _) in rare.items()},
            **{name: [after] for name, (_, after) in rare.items()},
        },
        goal="at most 5 % of each are promoted",
        reached=max(after for _, after in rare.values()) <= 5,
    )
    caught = cheats()
    yield Comparison(
        name="campaigns-cheats",
        what="promotions of five proposals",
        unit="promoted",
        figures=caught,
        goal="no cheat is promoted, and what is honest is",
        reached=all(not any(values) for kind, values in caught.items() if kind != HONEST) and all(caught[HONEST]),
    )

"""The rules by which optimisers accept a candidate, in campaigns of useless ones: ``python -m benchmarks referee``.

An optimiser keeps what scores better than the best so far by more than a number of standard deviations of its runs:
with one run that is 0. Each campaign has 32 rounds, as many as scx_forge_agent of sched-ext/scx has by default.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from ajuste_lab.campaign.model import Campaign
from benchmarks.campaigns import CAMPAIGNS, IMPROVEMENT, RULES, PlayedCampaigns, play
from benchmarks.campaigns.played import NOISE, refereed
from benchmarks.comparison import Comparison

ROUNDS = 32
REFEREE: Campaign = RULES.model_copy(update={"proposals": ROUNDS})
LONG: Campaign = REFEREE.model_copy(update={"explore": 30, "confirm": 250})
"""Rules that an improvement of 3 % requires where trials vary by 5 %."""
AS_MANY = 48
"""Runs of a candidate, on average, by a referee."""
CHECKED = 10
"""Campaigns by the referee itself, with all its files."""

Score = Literal["median", "best"]


def usual(
    campaigns: int,
    seed: int,
    *,
    runs: int = 1,
    score: Score = "median",
    threshold: float = 1.0,
    improvement: float = 0.0,
    drift: float = 0.0,
) -> PlayedCampaigns:
    """Keep a candidate if the ``score`` of its runs is below the best so far by more than ``threshold`` standard
    deviations of them. One is better by ``improvement``, and so is everything that builds on it. The speed of the
    machine wanders by ``drift`` from round to round; pairs, as a referee has them, feel nothing of that.
    """
    random = np.random.default_rng(seed)
    planted = random.integers(0, ROUNDS, campaigns)
    times, speed = np.ones(campaigns), np.ones(campaigns)
    best = np.full(campaigns, np.inf)
    accepted = np.zeros((campaigns, ROUNDS + 1), bool)
    for number in range(ROUNDS + 1):  # The first is the start.
        candidate_times = np.where(planted == number - 1, times * (1 - improvement), times)
        speed *= np.exp(random.normal(0, drift, campaigns))
        values = (candidate_times * speed)[:, None] * np.exp(random.normal(0, NOISE, (campaigns, runs)))
        scores = np.median(values, axis=1) if score == "median" else values.min(axis=1)
        is_better = scores < best - (threshold * values.std(axis=1) if number else 0.0)
        best, times = np.where(is_better, scores, best), np.where(is_better, candidate_times, times)
        accepted[:, number] = is_better
    return PlayedCampaigns(accepted[:, 1:], planted if improvement else None, (ROUNDS + 1) * runs)


def measure() -> Iterator[Comparison]:
    rules = {
        "one run": {},
        "best of 5": {"runs": 5, "score": "best", "threshold": 0.0},
        "median of 5, 1 σ": {"runs": 5},
        "median of 5, 2 σ": {"runs": 5, "threshold": 2.0},
        "median of 48, 1 σ": {"runs": AS_MANY},
        "median of 48, 1 σ, drift of 1 %": {"runs": AS_MANY, "drift": 0.01},
    }
    useless = {name: usual(CAMPAIGNS, 1, **rule) for name, rule in rules.items()}  # type: ignore[arg-type]
    useless["referee"] = play(CAMPAIGNS, 1, rules=REFEREE)
    heavy = play(CAMPAIGNS, 2, tail=3, rules=REFEREE)
    false = {name: 100 * campaigns.false for name, campaigns in useless.items()} | {
        "referee, heavy tails": 100 * heavy.false
    }
    yield Comparison(
        name="referee-false",
        what=f"{CAMPAIGNS:,} campaigns of {ROUNDS} useless candidates that keep one",
        unit="%",
        figures={name: [value] for name, value in false.items()},
        goal="the referee promotes something useless in at most 5 % of campaigns",
        reached=false["referee"] <= 5 and false["referee, heavy tails"] <= 5,
    )
    better = {name: usual(CAMPAIGNS, 4, improvement=IMPROVEMENT, **rule) for name, rule in rules.items()}  # type: ignore[arg-type]
    better["referee"] = play(CAMPAIGNS, 4, improvement=IMPROVEMENT, rules=REFEREE)
    noisy = {
        "referee, trials vary by 5 %": play(CAMPAIGNS, 5, improvement=IMPROVEMENT, noise=0.05, rules=REFEREE),
        "the same, 30 + 250 blocks": play(CAMPAIGNS, 5, improvement=IMPROVEMENT, noise=0.05, rules=LONG),
    }
    yield Comparison(
        name="referee-found",
        what=f"{CAMPAIGNS:,} campaigns that keep one improvement of 3 % among {ROUNDS - 1} useless candidates",
        unit="%",
        figures={name: [100 * campaigns.promoted_better] for name, campaigns in {**better, **noisy}.items()},
        goal="the referee finds it in at least 90 %, where trials vary by 2 %",
        reached=better["referee"].promoted_better >= 0.9,
    )
    yield Comparison(
        name="referee-cost",
        what=f"trials of a campaign of {ROUNDS} useless candidates",
        unit="trials",
        figures={name: [campaigns.trials] for name, campaigns in useless.items()},
        goal="no goal",
        reached=True,
    )
    with tempfile.TemporaryDirectory() as directory:
        played = [refereed(Path(directory) / str(seed), seed, ROUNDS, IMPROVEMENT) for seed in range(CHECKED)]
    yield Comparison(
        name="referee-itself",
        what=f"{CHECKED} campaigns by the referee itself, one improvement of 3 % among {ROUNDS - 1} useless candidates",
        unit="candidates",
        figures={
            "useless, accepted": [float(candidates.useless) for candidates in played],
            "better, accepted": [float(candidates.better) for candidates in played],
        },
        goal="nothing useless is accepted, and what is better is in at least 8",
        reached=not any(candidates.useless for candidates in played)
        and sum(candidates.better for candidates in played) >= 8,
    )

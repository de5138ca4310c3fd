"""A study that looks for the best of many configurations, carried out with a target that the test plays."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from ajuste.analysis.block_values import contenders
from ajuste.analysis.digest import digest
from ajuste.analysis.results import assemble
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Exited
from ajuste.model.facets import DESIGN
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.store.store import Store
from ajuste.study.resolved import ResolvedStudy
from played import PlayedExecutor, agent_events, begin, carry_out, study_for_5_10

MANY = """\
schema = 1
name = "many"
[[factor]]
name = "sched_min_granularity_ns"
levels = ["1ms", "2ms", "3ms", "4ms"]
[[factor]]
name = "sched_wakeup_granularity_ns"
levels = ["1ms", "2ms", "3ms"]
[workload]
kind = "matrix"
[[workload.background]]
kind = "spin"
[target]
kernel = "debian:5.10"
[analysis]
metrics = ["elapsed"]
[design]
allocation = "best"
[budget]
min_blocks = 4
max_blocks = 60
"""
BEST = "sched_min_granularity_ns=3000000 sched_wakeup_granularity_ns=2000000"


class Valley(PlayedExecutor):
    """Lowest at 3 ms and 2 ms, by ``step`` for each millisecond further off; ``until`` a block that breaks off."""

    def __init__(self, step: float = 0.01, until: int = 1000) -> None:
        super().__init__()
        self._step = step
        self._until = until

    def run(self, plan: Plan) -> Observation:
        if plan.id.startswith(f"b{self._until}p1"):
            raise RunError("the disk is full")
        self.plans.append(plan)
        first, second = (int(write.value) / 1e6 for write in plan.writes)
        noise = random.Random(f"{plan.perturbation} {plan.writes}").gauss(0, 0.01)
        wall_ns = round(1e8 * (1 + self._step * (abs(first - 3) + abs(second - 2)) + noise))
        events = tuple(
            event.model_copy(update={"wall_ns": wall_ns})
            if isinstance(event, Exited) and event.role == "workload"
            else event
            for event in agent_events(plan, 10)
        )
        return Observation(lines="\n".join(e.model_dump_json() for e in events), events=events, host_seconds=0.1)


def studied(tmp_path: Path, *changes: tuple[str, str]) -> ResolvedStudy:
    return study_for_5_10(MANY, tmp_path, *changes)


def test_it_ends_with_few_that_may_be_the_best_and_the_best_is_among_them(tmp_path: Path, store: Store) -> None:
    study, run = studied(tmp_path), begin(store)
    stop = carry_out(study, run, store, Valley(step=0.02))
    best = contenders(study, store.measurements(run))
    assert stop.why == "decided"
    assert stop.words.startswith(f"{len(best)} of 12 configurations may be the best after ")
    assert BEST in best
    assert len(best) <= 4


def test_trials_go_to_the_baseline_and_to_what_may_be_the_best(tmp_path: Path, store: Store) -> None:
    study, run = studied(tmp_path), begin(store)
    carry_out(study, run, store, Valley(step=0.02))
    blocks = Counter(trial.slot.configuration for trial in store.trials(run))
    assert blocks[study.baseline] == blocks[BEST] == max(blocks.values())
    assert min(blocks.values()) < blocks[BEST]


@pytest.mark.slow
def test_the_true_best_is_left_out_in_less_than_one_of_twenty(tmp_path: Path, store: Store) -> None:
    covered = 0
    for seed in range(16):
        study = studied(tmp_path, ("[design]", f"[design]\nseed = {seed + 1}"))
        run = begin(store)
        carry_out(study, run, store, Valley(step=0.015))
        covered += BEST in contenders(study, store.measurements(run))
    assert covered >= 14  # of 16: fewer have a chance of 4 % where each is kept with 95 %


def test_where_nothing_differs_the_budget_ends_it_and_nobody_is_named(tmp_path: Path, store: Store) -> None:
    study, run = studied(tmp_path, ("max_blocks = 60", "max_blocks = 12")), begin(store)
    stop = carry_out(study, run, store, Valley(step=0.0))
    assert stop.why == "budget"
    assert stop.words == "reached the limit of blocks; 12 of 12 configurations may be the best after 12 blocks"


@pytest.mark.slow
def test_where_it_was_interrupted_makes_no_difference(tmp_path: Path, store: Store) -> None:
    study, undisturbed, disturbed = studied(tmp_path), begin(store), begin(store)
    carry_out(study, undisturbed, store, Valley())
    for last in (1, 5, 6):
        with pytest.raises(RunError, match="the disk is full"):
            carry_out(study, disturbed, store, Valley(until=last))
    carry_out(study, disturbed, store, Valley())
    assert digest(store.trials(undisturbed)) == digest(store.trials(disturbed))


def test_a_plan_says_what_later_blocks_hold(tmp_path: Path, store: Store) -> None:
    study, run = studied(tmp_path), begin(store)
    stop = carry_out(study, run, store, Valley(step=0.02))
    results = assemble(study, store.trials(run), run=run.id, stopped=stop.why, stopped_because=stop.words)
    assert "a block holds the baseline and the configurations that may be the best" in DESIGN.of(results)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"elapsed"', '"elapsed@p95"'), "best does not support quantiles such as elapsed@p95; use a mean"),
        (('"elapsed"', '"involuntary-switches"'), '"involuntary-switches" has no better direction'),
        (('allocation = "best"', 'allocation = "best"\ncombine = "screening"'), "screening requires complete blocks"),
    ],
)
def test_where_there_is_no_best_it_is_refused(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        studied(tmp_path, change)

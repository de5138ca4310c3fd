"""A study whose grid is refined, carried out by the runner with a target that the test plays."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ajuste.analysis.digest import digest
from ajuste.analysis.results import assemble
from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError, RunError
from ajuste.model.facets import DESIGN
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.model.verdict import EFFECTS
from ajuste.run.planning import planned_study
from ajuste.store.store import Store
from ajuste.study.resolved import ResolvedStudy
from played import PlayedExecutor, agent_events, begin, carry_out, study_for_5_10

GRID = """\
schema = 1
name = "grid"
[[factor]]
name = "sched_min_granularity_ns"
levels = "1ms..8ms"
points = 8
[[factor]]
name = "sched_wakeup_granularity_ns"
levels = "1ms..7ms"
points = 7
[workload]
kind = "matrix"
[[workload.background]]
kind = "spin"
[target]
kernel = "debian:5.10"
[analysis]
metrics = ["involuntary-switches"]
smallest_effect = 0.05
[design]
allocation = "refine"
[budget]
min_blocks = 2
max_blocks = 30
"""


class Landscape(PlayedExecutor):
    """Switches fall fast with the first setting; ``until`` a block that breaks off."""

    parallel = 1

    def __init__(self, until: int = 1000) -> None:
        super().__init__()
        self._until = until

    def run(self, plan: Plan) -> Observation:
        if plan.id.startswith(f"b{self._until}p2"):
            raise RunError("the disk is full")
        self.plans.append(plan)
        m, w = (int(write.value) / 1e6 for write in plan.writes)
        switches = 20000 * (1 + math.exp(-m) + 0.01 * w) + plan.perturbation.start_delay_ns % 7
        events = tuple(agent_events(plan, round(switches)))
        return Observation(lines="\n".join(e.model_dump_json() for e in events), events=events, host_seconds=0.1)


def studied(tmp_path: Path, *changes: tuple[str, str]) -> ResolvedStudy:
    return study_for_5_10(GRID, tmp_path, *changes)


def test_it_ends_when_the_surface_is_known_with_most_of_the_grid_unmeasured(tmp_path: Path, store: Store) -> None:
    study, run = studied(tmp_path), begin(store)
    stop = carry_out(study, run, store, Landscape())
    trials = store.trials(run)
    measured = {trial.slot.configuration for trial in trials}
    assert stop.why == "decided"
    assert f"with {len(measured)} of 56 configurations measured" in stop.words
    assert len(measured) < 30
    blocks = [{t.slot.configuration for t in trials if t.slot.block == n} for n in range(trials[-1].slot.block + 1)]
    assert blocks[0] == blocks[1]
    assert all(study.baseline in block for block in blocks)


def test_where_it_was_interrupted_makes_no_difference(tmp_path: Path, store: Store) -> None:
    study, undisturbed, disturbed = studied(tmp_path), begin(store), begin(store)
    carry_out(study, undisturbed, store, Landscape())
    for last in (1, 2):
        with pytest.raises(RunError, match="the disk is full"):
            carry_out(study, disturbed, store, Landscape(until=last))
    carry_out(study, disturbed, store, Landscape())
    assert digest(store.trials(undisturbed)) == digest(store.trials(disturbed))


def test_its_results_tell_of_what_was_measured(tmp_path: Path, store: Store) -> None:
    study, run = studied(tmp_path), begin(store)
    stop = carry_out(study, run, store, Landscape())
    results = assemble(study, store.trials(run), run=run.id, stopped=stop.why, stopped_because=stop.words)
    measured = {trial.slot.configuration for trial in store.trials(run)}
    assert {v.configuration for v in results.verdicts} == measured - {study.baseline}
    assert {c.name for c in results.configurations} == measured
    assert not EFFECTS.of(results)
    assert "the surface is known worst" in DESIGN.of(results)


def test_a_plan_shows_the_coarse_grid_first(tmp_path: Path) -> None:
    plan = planned_study(studied(tmp_path), catalogue())
    assert len(plan.trials) == 2 * len({slot.configuration for slot in plan.trials}) < 56


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[design]", '[design]\ncombine = "one-at-a-time"'), 'refine requires combine = "all"'),
        (("min_blocks = 2", "min_blocks = 1"), "at least 2 blocks to estimate the noise"),
        (('"involuntary-switches"', '"elapsed@p95"'), "quantile"),
        (
            ('"sched_min_granularity_ns"\nlevels = "1ms..8ms"\npoints = 8', '"policy"\nlevels = ["other", "batch"]'),
            "",
        ),
        (("points = 8", "points = 3"), ""),
    ],
)
def test_what_cannot_be_refined_is_refused(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    changes = [change, *((("points = 7", "points = 3"),) if "points = 3" in change[1] else ())]
    with pytest.raises(RequestError, match=words or "numbers|nothing to refine"):
        studied(tmp_path, *changes)

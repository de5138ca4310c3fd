"""The runner, with a target that the test plays: order, repeats, stopping, interruption and going on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ajuste.analysis.digest import digest
from ajuste.analysis.results import assemble, verdicts
from ajuste.catalogue.loader import catalogue
from ajuste.design.stopping import Stop
from ajuste.executor.executor import OnStart, TrialDone, TrialRequest, Untrusted
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RunError
from ajuste.model.event import Exited
from ajuste.model.facets import DESIGN
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.model.verdict import EFFECTS
from ajuste.outputs.pattern import Pattern
from ajuste.run.runner import Executors, Runner
from ajuste.store.store import Run, Store
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from played import Notes, PlayedExecutor, agent_events
from shell import small

Switches = Callable[[Plan, int], int]


class Played(PlayedExecutor):
    """A target whose involuntary switches are what ``switches`` says for a plan and its seed."""

    parallel = 2

    def __init__(
        self,
        switches: Switches,
        spoil: Callable[[Plan], str] = lambda _: "",
        exit_code: Callable[[Plan], int] = lambda _: 0,
    ) -> None:
        super().__init__()
        self._switches = switches
        self._exit_code = exit_code
        self._spoil = spoil
        self._lock = threading.Lock()

    def run(self, plan: Plan) -> Observation:
        with self._lock:
            self.plans.append(plan)
        if problem := self._spoil(plan):
            return Observation(problem=problem)
        events = tuple(
            agent_events(plan, self._switches(plan, plan.perturbation.start_delay_ns), self._exit_code(plan))
        )
        return Observation(lines="\n".join(e.model_dump_json() for e in events), events=events, host_seconds=1.5)


@pytest.fixture
def study(tmp_path: Path) -> ResolvedStudy:
    path = tmp_path / "small.toml"
    path.write_text(small(3, 12))
    read = read_study(path, catalogue(), parse_kernel=parse_spec)
    return resolve(read, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: f"/bin/{name}")


def begin(store: Store) -> Run:
    return store.new_run(study="small", fingerprint="f", seed=1, ajuste="0", named="small", resolved="", environment={})


def carry_out(study: ResolvedStudy, run: Run, store: Store, target: Played) -> tuple[Stop, Notes]:
    notes = Notes()
    with Executors(lambda _: target, lambda *_: None) as targets:
        return Runner(study, run, store, targets, notes).carry_out(), notes


def clear(plan: Plan, seed: int) -> int:
    return 100 + seed % 3 if plan.writes[0].value == "750000" else 10 + seed % 2


def test_it_stops_at_the_first_look_that_decides(study: ResolvedStudy, store: Store) -> None:
    target, run = Played(clear), begin(store)
    stop, notes = carry_out(study, run, store, target)
    assert stop.why == "decided"
    assert notes.blocks == list(range(len(notes.blocks)))
    assert 3 <= len(notes.blocks) <= 6
    assert len(target.plans) == 2 * len(notes.blocks) == len(store.trials(run))


def test_it_spends_no_more_than_the_budget(study: ResolvedStudy, store: Store) -> None:
    # Which of both has more is a matter of the seed alone: with 5 % as the smallest effect, 12 blocks cannot tell.
    target = Played(lambda plan, seed: 50 + (seed // (2 if plan.writes[0].value == "750000" else 3)) % 97)
    stop, notes = carry_out(study, begin(store), store, target)
    assert (stop.why, len(notes.blocks)) == ("budget", 12)
    assert len(target.plans) == 24


def test_the_trials_of_a_block_share_what_its_seed_perturbs(study: ResolvedStudy, store: Store) -> None:
    target = Played(clear)
    carry_out(study, begin(store), store, target)
    blocks: dict[str, list[Plan]] = {}
    for plan in target.plans:
        blocks.setdefault(plan.id.partition("p")[0], []).append(plan)
    for plans in blocks.values():
        assert len({plan.writes[0].value for plan in plans}) == 2
        assert len({plan.perturbation for plan in plans}) == 1
    assert len({plans[0].perturbation for plans in blocks.values()}) == len(blocks)


def test_a_failed_trial_is_kept_and_tried_once_more(study: ResolvedStudy, store: Store) -> None:
    target, run = Played(clear, lambda plan: "the guest hung" if plan.id == "b1p0a0" else ""), begin(store)
    stop, _ = carry_out(study, run, store, target)
    assert stop.why == "decided"
    attempts = [(t.attempt, t.status) for t in store.trials(run) if (t.slot.block, t.slot.position) == (1, 0)]
    assert attempts == [(0, "failed"), (1, "ok")]


@pytest.mark.parametrize(("minutes", "attempts"), [(0.01, 1), (10.0, 2)])
def test_a_disturbed_trial_is_repeated_unless_the_time_is_over(
    study: ResolvedStudy, store: Store, minutes: float, attempts: int
) -> None:
    class Disturbed(Played):
        def run(self, plan: Plan) -> Observation:
            disturbances = ("other work",) if plan.id.startswith("b0p1") else ()
            return replace(super().run(plan), disturbances=disturbances)

    budget = study.study.budget.model_copy(update={"max_minutes": minutes})
    target = study.study.target.model_copy(update={"clock": "wall"})
    shorter = study.study.model_copy(update={"budget": budget, "target": target})
    played = Disturbed(clear)
    carry_out(study.model_copy(update={"study": shorter}), begin(store), store, played)
    assert len([plan.id for plan in played.plans if plan.id.startswith("b0p1")]) == attempts


def on_this_machine(study: ResolvedStudy, minutes: float) -> ResolvedStudy:
    budget = study.study.budget.model_copy(update={"max_minutes": minutes})
    target = study.study.target.model_copy(update={"kind": "host", "clock": "wall"})
    return study.model_copy(update={"study": study.study.model_copy(update={"budget": budget, "target": target})})


def test_only_the_first_block_is_completed_beyond_the_time_limit(study: ResolvedStudy, store: Store) -> None:
    played = Played(clear)  # trials of 1.5 s, all at the same time
    played.parallel = 1
    stop, _ = carry_out(on_this_machine(study, 1 / 60), begin(store), store, played)
    assert (stop.why, [plan.id for plan in played.plans]) == ("time", ["b0p0a0", "b0p1a0"])


def test_a_trial_of_a_later_block_gets_what_is_left_of_the_time(study: ResolvedStudy, store: Store) -> None:
    played = Played(clear)
    played.parallel = 1
    carry_out(on_this_machine(study, 3 / 60), begin(store), store, played)
    first, later = [[p for p in played.plans if p.id.startswith("b0") is is_first] for is_first in (True, False)]
    assert {plan.timeout_ns / 1e9 for plan in first} == {study.study.workload.timeout_s}
    assert later
    assert all(plan.timeout_ns / 1e9 <= 1.5 for plan in later)


def test_a_configuration_that_never_works_ends_the_study_as_failed(study: ResolvedStudy, store: Store) -> None:
    target = Played(clear, lambda plan: "the guest hung" if plan.writes[0].value != "750000" else "")
    stop, _ = carry_out(study, begin(store), store, target)
    assert stop.why == "failed"
    assert "sched_min_granularity_ns=75000000" in stop.words


def test_a_command_that_fails_ends_the_study_after_the_first_block_with_its_last_words(
    study: ResolvedStudy, store: Store
) -> None:
    target = Played(clear, exit_code=lambda plan: 3 if plan.writes[0].value != "750000" else 0)
    stop, notes = carry_out(study, begin(store), store, target)
    assert (stop.why, notes.blocks) == ("failed", [])
    assert stop.words.startswith("sched_min_granularity_ns=75000000: the workload exited with code 3")
    assert stop.words.endswith("last output: matrix size=100 repetitions=2 checksum=1")


def test_a_command_that_always_reaches_its_time_limit_ends_the_study_with_its_last_words(
    study: ResolvedStudy, store: Store
) -> None:
    class Late(Played):
        def run(self, plan: Plan) -> Observation:
            ends = {"exit_code": None, "signal": 15, "timed_out": True}
            events = tuple(
                event.model_copy(update=ends) if isinstance(event, Exited) and event.role == "workload" else event
                for event in agent_events(plan, 1)
            )
            return Observation(lines="\n".join(e.model_dump_json() for e in events), events=events, host_seconds=1.5)

    stop, _ = carry_out(study, begin(store), store, Late(clear))
    assert stop.why == "failed"
    assert stop.words.endswith(
        "the workload was stopped at its time limit; last output: matrix size=100 repetitions=2 checksum=1"
    )


def test_a_run_whose_first_trials_fail_stops_after_the_first(study: ResolvedStudy, store: Store) -> None:
    target = Played(clear, exit_code=lambda plan: 3)
    target.parallel = 1
    stop, _ = carry_out(study, begin(store), store, target)
    assert stop.why == "failed"
    assert {plan.id.partition("a")[0] for plan in target.plans} == {"b0p0"}, "one trial, and once more if it may help"


def test_a_metric_that_the_output_never_has_ends_the_run_after_the_first_block(
    study: ResolvedStudy, store: Store
) -> None:
    pattern = Pattern(metric="speed", pattern="speed ([0-9]+)")
    speed = study.deciding[0].model_copy(update={"name": "speed"})
    patterned = study.model_copy(update={"patterns": (pattern,), "deciding": (speed,)})
    target = Played(clear)
    stop, _ = carry_out(patterned, begin(store), store, target)
    assert stop.why == "failed"
    assert 'no line of stdout matches the pattern of "speed"' in stop.words
    assert stop.words.endswith("last output: matrix size=100 repetitions=2 checksum=1")
    assert all(plan.id.startswith("b0") for plan in target.plans)


def test_a_pattern_that_backtracks_without_end_ends_the_run_at_once(
    study: ResolvedStudy, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ajuste.outputs.pattern.SECONDS", 0.3)
    patterned = study.model_copy(update={"patterns": (Pattern(metric="speed", pattern="^(.+)+!"),)})
    target, run = Played(clear), begin(store)
    target.parallel = 1
    stop, _ = carry_out(patterned, run, store, target)
    assert stop.why == "failed"
    assert '"speed"' in stop.words
    assert "^(.+)+!" in stop.words
    assert len(target.plans) == len(store.trials(run)) == 1


def test_a_failure_can_be_ignored(study: ResolvedStudy, store: Store) -> None:
    workload = study.study.workload.model_copy(update={"ignore_failure": True})
    lenient = study.model_copy(update={"study": study.study.model_copy(update={"workload": workload})})
    stop, _ = carry_out(lenient, begin(store), store, Played(clear, exit_code=lambda _: 3))
    assert stop.why == "decided"


def test_an_interrupted_run_goes_on_and_ends_as_an_undisturbed_one(study: ResolvedStudy, store: Store) -> None:
    undisturbed, disturbed = begin(store), begin(store)
    carry_out(study, undisturbed, store, Played(clear))

    def give_up(plan: Plan) -> str:
        if plan.id.startswith("b2"):
            raise RunError("the disk is full")
        return ""

    with pytest.raises(RunError, match="the disk is full"):
        carry_out(study, disturbed, store, Played(clear, give_up))
    assert len(store.trials(disturbed)) == 4
    target = Played(clear)
    carry_out(study, disturbed, store, target)
    assert all(not plan.id.startswith(("b0", "b1")) for plan in target.plans), "what is kept is not measured again"
    essence = [
        [(t.slot, t.attempt, t.status, t.metrics, t.events) for t in store.trials(run)]
        for run in (undisturbed, disturbed)
    ]
    assert essence[0] == essence[1]


def test_a_finished_run_needs_no_target(study: ResolvedStudy, store: Store) -> None:
    run = begin(store)
    first, _ = carry_out(study, run, store, Played(clear))

    def no_target(_: object) -> Any:
        raise AssertionError("a target was opened")

    with Executors(no_target, lambda *_: None) as targets:
        assert Runner(study, run, store, targets, Notes()).carry_out() == first


@pytest.fixture
def four(study: ResolvedStudy) -> ResolvedStudy:
    """Four levels, of which three differ from the baseline by much, a little and not at all."""
    return with_design(study, levels=("750000", "7500000", "75000000", "750000000"))


def with_design(study: ResolvedStudy, levels: tuple[str, ...] = (), **design: object) -> ResolvedStudy:
    tables = study.study
    factor = tables.factors[0].model_copy(update={"levels": levels or tables.factors[0].levels})
    changed = tables.model_copy(update={"factors": (factor,), "design": tables.design.model_copy(update=design)})
    return resolve(changed, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: f"/bin/{name}")


MEANS = {"750000": 1000, "7500000": 100, "75000000": 940, "750000000": 1000}


def gradual(plan: Plan, seed: int) -> int:
    """The first other level is decided at once; the others only after some more blocks."""
    offset = (seed // (1 + 2 * list(MEANS).index(plan.writes[0].value))) % 60
    return MEANS[plan.writes[0].value] + offset


def held(store: Store, run: Run) -> list[frozenset[str]]:
    """The levels that each block holds."""
    blocks: dict[int, set[str]] = {}
    for trial in store.trials(run):
        blocks.setdefault(trial.slot.block, set()).add(trial.slot.configuration.partition("=")[2])
    return [frozenset(blocks[number]) for number in sorted(blocks)]


def test_later_blocks_hold_the_baseline_and_what_is_still_undecided(four: ResolvedStudy, store: Store) -> None:
    run = begin(store)
    carry_out(four, run, store, Played(gradual))
    blocks = held(store, run)
    assert blocks[:3] == [frozenset(MEANS)] * 3, "no block before min_blocks lacks any"
    assert "7500000" not in blocks[-1]
    assert all(later <= earlier for earlier, later in pairwise(blocks))
    assert all("750000" in block and len(block) > 1 for block in blocks)
    by_value = {v.configuration.partition("=")[2]: v for v in verdicts(four, store.trials(run)) if v.deciding}
    assert by_value["7500000"].verdict == "differs"
    assert by_value["7500000"].blocks == sum("7500000" in block for block in blocks) < len(blocks)


def test_every_block_holds_everything_if_the_study_says_so(four: ResolvedStudy, store: Store) -> None:
    run = begin(store)
    carry_out(with_design(four, allocation="all"), run, store, Played(gradual))
    assert set(held(store, run)) == {frozenset(MEANS)}


@pytest.mark.parametrize("order", ["random", "latin"])
@pytest.mark.parametrize("last", [2, 4, 6])
def test_wherever_it_was_interrupted_its_blocks_are_those_of_an_undisturbed_run(
    four: ResolvedStudy, store: Store, order: str, last: int
) -> None:
    study, undisturbed, disturbed = with_design(four, order=order), begin(store), begin(store)
    carry_out(study, undisturbed, store, Played(gradual))

    def give_up(plan: Plan) -> str:
        if plan.id.startswith(f"b{last}p1"):
            raise RunError("the disk is full")
        return ""

    with pytest.raises(RunError, match="the disk is full"):
        carry_out(study, disturbed, store, Played(gradual, give_up))
    carry_out(study, disturbed, store, Played(gradual))
    assert len(held(store, undisturbed)) > last + 1
    assert digest(store.trials(undisturbed)) == digest(store.trials(disturbed))


def test_a_run_that_goes_on_with_another_analysis_leaves_what_was_begun_and_measures_again_what_is_open(
    four: ResolvedStudy, store: Store
) -> None:
    run = begin(store)
    carry_out(four, run, store, Played(gradual))
    before = held(store, run)
    budget = four.study.budget.model_copy(update={"max_blocks": len(before) + 6})
    analysis = four.study.analysis.model_copy(update={"smallest_effect": 1e-6})
    finer = four.model_copy(update={"study": four.study.model_copy(update={"budget": budget, "analysis": analysis})})
    carry_out(finer, run, store, Played(gradual))
    after = held(store, run)
    assert after[: len(before)] == before
    assert len(after) == len(before) + 6


FIVE = """\
schema = 1
name = "five"
factor = [
  { name = "sched_min_granularity_ns", levels = [750000, 75000000] },
  { name = "sched_wakeup_granularity_ns", levels = [1000000, 5000000] },
  { name = "sched_latency_ns", levels = [6000000, 12000000] },
  { name = "vm.swappiness", levels = [60, 10] },
  { name = "vm.dirty_ratio", levels = [20, 40] },
]
workload = { kind = "matrix" }
target = { kernel = "debian:5.10" }
analysis = { metrics = ["involuntary-switches"], describe = [] }
design = { combine = "screening" }
"""


def test_screening_stops_when_every_effect_is_known(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "five.toml"
    path.write_text(FIVE)
    read = read_study(path, catalogue(), parse_kernel=parse_spec)
    study = resolve(read, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: f"/bin/{name}")

    def switches(plan: Plan, seed: int) -> int:
        values = {write.tunable: write.value for write in plan.writes}
        offset = sum(map(int, values.values())) * seed % 7  # as good as noise
        return 1000 + offset - (400 if values["sched_min_granularity_ns"] == "75000000" else 0)

    run = begin(store)
    stop, notes = carry_out(study, run, store, Played(switches))
    assert stop.why == "decided"
    assert len(store.trials(run)) == 16 * len(notes.blocks)
    results = assemble(study, store.trials(run), run=run.id, stopped=stop.why, stopped_because=stop.words)
    assert {e.factors[0]: e.verdict for e in EFFECTS.of(results)} == {
        "sched_min_granularity_ns": "differs",
        **dict.fromkeys(
            ("sched_wakeup_granularity_ns", "sched_latency_ns", "vm.swappiness", "vm.dirty_ratio"), "equivalent"
        ),
    }
    assert EFFECTS.of(results)[0].estimate == pytest.approx(-400, abs=5)
    assert not any(verdict.deciding for verdict in results.verdicts)
    assert results.answer.startswith("Involuntary context switches: of 5 factors, each averaged over the others, 1 ")
    assert "5 effects" in results.correction
    assert "not mixed up with each other or with interactions of two factors" in DESIGN.of(results)


class Shared(Played):
    """Shared out in turn between a good machine and one that lies, which is found out after its ``caught``-th trial."""

    def __init__(self, switches: Switches, caught: int) -> None:
        super().__init__(switches)
        self.caught = caught
        self.lies = 0

    def carry_out(self, requests: Sequence[TrialRequest], on_start: OnStart) -> Iterator[list[TrialDone]]:
        for number, request in enumerate(requests):
            plan = request.plan()
            lies = number % 2 == 0 and self.lies < self.caught
            observation = (Played(lambda *_: 1) if lies else self).run(plan)
            by = "bad" if lies else "good"
            yield [TrialDone(request, plan, "2026-01-01T00:00:00.000+00:00", observation, by=by)]
            if lies:
                self.lies += 1
                if self.lies == self.caught:
                    raise Untrusted(["bad"])


@pytest.mark.parametrize("caught", [1, 2, 3])
@pytest.mark.parametrize("allocation", ["all", "undecided"])
def test_what_a_liar_gave_is_dropped_and_the_run_ends_as_an_undisturbed_one(
    study: ResolvedStudy, store: Store, caught: int, allocation: str
) -> None:
    design = study.study.design.model_copy(update={"allocation": allocation})
    chosen = study.model_copy(update={"study": study.study.model_copy(update={"design": design})})
    honest, misled = begin(store), begin(store)
    carry_out(chosen, honest, store, Played(clear))
    target = Shared(clear, caught)
    carry_out(chosen, misled, store, target)
    assert target.lies == caught
    essence = [
        [(t.slot, t.attempt, t.status, t.metrics, t.events) for t in store.trials(run)] for run in (honest, misled)
    ]
    assert essence[0] == essence[1]

"""What is kept of recorded trials, whatever the machine says; the target is played."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.event import Event, Hello, Traced
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan
from ajuste.model.scheduling import Recorded
from ajuste.model.trial import Observation
from ajuste.run.recordings import record_trials, to_record
from ajuste.run.runner import Executors
from ajuste.store.store import Run, Store
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from played import PlayedExecutor, said
from shell import SMALL

BASELINE, OTHER = "sched_min_granularity_ns=750000", "sched_min_granularity_ns=75000000"


class Played(PlayedExecutor):
    """Says of every plan what ``answer`` is."""

    def __init__(self, answer: Traced | str) -> None:
        super().__init__()
        self._answer = answer

    @property
    def hello(self) -> Hello:
        figures = {"at_ns": 0, "version": 1, "cpus": 1, "memory_bytes": 1}
        return Hello.model_validate(
            figures | {"agent": "", "kernel": "5.10", "build": "", "machine": "", "guest": True}
        )

    def run(self, plan: Plan) -> Observation:
        self.plans.append(plan)
        if isinstance(self._answer, str):
            return Observation(problem=self._answer)
        events: tuple[Event, ...] = (*said(plan, 5, 0), self._answer)
        return Observation(events=events)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


@pytest.fixture
def run(store: Store, tmp_path: Path) -> Run:
    (tmp_path / "small.toml").write_text(SMALL)
    study = read_study(tmp_path / "small.toml", catalogue(), parse_kernel=parse_spec)
    kernels = {"debian:5.10": KernelVersion(major=5, minor=10)}
    resolved = resolve(study, catalogue(), kernels, lambda name: f"/bin/{name}").model_dump_json()
    return store.new_run(
        study="small", fingerprint="f", seed=1, ajuste="0", named="small", resolved=resolved, environment={}
    )


def recorded(run: Run, store: Store, answer: Traced | str) -> tuple[Played, dict[str, Recorded]]:
    target = Played(answer)
    with Executors(lambda _: target, lambda *_: None) as targets:
        record_trials(run, to_record(run, OTHER, store), store, targets, lambda _: None)
    return target, store.recorded(run)


def test_a_recorded_trial_is_none_of_the_run(run: Run, store: Store) -> None:
    target, _ = recorded(run, store, Traced(at_ns=1, not_supported="no tracefs"))
    assert [plan.trace is not None for plan in target.plans] == [True, True]
    assert [plan.writes[0].value for plan in target.plans] == ["750000", "75000000"]
    assert target.plans[0].perturbation == target.plans[1].perturbation
    assert store.trials(run) == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Traced(at_ns=1, not_supported="no tracefs"), "no tracefs"),
        (Traced(at_ns=1), "the agent gave no reason"),
        ("the guest hung", "the guest hung"),
    ],
)
def test_why_there_is_no_recording_is_kept_and_it_is_tried_again(
    run: Run, store: Store, answer: Traced | str, problem: str
) -> None:
    _, kept = recorded(run, store, answer)
    assert {name: one.problem for name, one in kept.items()} == {BASELINE: problem, OTHER: problem}
    assert to_record(run, OTHER, store) == (BASELINE, OTHER)

"""The number of slices a live experiment will take: from nothing, Prometheus' past, earlier runs and its own blocks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from benchmarks.switchback.experiments import Run, ajuste, switched
from benchmarks.switchback.services import SERVICES

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import home
from ajuste.model.trial import Slot, Trial
from ajuste.store.store import Store
from ajuste.study.command_line.request import Request
from ajuste.study.resolved import ResolvedStudy
from ajuste_live.experiment import LiveOptions, prepare_live
from ajuste_live.prediction import OWN_BLOCKS, known_before, longest, predictions
from ajuste_live.reading import NothingShownError, Past, Source, level
from ajuste_live.record import BEGIN, END
from ajuste_live.request import LiveRequest, live_design, live_study
from ajuste_stats.switchback.plan import FEWEST_BLOCKS
from tiers import slow

PLANTED = 0.03
SERVICE = next(service for service in SERVICES if service.name == "together")
MACHINE = {"processor": "one"}


def resolved(monkeypatch: pytest.MonkeyPatch, directory: Path, **changed: str) -> ResolvedStudy:
    monkeypatch.setenv("AJUSTE_HOME", str(directory))
    request = LiveRequest(
        slice=changed.get("slice", "60s"),
        metric=(f"took,s,lower=command:{changed.get('command', 'echo 1')}",),
        for_=changed.get("for_", "6h"),
        order=changed.get("order", "random"),
    )
    design = live_design(request)
    settings_request = Request(set=("net.ipv4.tcp_retries2=15,8",), min_effect=f"{100 * PLANTED:g}%")
    study = live_study(settings_request, design, catalogue(), "/bin/true")
    return prepare_live(study, design, catalogue(), LiveOptions(home())).resolved


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ResolvedStudy:
    return resolved(monkeypatch, tmp_path)


def trials_of(run: Run, at: int, study: ResolvedStudy, slices: int) -> list[Trial]:
    other = next(name for name in study.names if name != study.baseline)
    return [
        Trial(
            slot=Slot(
                block=n // 2, position=n % 2, seed=0, configuration=other if run.other[at, n] else study.baseline
            ),
            status="ok",
            metrics={"took": float(np.exp(run.values[at, n])), BEGIN: 60.0 * n + 15, END: 60.0 * n + 60},
        )
        for n in range(slices)
    ]


def keep(store: Store, study: ResolvedStudy, trials: Sequence[Trial], machine: object = MACHINE) -> None:
    run = store.new_run(
        study="live",
        fingerprint="f",
        seed=1,
        ajuste="1",
        named="ajuste live",
        resolved=study.model_dump_json(),
        environment={"this machine": machine},
        workload="live",
    )
    store.add_trials(run, trials)


def sources(past: Past | None = None) -> dict[str, Source]:
    return {"took": Source("here", lambda: (1.0,), level, past=past)}


def test_nothing_is_predicted_where_nothing_is_known(study: ResolvedStudy, store: Store) -> None:
    (prediction,) = predictions(study, known_before(study, sources(), store, MACHINE))
    assert (prediction.slices, prediction.source) == (None, "")
    assert "nothing is known of the noise of took in slices of 1 min" in prediction.words
    assert f"The first {FEWEST_BLOCKS} blocks (12 slices, 12 min)" in prediction.words
    assert prediction.as_json()["slices"] is None


def test_a_mirrored_block_has_twice_as_many_slices(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    study = resolved(monkeypatch, tmp_path, order="mirrored")
    (prediction,) = predictions(study, known_before(study, sources(), store, MACHINE))
    assert f"The first {FEWEST_BLOCKS} blocks (24 slices, 24 min)" in prediction.words


def test_an_earlier_run_predicts_to_a_factor_of_2(study: ResolvedStudy, store: Store) -> None:
    before = switched(SERVICE, np.random.default_rng(1), 1, 144, 0.1)
    keep(store, study, trials_of(before, 0, study, 144))
    (prediction,) = predictions(study, known_before(study, sources(), store, MACHINE))
    assert prediction.source == "72 blocks of an earlier run"
    run = switched(SERVICE, np.random.default_rng(2), 200, 600, PLANTED)
    took = 2 * (1 + np.argmax(ajuste(run, at_equal_load=False).higher, axis=1))
    assert prediction.slices is not None
    assert np.mean(took <= 2 * prediction.slices) >= 0.95
    assert prediction.slices / 2 < np.quantile(took, 0.95) < 2 * prediction.slices
    assert "find a change of 3 % of took in 95 of 100 runs" in prediction.words


def test_runs_of_another_machine_slice_place_or_order_say_nothing(
    study: ResolvedStudy, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = switched(SERVICE, np.random.default_rng(1), 1, 144, 0.0)
    trials = trials_of(run, 0, study, 144)
    keep(store, study, trials, machine={"processor": "another"})
    keep(store, resolved(monkeypatch, tmp_path, slice="30s"), trials)
    keep(store, resolved(monkeypatch, tmp_path, command="echo 2"), trials)
    keep(store, resolved(monkeypatch, tmp_path, order="mirrored"), trials)
    assert known_before(study, sources(), store, MACHINE) == {}


@pytest.mark.parametrize(
    "name",
    ["day", *slow("steady", "autocorrelation", "carry-over")],
)
def test_the_bounds_from_the_first_blocks_hold_while_the_load_stays_alike(study: ResolvedStudy, name: str) -> None:
    """The bounds are wide, and say so: the slices that the whole of the noise predicts are within them."""
    service = next(service for service in SERVICES if service.name == name)
    run = switched(service, np.random.default_rng(3), 100, 600, PLANTED)
    within = []
    for at in range(100):
        whole, first = (predictions(study, {}, trials_of(run, at, study, count))[0] for count in (600, 2 * OWN_BLOCKS))
        assert whole.slices
        assert first.plan
        assert first.plan.low
        within.append(first.plan.low <= whole.slices <= (first.plan.high or np.inf))
    assert np.mean(within) >= 0.8


def test_own_blocks_replace_what_was_known_before(study: ResolvedStudy, store: Store) -> None:
    keep(store, study, trials_of(switched(SERVICE, np.random.default_rng(1), 1, 144, 0.0), 0, study, 144))
    known = known_before(study, sources(), store, MACHINE)
    quiet = Run(np.zeros((1, 40)), np.zeros((1, 40)), np.tile([True, False], (1, 20)))
    trials = trials_of(quiet, 0, study, 2 * OWN_BLOCKS)
    (early,), (late,) = (predictions(study, known, trials[:count]) for count in (2 * OWN_BLOCKS - 2, 2 * OWN_BLOCKS))
    assert early.source == "72 blocks of an earlier run"
    assert late.source == f"the first {OWN_BLOCKS} blocks"
    assert late.slices is not None
    assert early.slices is not None
    assert late.slices < early.slices


def test_prometheus_remembers_and_is_asked_first(study: ResolvedStudy, store: Store) -> None:
    queries = []

    def past(every_s: float, counted_s: float) -> list[float]:
        queries.append((every_s, counted_s))
        return [*np.exp(np.random.default_rng(4).normal(0, 0.02, 100)).tolist(), float("nan")]

    (prediction,) = predictions(study, known_before(study, sources(past), store, MACHINE))
    assert queries == [(60.0, 45.0)]
    assert prediction.source == "1.67 h that Prometheus remembers"
    assert prediction.slices is not None
    assert 60 < prediction.slices < 140


def test_a_prometheus_that_does_not_answer_is_no_matter(study: ResolvedStudy, store: Store) -> None:
    def past(_: float, __: float) -> list[float]:
        raise NothingShownError("down")

    assert known_before(study, sources(past), store, MACHINE) == {}


def test_too_short_a_run_is_said_before_it_begins(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    short = resolved(monkeypatch, tmp_path, for_="5m")
    keep(store, short, trials_of(switched(SERVICE, np.random.default_rng(1), 1, 144, 0.0), 0, short, 144))
    prediction = longest(predictions(short, known_before(short, sources(), store, MACHINE)))
    assert "The run ends before, after 5 min: give a longer --for or a larger --min-effect." in prediction.words

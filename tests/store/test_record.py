"""A run in the store and the same trials in memory are one record."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest

from ajuste.analysis.digest import digest
from ajuste.analysis.record import sort_trials
from ajuste.model.event import Written
from ajuste.model.measurements import Measurements
from ajuste.model.trial import Slot, Trial
from ajuste.store.record import KeptRecord
from ajuste.store.store import Store


def trial(block: int, position: int, **fields: Any) -> Trial:
    slot = Slot(block=block, position=position, configuration="ab"[position], seed=2**64 - 1 - block)
    write = Written(at_ns=block, tunable='k"nob', asked="1", before="0", after="1\t")
    made = {
        "slot": slot,
        "status": "ok",
        "metrics": {"time": 0.1 + block},
        "written": (write,),
        "events": f"é{block}\0\n",
    }
    return Trial.model_validate(made | fields)


@pytest.fixture
def trials() -> list[Trial]:
    made = [trial(block, position) for block in (2, 0, 1) for position in (1, 0)]
    made[2] = made[2].model_copy(update={"status": "failed", "reason": "gone\0 \ue000", "metrics": {}, "attempt": 1})
    return made


@pytest.fixture
def stored(store_url: str, trials: list[Trial]) -> Any:
    with Store(store_url) as store:
        run = store.new_run(study="s", fingerprint="f", seed=1, ajuste="0", named="s", resolved="", environment={})
        store.add_trials(run, trials)
        yield store, run


def assert_same_figures(actual: Measurements, wanted: Measurements) -> None:
    assert list(actual.metrics) == list(wanted.metrics)
    assert np.array_equal(actual.metrics["time"], wanted.metrics["time"], equal_nan=True)
    for column in ("block", "position", "attempt", "seed", "warm_up"):
        assert np.array_equal(getattr(actual, column), getattr(wanted, column)), column
    for column in ("configuration", "status", "reason", "written", "not_supported"):
        ones, others = getattr(actual, column), getattr(wanted, column)
        assert [ones[row] for row in range(len(actual))] == [others[row] for row in range(len(wanted))], column


def test_the_figures_are_those_of_the_trials(stored: Any, trials: list[Trial]) -> None:
    store, run = stored
    assert_same_figures(KeptRecord(run, store).measurements, sort_trials(trials).measurements)


def test_whole_trials_are_read_by_their_row(stored: Any, trials: list[Trial]) -> None:
    store, run = stored
    assert KeptRecord(run, store).whole([4, 0]) == sort_trials(trials).whole([4, 0])


def test_the_digest_is_of_the_canonical_json(stored: Any, trials: list[Trial]) -> None:
    store, run = stored
    rows = [
        {
            "slot": trial.slot.model_dump(),
            "attempt": trial.attempt,
            "status": trial.status,
            "written": [write.model_dump(exclude={"at_ns"}) for write in trial.written],
            "events": trial.events,
            "metrics": trial.metrics,
            "not_supported": trial.not_supported,
        }
        for trial in sorted(trials, key=lambda t: (t.slot.block, t.slot.position))
    ]
    wanted = hashlib.sha256(json.dumps(rows, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    assert digest(trials) == sort_trials(trials).digest == KeptRecord(run, store).digest == wanted


def test_the_digest_of_a_run_that_ended_is_kept_until_there_are_more_trials(stored: Any, trials: list[Trial]) -> None:
    store, run = stored
    assert KeptRecord(run, store).digest == digest(trials)
    assert store.digest(run, len(trials)) is None
    store.keep_digest(run, digest(trials), len(trials))
    assert store.digest(run, len(trials)) == digest(trials)
    store.add_trials(run, (trial(3, 0),))
    assert store.digest(run, len(trials) + 1) is None
    store.stop_run(run, "decided", "all verdicts are in")
    ended = store.find_run(run.id)
    assert KeptRecord(ended, store).digest == digest([*trials, trial(3, 0)])
    assert store.digest(ended, len(trials) + 1) == digest([*trials, trial(3, 0)]), "reading keeps it"


def test_the_digest_is_of_the_trials_that_are_shown_though_the_run_goes_on(stored: Any, trials: list[Trial]) -> None:
    store, run = stored
    record = KeptRecord(run, store)
    assert len(record.measurements) == len(trials)
    store.add_trials(run, [trial(3, 0), trial(0, 0, attempt=1)])
    assert record.digest == digest(trials)

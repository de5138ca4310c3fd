"""The store keeps what it was given, to the byte, and never twice."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ajuste.analysis.digest import digest
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Written
from ajuste.model.trial import Slot, Trial
from ajuste.store.engine import Database
from ajuste.store.location import exclusive, lock_name
from ajuste.store.record import KeptRecord
from ajuste.store.salvage import inspect_store
from ajuste.store.store import Run, Store
from postgresql import Server


def file_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'a' / 'store.sqlite'}"


def begin(store: Store, fingerprint: str = "f" * 64, seed: int = 1, base: str = "") -> Run:
    return store.new_run(
        study="s",
        fingerprint=fingerprint,
        seed=seed,
        ajuste="0",
        named="s",
        resolved="",
        environment={"kernel": "5.10"},
        base=base,
    )


def trial(block: int = 0, position: int = 0, **fields: object) -> Trial:
    slot = Slot(block=block, position=position, configuration="nice=0", seed=2**64 - 1)
    return Trial.model_validate({"slot": slot, "status": "ok", **fields})


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
trials = st.builds(
    Trial,
    slot=st.builds(
        Slot,
        block=st.integers(0, 50),
        position=st.integers(0, 9),
        configuration=texts,
        seed=st.integers(0, 2**64 - 1),
        warm_up=st.booleans(),
    ),
    attempt=st.integers(0, 3),
    status=st.sampled_from(["ok", "flagged", "failed"]),
    reason=texts,
    metrics=st.dictionaries(texts, st.floats(allow_nan=False, allow_infinity=False)),
    not_supported=st.dictionaries(texts, texts),
    written=st.tuples(
        st.builds(Written, at_ns=st.integers(0, 2**62), tunable=texts, asked=texts, before=texts, after=texts)
    ),
    events=texts,
    console=texts,
    started=texts,
    host_seconds=st.floats(0, 1e6),
)


def key(trial: Trial) -> tuple[int, int, int]:
    return (trial.slot.block, trial.slot.position, trial.attempt)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(trials, max_size=8, unique_by=key))
def test_trials_come_back_exactly_and_in_design_order(store_url: str, stored: list[Trial]) -> None:
    with Store(store_url) as store:
        run = begin(store)
        for trial in stored:
            store.add_trials(run, (trial,))
    with Store(store_url) as store:
        assert store.trials(run) == sorted(stored, key=key)


def test_the_newest_run_of_a_fingerprint_and_seed_is_found(store_url: str) -> None:
    with Store(store_url) as store:
        begin(store, seed=2)
        first = begin(store)
        store.stop_run(first, "decided", "all verdicts are in")
        latest = store.latest_run("f" * 64, 1)
        assert latest is not None
        assert (latest.id, latest.stopped, latest.environment) == (first.id, "decided", {"kernel": "5.10"})
        assert store.latest_run("0" * 64, 1) is None
        assert store.find_run(first.id).id == first.id
        with pytest.raises(RequestError, match="run 'nothing' not found"):
            store.find_run("nothing")


def test_a_run_that_is_taken_up_again_is_the_one_that_its_study_stands_for(store_url: str) -> None:
    with Store(store_url) as store:
        older, newer = begin(store), begin(store, seed=2)
        store.go_on(newer, named="s", resolved="")
        assert store.find_run("s").id == newer.id
        store.go_on(older, named="s", resolved="")
        assert store.find_run("s").id == older.id
        assert store.find_run(newer.id).id == newer.id


def test_a_run_that_has_ended_never_changes(store_url: str) -> None:
    with Store(store_url) as store:
        run = begin(store)
        store.add_trials(run, [trial()])
        store.stop_run(run, "decided", "all verdicts are in")
        for change in (
            lambda: store.stop_run(run, "failed", "nothing was measured"),
            lambda: store.go_on(run, named="another", resolved="another"),
            lambda: store.set_environment(run, {}),
            lambda: store.add_trials(run, [trial(block=1)]),
        ):
            with pytest.raises(RunError, match=f"run {run.id} has ended"):
                change()
        stored = store.find_run(run.id)
        assert (stored.stopped, stored.stopped_because, stored.named) == ("decided", "all verdicts are in", "s")
        assert store.trials(run) == [trial()]


def test_another_question_has_the_same_trials_and_leaves_the_first_as_it_is(store_url: str) -> None:
    with Store(store_url) as store:
        first = begin(store)
        store.add_trials(first, [trial(0), trial(2)], machine="lab1")
        store.stop_run(first, "decided", "all verdicts are in")
        before = (store.trials(first), KeptRecord(store.find_run(first.id), store).digest)
        second = begin(store, base=first.id)
        assert second.id == f"{first.id}.2"
        assert store.trials(second) == store.trials(first)
        store.add_trials(second, [trial(1), trial(3)], machine="lab2")
        assert [trial.slot.block for trial in store.trials(second)] == [0, 1, 2, 3]
        assert store.measurements(second).block.tolist() == [0, 1, 2, 3]
        assert store.machines(second) == {0: "lab1", 1: "lab2", 2: "lab1", 3: "lab2"}
        store.stop_run(second, "budget", "reached the limit")
        assert KeptRecord(store.find_run(second.id), store).digest == digest(store.trials(second))
        assert (store.trials(first), KeptRecord(store.find_run(first.id), store).digest) == before
    assert not inspect_store(store_url).damaged


def test_trials_that_another_run_shares_stay_until_that_is_deleted_too(store_url: str) -> None:
    with Store(store_url) as store:
        first = begin(store)
        store.add_trials(first, [trial()])
        store.stop_run(first, "decided", "")
        second = begin(store, base=first.id)
        store.delete([first])
        assert [run.id for run in store.runs()] == [second.id]
        assert store.trials(second) == [trial()]
        with pytest.raises(RequestError, match=f"run '{first.id}' not found"):
            store.find_run(first.id)
        store.delete([second])
        assert not store.runs()
    assert inspect_store(store_url).trials == 0


def test_a_clock_that_is_set_back_does_not_make_an_older_run_the_latest(store_url: str) -> None:
    with Store(store_url, lambda: datetime(2030, 1, 1, tzinfo=UTC)) as store:
        older, other = begin(store), begin(store, seed=2)
        store.go_on(older, named="s", resolved="")
    with Store(store_url, lambda: datetime(2020, 1, 1, tzinfo=UTC)) as store:
        newer = begin(store)
        assert [run.id for run in store.runs()] == [newer.id, other.id, older.id]
        assert store.find_run("s").id == newer.id
        latest = store.latest_run("f" * 64, 1)
        assert latest is not None
        assert latest.id == newer.id
        store.go_on(other, named="s", resolved="")
        assert store.find_run("s").id == other.id


def test_a_run_of_which_nothing_was_measured_is_forgotten_without_a_trace(store_url: str) -> None:
    with Store(store_url) as store:
        empty, filled = begin(store), begin(store)
        store.add_trials(filled, (trial(),))
        for run in (empty, filled):
            store.forget_if_empty(run)
        assert [run.id for run in store.runs()] == [filled.id]
        assert store.trials(filled) == [trial()]
    assert not inspect_store(store_url).damaged


def test_all_that_is_kept_verifies(store_url: str) -> None:
    with Store(store_url) as store:
        run = begin(store)
        store.add_trials(run, [trial(0, 0, reason="\0 \ue000 é", console="\0"), trial(0, 1)], machine="lab1")
        store.add_trials(run, [trial(0, 1, attempt=1)], machine="lab2")
        store.set_environment(run, {"a": [1, None, "é\0"]})
        store.stop_run(run, "decided", "all verdicts are in")
        store.keep_digest(run, "d", 3)
        assert store.machines(run) == {0: "lab2"}
        assert store.find_run(run.id).environment == {"a": [1, None, "é\0"]}
        assert store.digest(run, 3) == "d"
        assert store.digest(run, 2) is None
    inspection = inspect_store(store_url)
    assert (inspection.runs, inspection.trials, inspection.damaged) == (1, 3, [])


def test_a_run_can_be_read_while_it_goes_on(store_url: str) -> None:
    with Store(store_url) as store, Store(store_url) as other:
        run = begin(store)
        store.add_trials(run, (trial(0),))
        reading = store.each_trial(run)
        assert next(reading) == trial(0)
        other.add_trials(run, (trial(1),))
        assert list(reading) == [], "what is read is of one moment"
        assert len(store.trials(run)) == 2


def test_a_figure_that_changed_in_a_server_is_noticed_too(postgresql: Server) -> None:
    url = postgresql.new_database()
    with Store(url) as store, closing(Database(url)) as database:
        run = begin(store)
        store.add_trials(run, [trial(0, 0, metrics={"elapsed": 1.5}), trial(0, 1, metrics={"elapsed": 2.5})])
        with database.writing() as other:
            other.exec_driver_sql(
                "UPDATE trials SET figures = convert_to(replace(convert_from(figures, 'UTF8'), '1.5', '1.25'), 'UTF8')"
            )
        for reading in (store.measurements, store.trials, lambda run: list(store.each_measured(run))):
            with pytest.raises(RunError, match=r"run .*, block 0, trial 0 .* is damaged"):
                reading(run)
    assert "block 0, trial 0" in "".join(inspect_store(url).damaged)


def test_the_machine_of_a_block_is_kept_with_its_trials(store_url: str) -> None:
    with Store(store_url) as store:
        run, other = begin(store), begin(store, seed=2)
        store.add_trials(run, [trial(0, 0), trial(0, 1)], machine="lab1")
        store.add_trials(run, [trial(0, 0, attempt=1)], machine="lab1")
        store.add_trials(run, [trial(1, 0)], machine="lab2")
        store.add_trials(run, [trial(2, 0)])
        assert store.machines(run) == {0: "lab1", 1: "lab2"}
        assert store.machines(other) == {}


def test_one_attempt_is_never_kept_twice(store_url: str) -> None:
    with Store(store_url) as store:
        run = begin(store)
        store.add_trials(run, (trial(),))
        with pytest.raises(RunError, match="already"):
            store.add_trials(run, (trial(),))
        assert len(store.trials(run)) == 1


def test_threads_may_add_trials_at_once(store_url: str) -> None:
    with Store(store_url) as store:
        run = begin(store)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: store.add_trials(run, (trial(block=n),)), range(40)))
        assert [t.slot.block for t in store.trials(run)] == list(range(40))


def test_a_store_that_is_no_store_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    file.write_bytes(b"this is not a database, and it is long enough to be looked at" * 20)
    before = file.read_bytes()
    with pytest.raises(RunError, match="cannot be opened") as refused:
        Store(f"sqlite:///{file}")
    assert "ajuste store check" in str(refused.value.hint)
    assert file.read_bytes() == before


def test_a_second_holder_of_the_same_lock_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "locks" / lock_name("f", 1)
    assert lock_name("f", 1) != lock_name("f", 2)
    with (
        exclusive(lock, "this study"),
        pytest.raises(RequestError, match="another process runs this study"),
        exclusive(lock, "this study"),
    ):
        pass
    with exclusive(lock, "this study"):
        pass


def test_a_store_with_other_tables_is_one_clear_error(tmp_path: Path) -> None:
    with Store(file_url(tmp_path)) as store:
        begin(store)
    with sqlite3.connect(tmp_path / "a" / "store.sqlite") as other:
        other.execute("ALTER TABLE runs DROP COLUMN answer")
    with Store(file_url(tmp_path)) as store, pytest.raises(RunError, match="cannot be read: no such column"):
        store.find_run("s")


def test_trials_that_are_dropped_are_counted_out(tmp_path: Path) -> None:
    with Store(file_url(tmp_path)) as store:
        run = begin(store)
        measured = [trial(block=block) for block in range(3)]
        store.add_trials(run, measured)
        store.drop_trials(run, [(0, 0, 0), (2, 0, 0), (7, 0, 0)])
        assert store.trials(run) == [measured[1]]
        store.add_trials(run, [measured[0]])
        assert store.trials(run) == measured[:2]

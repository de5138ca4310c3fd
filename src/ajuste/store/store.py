"""The store: runs and their trials, in SQLite or PostgreSQL."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ajuste.model.error import RequestError
from ajuste.store.checks import DamageError
from ajuste.store.database import Transaction, shown
from ajuste.store.engine import held_on_server, open_database, reading, require_sound, writing
from ajuste.store.head import IMPORTED, Head, run_named
from ajuste.store.schema import DigestRow, MachineRow, RecordedRow, ResultsRow, RunRow, put, row_at
from ajuste.store.tallies import (
    MACHINES,
    RECORDED,
    RUNS,
    STORE,
    TRIALS,
    TrialTally,
    all_known,
    all_of,
    all_suites,
    all_trials,
    change_run,
    ended,
    forget,
    forget_deleted,
    heads,
    keep_machine,
    keep_suite,
    keep_tally,
    next_turn,
    owners,
    sealed,
    size_of_trials,
    tally,
    verified,
)

if TYPE_CHECKING:  # What needs NumPy or models is loaded when trials are read or written; lists need neither.
    from ajuste.model.explanation import Recorded
    from ajuste.model.measurements import Measured, Measurements
    from ajuste.model.trial import Trial

Place: TypeAlias = tuple[int, int, int]
"""Block, position and attempt of a trial."""


@dataclass(frozen=True)
class Run:
    """One run of a study as the store has it. ``stopped`` is empty while it can go on; a run that ended never changes.
    It has the trials of its ``base``, if it has one, and its own.
    """

    id: str
    study: str
    fingerprint: str
    seed: int
    created: str
    ajuste: str
    named: str
    resolved: str
    stopped: str = ""
    stopped_because: str = ""
    base: str = ""
    answer: str = ""
    environment: dict[str, Any] = field(default_factory=dict)

    @property
    def imported(self) -> bool:
        """Whether it came in a bundle: others measured it."""
        return self.fingerprint.startswith(IMPORTED)


class Store:
    """A context manager. Each trial is on disk when ``add_trials`` returns; safe to use from several threads.

    Raises RequestError where the store cannot be opened or is of a newer Ajuste, RunError where writing fails.
    """

    def __init__(self, url: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.url = url
        self._now = now
        self._database = open_database(url)
        self.name = shown(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def new_run(
        self,
        *,
        study: str,
        fingerprint: str,
        seed: int,
        ajuste: str,
        named: str,
        resolved: str,
        environment: dict[str, Any],
        kernel: str = "",
        workload: str = "",
        base: str = "",
    ) -> Run:
        """Begin a run. Its id is the day and a random part, for people: which run is the latest is counted. One with a
        ``base``, the id of a run that ended, begins with the trials of that, and is called after it.
        """
        now = self._now()
        run = Run(
            id=f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}" if not base else self._following(base),
            study=study,
            fingerprint=fingerprint,
            seed=seed,
            created=now.isoformat(timespec="seconds"),
            ajuste=ajuste,
            named=named,
            resolved=resolved,
            environment=environment,
            base=base,
        )
        return self._begin(run, kernel, workload)

    def adopt(self, run: Run, *, kernel: str = "", workload: str = "") -> Run:
        """Begin a run of another store, under its own id and with no trials yet. Raises RequestError if a run has that
        id already.
        """
        return self._begin(replace(run, stopped="", stopped_because="", base="", answer=""), kernel, workload)

    def _begin(self, run: Run, kernel: str, workload: str) -> Run:
        with self._writing() as transaction:
            counted = tally(transaction, STORE, RUNS, to_change=True)  # Of two that begin at once one is the first.
            if row_at(transaction, RunRow, run.id) is not None:
                raise RequestError(f"run {run.id} is in the store already", hint="list runs with ajuste report")
            turn = next_turn(transaction)
            row = sealed(RunRow(**vars(run), kernel=kernel, workload=workload, begun=turn, taken_up=turn))
            put(transaction, row)
            keep_tally(transaction, STORE, RUNS, counted.plus([row.check]))
            keep_tally(transaction, run.id, TRIALS, TrialTally())
        return run

    def require_sound(self) -> None:
        """Raises RunError if the file is malformed. To be called before a run is begun or gone on with."""
        with self._reading():
            require_sound(self._database)

    def latest_run(self, fingerprint: str, seed: int) -> Run | None:
        """The run of exactly this that was begun last, finished or not."""
        return next(iter(self.runs_alike(fingerprint, seed)), None)

    def runs_alike(self, fingerprint: str, seed: int) -> list[Run]:
        """All runs of exactly this, the one begun last first."""
        return self._chosen(lambda head: (head.fingerprint, head.seed) == (fingerprint, seed))

    def runs_named(self, study: str) -> list[Run]:
        """All runs of studies of that name that were measured here, the one begun last first."""
        return self._chosen(lambda head: head.study == study and not head.imported)

    def _chosen(self, wanted: Callable[[Head], bool]) -> list[Run]:
        with self._reading() as transaction:
            return [_run(transaction, head.id) for head in heads(transaction) if wanted(head) and not head.deleted]

    def count(self, run: Run) -> int:
        """How many trials a run has, with those of its base."""
        with self._reading() as transaction:
            return all_trials(transaction, run.id).rows

    def find_run(self, text: str) -> Run:
        """The run with the id ``text``, or that of the study of that name which was last begun, gone on with or shown
        instead of being measured again. Raises RequestError.
        """
        with self._reading() as transaction:
            found = run_named(heads(transaction), text)
            if found is not None:
                return _run(transaction, found)
        raise RequestError(f"run {text!r} not found in the store", hint="list runs with ajuste report")

    def runs(self) -> list[Head]:
        """What is listed of all runs, the one begun last first."""
        with self._reading() as transaction:
            return [head for head in heads(transaction) if not head.deleted]

    def stop_run(self, run: Run, stopped: str, because: str) -> None:
        """Record why a run ended: from then on it never changes."""
        with self._writing() as transaction:
            size = size_of_trials(transaction, run.id)
            change_run(transaction, run.id, stopped=stopped, stopped_because=because, size_bytes=size)

    def results(self, run: Run) -> str | None:
        """What was said of a run that ended, as a document, if it has all that was known then and no more."""
        with self._reading() as transaction:
            kept = row_at(transaction, ResultsRow, run.id)
            if kept is None or (verified(kept).trials, kept.total, kept.recorded) != all_known(transaction, run.id):
                return None
            return zlib.decompress(kept.document).decode()

    def keep_results(self, run: Run, answer: str, document: str) -> None:
        """Keep what a run that ended has said: all of it, and the answer for lists."""
        with self._writing() as transaction:
            trials, total, recorded = all_known(transaction, run.id)
            kept = zlib.compress(document.encode())
            row = ResultsRow(run_id=run.id, trials=trials, total=total, recorded=recorded, document=kept)
            put(transaction, sealed(row))
            change_run(transaction, run.id, answer=answer)

    def tag(self, run: Run | Head, tags: Iterable[str]) -> None:
        """Tag a run with these words, instead of those that it has."""
        with self._writing() as transaction:
            change_run(transaction, run.id, tags=" ".join(sorted(set(tags))))

    def delete(self, runs: Iterable[Run | Head]) -> None:
        """Forget runs. The trials that other runs have of them stay until those are forgotten too."""
        with self._writing() as transaction:
            for run in runs:
                change_run(transaction, run.id, deleted=True)
            forget_deleted(transaction)

    def forget_if_empty(self, run: Run) -> None:
        """Remove a run of which nothing was measured."""
        with self._writing() as transaction:
            there = transaction.value("SELECT COUNT(*) FROM trials WHERE run_id = ?", run.id)
            if not tally(transaction, run.id, TRIALS).rows and not there:
                forget(transaction, run.id)

    def go_on(self, run: Run, *, named: str, resolved: str, study: str = "") -> Run:
        """Take a run that has not ended up again for a study that measures the same, whatever its words and name."""
        new = replace(run, named=named, resolved=resolved, study=study or run.study)
        with self._writing() as transaction:
            turn = next_turn(transaction)
            change_run(transaction, run.id, taken_up=turn, named=named, resolved=resolved, study=new.study)
        return new

    def take_up(self, run: Run) -> None:
        """Let the name of its study stand for a run, which is shown instead of being measured again."""
        with self._writing() as transaction:
            change_run(transaction, run.id, taken_up=next_turn(transaction))

    def set_environment(self, run: Run, environment: dict[str, Any]) -> None:
        """Record what the run was measured on, known only once its targets are ready."""
        with self._writing() as transaction:
            change_run(transaction, run.id, environment=environment)

    def add_trials(self, run: Run, trials: Sequence[Trial], *, machine: str = "") -> None:
        """Keep trials, all or none, and which ``machine`` has measured their blocks, if there are several. Raises
        RunError if one of these attempts is there already: two processes on one run.
        """
        from ajuste.store.rows import keep_trials, trial_row

        if not trials:
            return
        with self._writing() as transaction:
            if transaction.value("SELECT stopped FROM runs WHERE id = ?", run.id):
                raise ended(run.id)
            keep_trials(transaction, run.id, [trial_row(run.id, trial) for trial in trials])
            if machine:
                keep_machine(transaction, run.id, {trial.slot.block for trial in trials}, machine)

    def drop_trials(self, run: Run, places: Sequence[Place]) -> None:
        """Forget trials: who measured them gave what is not so."""
        from ajuste.store.rows import drop_trials

        with self._writing() as transaction:
            drop_trials(transaction, run.id, places)

    def machines(self, run: Run) -> dict[int, str]:
        """By block, which of several machines has measured it."""
        with self._reading() as transaction:
            owned = (all_of(transaction, MachineRow, owner, MACHINES) for owner in owners(transaction, run.id))
            return {row.block: row.machine for rows in owned for row in rows}

    def trials(self, run: Run | Head) -> list[Trial]:
        """All trials of a run in design order: block, position, attempt."""
        return list(self.each_trial(run))

    def each_trial(self, run: Run | Head) -> Iterator[Trial]:
        """As ``trials``, one after the other: all that was printed in a run may be more than the memory holds. That
        one is missing is known in the end (RunError).
        """
        from ajuste.store.columns import each_trial

        with self._reading() as transaction:
            yield from each_trial(transaction, run.id)

    def trials_at(self, run: Run, places: Sequence[Place]) -> list[Trial]:
        """The trials of a run at these places, in their order."""
        from ajuste.store.rows import place_words, trial_at

        found = []
        with self._reading() as transaction:
            own = owners(transaction, run.id)
            for place in places:
                one = trial_at(transaction, own, place)
                if one is None:
                    raise DamageError(f"{place_words(run.id, *place)} is missing")
                found.append(one)
        return found

    def measurements(self, run: Run) -> Measurements:
        """All figures of a run, without what its programs printed."""
        from ajuste.store.columns import read_measurements

        with self._reading() as transaction:
            return read_measurements(transaction, run.id)

    def kept_measurements(self, run: Run) -> Measurements | None:
        """The figures of a run as they were kept, if they are of all the trials that it has."""
        from ajuste.store.columns import kept_measurements

        with self._reading() as transaction:
            return kept_measurements(transaction, run.id)

    def keep_measurements(self, run: Run, found: Measurements) -> None:
        """Keep the figures of all trials that a run has now, so that they are read at once from then on."""
        from ajuste.store.columns import keep_measurements

        with self._writing() as transaction:
            keep_measurements(transaction, run.id, found)

    def each_measured(self, run: Run) -> Iterator[tuple[Place, Measured]]:
        """What the digest of a run covers, trial by trial in design order."""
        from ajuste.store.columns import each_measured

        with self._reading() as transaction:
            yield from each_measured(transaction, run.id)

    def digest(self, run: Run, trials: int) -> str | None:
        """The digest that was kept of a run, if it is of all the trials that it has, which are so many."""
        with self._reading() as transaction:
            counted = all_trials(transaction, run.id)
            kept = row_at(transaction, DigestRow, run.id)
            if kept is None or (verified(kept).trials, kept.total) != (counted.rows, counted.total):
                return None
            return kept.digest if counted.rows == trials else None

    def keep_digest(self, run: Run, digest: str, trials: int) -> None:
        """Keep the digest of all trials of a run, if it still has so many."""
        with self._writing() as transaction:
            counted = all_trials(transaction, run.id)
            if counted.rows == trials:
                put(transaction, sealed(DigestRow(run_id=run.id, trials=trials, total=counted.total, digest=digest)))

    def keep_recorded(self, run: Run, recorded: Recorded) -> None:
        """Keep a recorded trial, instead of an earlier one of the same configuration."""
        row = RecordedRow(run_id=run.id, configuration=recorded.configuration, document=recorded.model_dump_json())
        with self._writing() as transaction:
            earlier = row_at(transaction, RecordedRow, run.id, recorded.configuration)
            counted = tally(transaction, run.id, RECORDED, to_change=True).plus(
                [sealed(row).check], [earlier.check] if earlier else ()
            )
            put(transaction, row)
            keep_tally(transaction, run.id, RECORDED, counted)

    def recorded(self, run: Run) -> dict[str, Recorded]:
        """The recorded trials of a run by configuration."""
        with self._reading() as transaction:
            owned = (all_of(transaction, RecordedRow, owner, RECORDED) for owner in owners(transaction, run.id))
            rows = {row.configuration: row.document for own in owned for row in own}
        if rows:
            from ajuste.model.explanation import Recorded
        return {name: Recorded.model_validate_json(document) for name, document in rows.items()}

    def keep_suite(self, suite_id: str, document: str) -> None:
        """Keep the record of a suite, instead of an earlier one with the same id."""
        with self._writing() as transaction:
            keep_suite(transaction, suite_id, document)

    def suites(self) -> list[str]:
        """The records of all suites, as they were kept."""
        with self._reading() as transaction:
            return all_suites(transaction)

    def reserved(self, fingerprint: str, seed: int, what: str) -> AbstractContextManager[None]:
        """Hold this study and seed, for as long as the context lasts, against all who share the store. Raises
        RequestError if it is held elsewhere. A file is a store of one machine, where ``only_one`` is enough.
        """
        return held_on_server(self._database, fingerprint, seed, what)

    def _following(self, base: str) -> str:
        """The id of another run of what a run has measured."""
        first = base.partition(".")[0]
        with self._reading() as transaction:
            taken = {head.id for head in heads(transaction)}
        return next(one for number in count(2) if (one := f"{first}.{number}") not in taken)

    def _reading(self) -> AbstractContextManager[Transaction]:
        return reading(self._database, self.url)

    def _writing(self) -> AbstractContextManager[Transaction]:
        return writing(self._database, self.url)


def _run(transaction: Transaction, run_id: str) -> Run:
    row = verified(row_at(transaction, RunRow, run_id))
    return Run(**{name: getattr(row, name) for name in Run.__dataclass_fields__})

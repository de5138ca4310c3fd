"""The store: runs and their trials, in SQLite or PostgreSQL."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from sqlalchemy import delete, func, select, tuple_
from sqlalchemy.exc import DatabaseError, IntegrityError
from sqlalchemy.orm import Session

from ajuste.machine.lock import locked
from ajuste.model.error import RequestError, RunError
from ajuste.model.measurements import Measured, Measurements
from ajuste.model.scheduling import Recorded
from ajuste.model.trial import Trial
from ajuste.store.columns import each_measured, naming, read_measurements
from ajuste.store.engine import WRITING, open_engine, require_sound, shown, unusable
from ajuste.store.packing import UNREADABLE, DamageError, PackedColumn, packed, unpacked
from ajuste.store.rows import (
    MACHINES,
    RECORDED,
    RUNS,
    STORE,
    TRIALS,
    WHOLE,
    TrialTally,
    all_of,
    change_run,
    drop_trials,
    expect_tally,
    forget,
    heads,
    keep_machine,
    keep_tally,
    keep_trials,
    place_words,
    sealed,
    tally,
    trial_row,
    verified,
    whole_trial,
)
from ajuste.store.schema import POSTGRESQL, SQLITE, ColumnRow, DigestRow, MachineRow, RecordedRow, RunRow, TrialRow

_AT_ONCE: Final = 1_000
Place: TypeAlias = tuple[int, int, int]
"""Block, position and attempt of a trial."""


@dataclass(frozen=True)
class Run:
    """One run of a study as the store has it. ``stopped`` is empty while it can go on."""

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
    environment: dict[str, Any] = field(default_factory=dict)


class Store:
    """A context manager. Each trial is on disk when ``add_trials`` returns; safe to use from several threads.

    Raises RequestError where the store cannot be opened or is of a newer Ajuste, RunError where writing fails.
    """

    def __init__(self, url: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.url = url
        self._now = now
        self._engine = open_engine(url)
        self.name = shown(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._engine.dispose()

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
    ) -> Run:
        """Begin a run. Its id is the day and a random part, for people: which run is the latest is counted."""
        now = self._now()
        run = Run(
            id=f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
            study=study,
            fingerprint=fingerprint,
            seed=seed,
            created=now.isoformat(timespec="seconds"),
            ajuste=ajuste,
            named=named,
            resolved=resolved,
            environment=environment,
        )
        with self._writing() as session:
            counted = tally(session, STORE, RUNS, to_change=True)  # Of two that begin at once one is the first.
            last = session.scalar(select(func.max(RunRow.taken_up))) or 0
            row = sealed(RunRow(**vars(run), begun=last + 1, taken_up=last + 1, unverified_before=False))
            session.add(row)
            keep_tally(session, STORE, RUNS, counted.plus([row.check]))
            keep_tally(session, run.id, TRIALS, TrialTally())
        return run

    def require_sound(self) -> None:
        """Raises RunError if the file is malformed. To be called before a run is begun or gone on with."""
        with self._reading():
            require_sound(self._engine)

    def latest_run(self, fingerprint: str, seed: int) -> Run | None:
        """The run of exactly this that was begun last, finished or not."""
        with self._reading() as session:
            for head in heads(session):
                if (head.fingerprint, head.seed) == (fingerprint, seed):
                    return _run(session, head.id)
        return None

    def find_run(self, text: str) -> Run:
        """The run with the id ``text``, or that of the study of that name which was last begun, gone on with or shown
        instead of being measured again. Raises RequestError.
        """
        with self._reading() as session:
            found = [head for head in heads(session) if text in (head.id, head.study)]
            if found:
                return _run(session, max(found, key=lambda head: (head.taken_up, head.id)).id)
        raise RequestError(f"run {text!r} not found in the store", hint="list runs with ajuste report")

    def runs(self) -> list[Run]:
        """All runs, the one begun last first."""
        with self._reading() as session:
            return [_run(session, head.id) for head in heads(session)]

    def stop_run(self, run: Run, stopped: str, because: str) -> None:
        """Record why a run ended. An empty ``stopped`` means that it can go on."""
        with self._writing() as session:
            change_run(session, run.id, stopped=stopped, stopped_because=because)

    def forget_if_empty(self, run: Run) -> None:
        """Remove a run of which nothing was measured."""
        with self._writing() as session:
            if not tally(session, run.id, TRIALS).rows and not _count(session, run):
                forget(session, run.id)

    def go_on(self, run: Run, *, named: str, resolved: str) -> Run:
        """Take a run up again for a study that measures the same, though its words or analysis may have changed."""
        with self._writing() as session:
            last = session.scalar(select(func.max(RunRow.taken_up))) or 0
            change_run(session, run.id, named=named, resolved=resolved, taken_up=last + 1)
        return replace(run, named=named, resolved=resolved)

    def set_environment(self, run: Run, environment: dict[str, Any]) -> None:
        """Record what the run was measured on, known only once its targets are ready."""
        with self._writing() as session:
            change_run(session, run.id, environment=environment)

    def add_trials(self, run: Run, trials: Sequence[Trial], *, machine: str = "") -> None:
        """Keep trials, all or none, and which ``machine`` has measured their blocks, if there are several. Raises
        RunError if one of these attempts is there already: two processes on one run.
        """
        if not trials:
            return
        with self._writing() as session:
            keep_trials(session, run.id, [trial_row(run.id, trial) for trial in trials])
            if machine:
                keep_machine(session, run.id, {trial.slot.block for trial in trials}, machine)

    def drop_trials(self, run: Run, places: Sequence[Place]) -> None:
        """Forget trials: who measured them gave what is not so."""
        with self._writing() as session:
            drop_trials(session, run.id, places)

    def machines(self, run: Run) -> dict[int, str]:
        """By block, which of several machines has measured it."""
        with self._reading() as session:
            return {row.block: row.machine for row in all_of(session, MachineRow, run.id, MACHINES)}

    def trials(self, run: Run) -> list[Trial]:
        """All trials of a run in design order: block, position, attempt."""
        return list(self.each_trial(run))

    def each_trial(self, run: Run) -> Iterator[Trial]:
        """As ``trials``, one after the other: all that was printed in a run may be more than the memory holds. That
        one is missing is known in the end (RunError).
        """
        query = select(*WHOLE).where(TrialRow.run_id == run.id)
        in_order = query.order_by(TrialRow.block, TrialRow.position, TrialRow.attempt)
        counted = TrialTally()
        with self._reading() as session, naming(session, run.id):
            for rows in session.execute(in_order.execution_options(yield_per=_AT_ONCE)).partitions():
                for row in rows:
                    yield whole_trial(run.id, row)
                counted = counted.plus(row.check for row in rows)
            expect_tally(session, run.id, TRIALS, counted)

    def trials_at(self, run: Run, places: Sequence[Place]) -> list[Trial]:
        """The trials of a run at these places, in their order."""
        wanted = tuple_(TrialRow.block, TrialRow.position, TrialRow.attempt).in_(places)
        with self._reading() as session:
            rows = session.execute(select(*WHOLE).where(TrialRow.run_id == run.id, wanted))
            found = {(row.block, row.position, row.attempt): whole_trial(run.id, row) for row in rows}
            for place in places:
                if place not in found:
                    raise DamageError(f"{place_words(run.id, *place)} is missing")
        return [found[place] for place in places]

    def measurements(self, run: Run) -> Measurements:
        """All figures of a run, without what its programs printed."""
        with self._reading() as session:
            return read_measurements(session, run.id)

    def kept_measurements(self, run: Run) -> Measurements | None:
        """The figures of a run as they were kept, if they are of all the trials that it has."""
        with self._reading() as session:
            counted = tally(session, run.id, TRIALS)
            kept = select(ColumnRow).where(ColumnRow.run_id == run.id).order_by(ColumnRow.place)
            rows = [verified(row) for row in session.scalars(kept)]
            if not rows or (rows[0].trials, rows[0].total) != (counted.rows, counted.total):
                return None
            if len(rows) != rows[0].columns:
                raise DamageError(f"run {run.id} has {len(rows)} of {rows[0].columns} packed columns")
            columns = [PackedColumn(row.name, row.words, row.numbers) for row in rows]
        try:
            return unpacked(columns)
        except (ValueError, KeyError):  # Another Ajuste may keep them otherwise.
            return None

    def keep_measurements(self, run: Run, found: Measurements) -> None:
        """Keep the figures of all trials that a run has now, so that they are read at once from then on."""
        columns = list(packed(found))
        with self._writing() as session:
            counted = tally(session, run.id, TRIALS)
            if counted.rows != len(found):  # It has gone on meanwhile.
                return
            session.execute(delete(ColumnRow).where(ColumnRow.run_id == run.id))
            own = {"run_id": run.id, "trials": counted.rows, "total": counted.total, "columns": len(columns)}
            session.add_all(
                sealed(ColumnRow(place=place, **own, **vars(column))) for place, column in enumerate(columns)
            )

    def each_measured(self, run: Run) -> Iterator[tuple[Place, Measured]]:
        """What the digest of a run covers, trial by trial in design order."""
        with self._reading() as session:
            yield from each_measured(session, run.id)

    def digest(self, run: Run, trials: int) -> str | None:
        """The digest that was kept of a run, if it is of all the trials that it has, which are so many."""
        with self._reading() as session:
            counted = tally(session, run.id, TRIALS)
            kept = session.get(DigestRow, run.id)
            if kept is None or (verified(kept).trials, kept.total) != (counted.rows, counted.total):
                return None
            return kept.digest if counted.rows == trials else None

    def keep_digest(self, run: Run, digest: str, trials: int) -> None:
        """Keep the digest of all trials of a run, if it still has so many."""
        with self._writing() as session:
            counted = tally(session, run.id, TRIALS)
            if counted.rows == trials:
                own = {"run_id": run.id, "trials": trials, "total": counted.total, "digest": digest}
                session.merge(sealed(DigestRow(**own)))

    def keep_recorded(self, run: Run, recorded: Recorded) -> None:
        """Keep a recorded trial, instead of an earlier one of the same configuration."""
        row = RecordedRow(run_id=run.id, configuration=recorded.configuration, document=recorded.model_dump_json())
        with self._writing() as session:
            earlier = session.get(RecordedRow, (run.id, recorded.configuration))
            counted = tally(session, run.id, RECORDED, to_change=True).plus(
                [sealed(row).check], [earlier.check] if earlier else ()
            )
            session.merge(row)
            keep_tally(session, run.id, RECORDED, counted)

    def recorded(self, run: Run) -> dict[str, Recorded]:
        """The recorded trials of a run by configuration."""
        with self._reading() as session:
            rows = {row.configuration: row.document for row in all_of(session, RecordedRow, run.id, RECORDED)}
        return {name: Recorded.model_validate_json(document) for name, document in rows.items()}

    @contextmanager
    def reserved(self, fingerprint: str, seed: int, what: str) -> Iterator[None]:
        """Hold this study and seed, for as long as the context lasts, against all who share the store. Raises
        RequestError if it is held elsewhere. A file is a store of one machine, where ``only_one`` is enough.

        Source: PostgreSQL manual, 13.3.5 Advisory Locks: they end with the connection, however that ends.
        """
        if self._engine.dialect.name != POSTGRESQL:
            yield
            return
        number = int.from_bytes(hashlib.sha256(f"{fingerprint}:{seed}".encode()).digest()[:8], signed=True)
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if not connection.scalar(select(func.pg_try_advisory_lock(number))):
                raise _going_on(what)
            try:
                yield
            finally:
                with suppress(DatabaseError):  # A connection that was lost holds nothing.
                    connection.execute(select(func.pg_advisory_unlock(number)))

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        """Everything that is read in it is of one moment."""
        options = {} if self._engine.dialect.name == SQLITE else {"isolation_level": "REPEATABLE READ"}
        try:
            with Session(self._engine.execution_options(**options)) as session:
                yield session
        except (DatabaseError, DamageError) as error:
            raise unusable(self.url, error, "read") from error
        except self._engine.dialect.loaded_dbapi.Error as error:  # By the driver's own cursor.
            raise unusable(self.url, DatabaseError(None, None, error), "read") from error
        except UNREADABLE as error:
            raise unusable(self.url, DamageError(f"it has an unreadable value: {error}"), "read") from error

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        try:
            with Session(self._engine.execution_options(**{WRITING: True})) as session, session.begin():
                yield session
        except IntegrityError as error:
            raise RunError(
                f"the store already has this entry: {error.orig}",
                hint="wait for another process with the same run, or stop it",
            ) from error
        except (DatabaseError, DamageError) as error:
            raise unusable(self.url, error, "written") from error
        except UnicodeError as error:  # The database quotes a damaged text in its message.
            raise unusable(self.url, DamageError(f"it has invalid text: {error}"), "written") from error


@contextmanager
def only_one(lock: Path, what: str) -> Iterator[None]:
    """Hold ``lock`` for as long as the context lasts. Raises RequestError if another process holds it: ``what`` is
    going on.
    """

    def refuse() -> None:
        raise _going_on(what)

    with ExitStack() as stack:
        try:
            stack.enter_context(locked(lock, waiting=refuse))
        except OSError as error:
            raise RequestError(
                f"cannot write to {lock.parent}: {error.strerror}", hint="set AJUSTE_HOME to another place"
            ) from error
        yield


def _going_on(what: str) -> RequestError:
    return RequestError(
        f"another process runs {what}", hint="wait for it, or interrupt it; run the command again to resume"
    )


def lock_name(fingerprint: str, seed: int) -> str:
    """A file name for ``only_one`` that is the same for the same study and seed."""
    return hashlib.sha256(f"{fingerprint}:{seed}".encode()).hexdigest()[:24] + ".lock"


def _count(session: Session, run: Run) -> int:
    return session.scalar(select(func.count()).select_from(TrialRow).where(TrialRow.run_id == run.id)) or 0


def _run(session: Session, run_id: str) -> Run:
    row = verified(session.get(RunRow, run_id))
    return Run(**{name: getattr(row, name) for name in Run.__dataclass_fields__})

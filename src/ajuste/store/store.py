"""The store: runs and their trials, in SQLite or PostgreSQL."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from sqlalchemy import Select, delete, func, insert, select, tuple_, update
from sqlalchemy.exc import DatabaseError, IntegrityError
from sqlalchemy.orm import Session

from ajuste.lock import locked
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Written
from ajuste.model.measurements import Measured, Measurements
from ajuste.model.scheduling import Recorded
from ajuste.model.trial import Slot, Trial
from ajuste.store.columns import each_measured, read_measurements
from ajuste.store.engine import POSTGRESQL, open_engine, shown
from ajuste.store.packing import Packed, packed, unpacked
from ajuste.store.schema import ColumnRow, DigestRow, MachineRow, RecordedRow, RunRow, TakenUpRow, TrialRow

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
    """A context manager. Each trial is on disk when ``add_trial`` returns; safe to use from several threads.

    Raises RequestError where the store cannot be opened or is of a newer Ajuste, RunError where writing fails.
    """

    def __init__(self, url: str) -> None:
        self.url = url
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
        """Begin a run. Its id is the day and a random part, so that ids sort by age."""
        now = datetime.now(UTC)
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
            session.add(RunRow(**vars(run)))
        return run

    def latest_run(self, fingerprint: str, seed: int) -> Run | None:
        """The newest run of exactly this, finished or not."""
        query = (
            select(RunRow)
            .where(RunRow.fingerprint == fingerprint, RunRow.seed == seed)
            .order_by(RunRow.created.desc(), RunRow.id.desc())
        )
        with self._reading() as session:
            row = session.scalars(query).first()
            return _run(row) if row else None

    def find_run(self, text: str) -> Run:
        """The run with the id ``text``, or that of the study of that name which was last begun, gone on with or shown
        instead of being measured again. Raises RequestError.
        """
        query = (
            select(RunRow)
            .outerjoin(TakenUpRow)
            .where((RunRow.id == text) | (RunRow.study == text))
            .order_by(func.coalesce(TakenUpRow.at, RunRow.created).desc(), RunRow.id.desc())
        )
        with self._reading() as session:
            row = session.scalars(query).first()
        if row is None:
            raise RequestError(
                f"there is no run {text!r} in the store", hint="ajuste report without a name lists what there is"
            )
        return _run(row)

    def runs(self) -> list[Run]:
        """All runs, newest first."""
        with self._reading() as session:
            return [_run(row) for row in session.scalars(select(RunRow).order_by(RunRow.created.desc()))]

    def stop_run(self, run: Run, stopped: str, because: str) -> None:
        """Record why a run ended. An empty ``stopped`` means that it can go on."""
        with self._writing() as session:
            session.execute(update(RunRow).where(RunRow.id == run.id).values(stopped=stopped, stopped_because=because))

    def forget_if_empty(self, run: Run) -> None:
        """Remove a run of which nothing was measured."""
        with self._writing() as session:
            row = session.get(RunRow, run.id)
            if row is not None and not row.trials:
                session.delete(row)

    def go_on(self, run: Run, *, named: str, resolved: str) -> Run:
        """Take a run up again for a study that measures the same, though its words or analysis may have changed."""
        with self._writing() as session:
            session.execute(update(RunRow).where(RunRow.id == run.id).values(named=named, resolved=resolved))
            session.merge(TakenUpRow(run_id=run.id, at=datetime.now(UTC).isoformat(timespec="microseconds")))
        return replace(run, named=named, resolved=resolved)

    def set_environment(self, run: Run, environment: dict[str, Any]) -> None:
        """Record what the run was measured on, known only once its targets are ready."""
        with self._writing() as session:
            session.execute(update(RunRow).where(RunRow.id == run.id).values(environment=environment))

    def add_trial(self, run: Run, trial: Trial) -> None:
        """Keep a trial; see ``add_trials``."""
        self.add_trials(run, (trial,))

    def add_trials(self, run: Run, trials: Sequence[Trial], *, machine: str = "") -> None:
        """Keep trials, all or none, and which ``machine`` has measured their blocks, if there are several. Raises
        RunError if one of these attempts is there already: two processes on one run.
        """
        if not trials:
            return
        with self._writing() as session:
            session.execute(insert(TrialRow), [_trial_row(run, trial) for trial in trials])
            for block in {trial.slot.block for trial in trials} if machine else ():
                session.merge(MachineRow(run_id=run.id, block=block, machine=machine))

    def drop_trials(self, run: Run, places: Sequence[Place]) -> None:
        """Forget trials: who measured them gave what is not so."""
        with self._writing() as session:
            for block, position, attempt in places:
                session.execute(
                    delete(TrialRow).where(
                        TrialRow.run_id == run.id,
                        TrialRow.block == block,
                        TrialRow.position == position,
                        TrialRow.attempt == attempt,
                    )
                )
            for kept in (ColumnRow, DigestRow):
                session.execute(delete(kept).where(kept.run_id == run.id))

    def machines(self, run: Run) -> dict[int, str]:
        """By block, which of several machines has measured it."""
        query = select(MachineRow.block, MachineRow.machine).where(MachineRow.run_id == run.id)
        with self._reading() as session:
            return {block: machine for block, machine in session.execute(query)}

    def trials(self, run: Run) -> list[Trial]:
        """All trials of a run in design order: block, position, attempt."""
        return list(self.each_trial(run))

    def each_trial(self, run: Run) -> Iterator[Trial]:
        """As ``trials``, one after the other: all that was printed in a run may be more than the memory holds."""
        query = _in_order(select(TrialRow).where(TrialRow.run_id == run.id))
        with self._reading() as session:
            for row in session.scalars(query.execution_options(yield_per=_AT_ONCE)):
                yield _trial(row)

    def trials_at(self, run: Run, places: Sequence[Place]) -> list[Trial]:
        """The trials of a run at these places, in their order. Raises KeyError for a place that has none."""
        wanted = tuple_(TrialRow.block, TrialRow.position, TrialRow.attempt).in_(places)
        query = select(TrialRow).where(TrialRow.run_id == run.id, wanted)
        with self._reading() as session:
            found = {(row.block, row.position, row.attempt): _trial(row) for row in session.scalars(query)}
        return [found[place] for place in places]

    def measurements(self, run: Run) -> Measurements:
        """All figures of a run, without what its programs printed."""
        with self._reading() as session:
            return read_measurements(session, run.id)

    def kept_measurements(self, run: Run) -> Measurements | None:
        """The figures of a run as they were kept, if it still has as many trials."""
        with self._reading() as session:
            kept = select(ColumnRow).where(ColumnRow.run_id == run.id, ColumnRow.trials == _count(session, run))
            columns = [
                Packed(row.name, row.words, row.numbers) for row in session.scalars(kept.order_by(ColumnRow.place))
            ]
        if not columns:
            return None
        try:
            return unpacked(columns)
        except (ValueError, KeyError):  # Another Ajuste may keep them otherwise.
            return None

    def keep_measurements(self, run: Run, found: Measurements) -> None:
        """Keep the figures of all trials that a run has now, so that they are read at once from then on."""
        rows = [
            {"run_id": run.id, "place": place, "trials": len(found), **vars(column)}
            for place, column in enumerate(packed(found))
        ]
        with self._writing() as session:
            session.execute(delete(ColumnRow).where(ColumnRow.run_id == run.id))
            session.execute(insert(ColumnRow), rows)

    def each_measured(self, run: Run) -> Iterator[Measured]:
        """What the digest of a run covers, trial by trial in design order."""
        with self._reading() as session:
            yield from each_measured(session, run.id)

    def digest(self, run: Run) -> str | None:
        """The digest that was kept of a run, if it still has as many trials."""
        with self._reading() as session:
            kept = session.get(DigestRow, run.id)
            return kept.digest if kept is not None and kept.trials == _count(session, run) else None

    def keep_digest(self, run: Run, digest: str) -> None:
        """Keep the digest of all trials that a run has now."""
        with self._writing() as session:
            session.merge(DigestRow(run_id=run.id, trials=_count(session, run), digest=digest))

    def keep_recorded(self, run: Run, recorded: Recorded) -> None:
        """Keep a recorded trial, instead of an earlier one of the same configuration."""
        row = RecordedRow(run_id=run.id, configuration=recorded.configuration, document=recorded.model_dump_json())
        with self._writing() as session:
            session.merge(row)

    def recorded(self, run: Run) -> dict[str, Recorded]:
        """The recorded trials of a run by configuration."""
        query = select(RecordedRow).where(RecordedRow.run_id == run.id)
        with self._reading() as session:
            rows = list(session.scalars(query))
        return {row.configuration: Recorded.model_validate_json(row.document) for row in rows}

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
        try:
            with Session(self._engine) as session:
                yield session
        except DatabaseError as error:
            raise RequestError(
                f"the store {self.name} cannot be read: {error.orig}",
                hint="AJUSTE_STORE or AJUSTE_HOME names another place",
            ) from error

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        try:
            with Session(self._engine) as session, session.begin():
                yield session
        except IntegrityError as error:
            raise RunError(
                f"the store already has this: {error.orig}", hint="is the same run going on elsewhere?"
            ) from error
        except DatabaseError as error:
            raise RunError(
                f"the store {self.name} cannot be written: {error.orig}",
                hint="is the disk full, or the database away? What was kept before is there",
            ) from error


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
                f"{lock.parent} cannot be written: {error.strerror}", hint="AJUSTE_HOME names another place"
            ) from error
        yield


def _going_on(what: str) -> RequestError:
    return RequestError(f"{what} is going on in another process", hint="wait for it, or interrupt it: it goes on later")


def lock_name(fingerprint: str, seed: int) -> str:
    """A file name for ``only_one`` that is the same for the same study and seed."""
    return hashlib.sha256(f"{fingerprint}:{seed}".encode()).hexdigest()[:24] + ".lock"


def _in_order(query: Select[Any]) -> Select[Any]:
    return query.order_by(TrialRow.block, TrialRow.position, TrialRow.attempt)


def _count(session: Session, run: Run) -> int:
    return session.scalar(select(func.count()).select_from(TrialRow).where(TrialRow.run_id == run.id)) or 0


def _run(row: RunRow) -> Run:
    return Run(**{name: getattr(row, name) for name in Run.__dataclass_fields__})


def _trial_row(run: Run, trial: Trial) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "block": trial.slot.block,
        "position": trial.slot.position,
        "attempt": trial.attempt,
        "configuration": trial.slot.configuration,
        "seed": str(trial.slot.seed),
        "warm_up": trial.slot.warm_up,
        "status": trial.status,
        "reason": trial.reason,
        "metrics": trial.metrics,
        "not_supported": trial.not_supported,
        "written": [w.model_dump() for w in trial.written],
        "events": trial.events,
        "console": trial.console,
        "started": trial.started,
        "host_seconds": trial.host_seconds,
    }


def _trial(row: TrialRow) -> Trial:
    slot = Slot(
        block=row.block,
        position=row.position,
        configuration=row.configuration,
        seed=int(row.seed),
        warm_up=row.warm_up,
    )
    return Trial(
        slot=slot,
        attempt=row.attempt,
        status=row.status,
        reason=row.reason,
        metrics=row.metrics,
        not_supported=row.not_supported,
        written=tuple(Written.model_validate(w) for w in row.written),
        events=row.events,
        console=row.console,
        started=row.started,
        host_seconds=row.host_seconds,
    )

"""The store: runs and their trials, in SQLite or PostgreSQL."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from types import TracebackType
from typing import Any, Self, TypeAlias

from sqlalchemy import delete, func, select, tuple_
from sqlalchemy.orm import Session

from ajuste.model.error import RequestError
from ajuste.model.measurements import Measured, Measurements
from ajuste.model.scheduling import Recorded
from ajuste.model.trial import Trial
from ajuste.store.checks import DamageError
from ajuste.store.columns import each_measured, each_trial, read_measurements
from ajuste.store.engine import held_on_server, open_engine, reading, require_sound, shown, writing
from ajuste.store.head import Head, run_named
from ajuste.store.packing import PackedColumn, packed, unpacked
from ajuste.store.rows import (
    MACHINES,
    RECORDED,
    RUNS,
    STORE,
    TRIALS,
    WHOLE,
    TrialTally,
    all_known,
    all_of,
    all_trials,
    change_run,
    drop_trials,
    ended,
    forget,
    forget_deleted,
    heads,
    keep_machine,
    keep_tally,
    keep_trials,
    next_turn,
    owners,
    place_words,
    sealed,
    size_of_trials,
    tally,
    trial_row,
    verified,
    whole_trial,
)
from ajuste.store.schema import ColumnRow, DigestRow, MachineRow, RecordedRow, ResultsRow, RunRow, TrialRow

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
        own = {"kernel": kernel, "workload": workload, "deleted": False, "unverified_before": False}
        with self._writing() as session:
            counted = tally(session, STORE, RUNS, to_change=True)  # Of two that begin at once one is the first.
            if session.get(RunRow, run.id) is not None:
                raise RequestError(f"run {run.id} is in the store already")
            turn = next_turn(session)
            row = sealed(RunRow(**vars(run), **own, tags="", size_bytes=0, begun=turn, taken_up=turn))
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
        return next(iter(self.runs_alike(fingerprint, seed)), None)

    def runs_alike(self, fingerprint: str, seed: int) -> list[Run]:
        """All runs of exactly this, the one begun last first."""
        return self._chosen(lambda head: (head.fingerprint, head.seed) == (fingerprint, seed))

    def runs_named(self, study: str) -> list[Run]:
        """All runs of studies of that name, the one begun last first."""
        return self._chosen(lambda head: head.study == study)

    def _chosen(self, wanted: Callable[[Head], bool]) -> list[Run]:
        with self._reading() as session:
            return [_run(session, head.id) for head in heads(session) if wanted(head) and not head.deleted]

    def count(self, run: Run) -> int:
        """How many trials a run has, with those of its base."""
        with self._reading() as session:
            return all_trials(session, run.id).rows

    def find_run(self, text: str) -> Run:
        """The run with the id ``text``, or that of the study of that name which was last begun, gone on with or shown
        instead of being measured again. Raises RequestError.
        """
        with self._reading() as session:
            found = run_named(heads(session), text)
            if found is not None:
                return _run(session, found)
        raise RequestError(f"run {text!r} not found in the store", hint="list runs with ajuste report")

    def runs(self) -> list[Head]:
        """What is listed of all runs, the one begun last first."""
        with self._reading() as session:
            return [head for head in heads(session) if not head.deleted]

    def stop_run(self, run: Run, stopped: str, because: str) -> None:
        """Record why a run ended: from then on it never changes."""
        with self._writing() as session:
            size = size_of_trials(session, run.id)
            change_run(session, run.id, stopped=stopped, stopped_because=because, size_bytes=size)

    def results(self, run: Run) -> str | None:
        """What was said of a run that ended, as a document, if it has all that was known then and no more."""
        with self._reading() as session:
            kept = session.get(ResultsRow, run.id)
            if kept is None or (verified(kept).trials, kept.total, kept.recorded) != all_known(session, run.id):
                return None
            return zlib.decompress(kept.document).decode()

    def keep_results(self, run: Run, answer: str, document: str) -> None:
        """Keep what a run that ended has said: all of it, and the answer for lists."""
        with self._writing() as session:
            trials, total, recorded = all_known(session, run.id)
            own = {"run_id": run.id, "trials": trials, "total": total, "recorded": recorded}
            session.merge(sealed(ResultsRow(**own, document=zlib.compress(document.encode()))))
            change_run(session, run.id, answer=answer)

    def tag(self, run: Run | Head, tags: Iterable[str]) -> None:
        """Tag a run with these words, instead of those that it has."""
        with self._writing() as session:
            change_run(session, run.id, tags=" ".join(sorted(set(tags))))

    def delete(self, runs: Iterable[Run | Head]) -> None:
        """Forget runs. The trials that other runs have of them stay until those are forgotten too."""
        with self._writing() as session:
            for run in runs:
                change_run(session, run.id, deleted=True)
            forget_deleted(session)

    def forget_if_empty(self, run: Run) -> None:
        """Remove a run of which nothing was measured."""
        with self._writing() as session:
            there = select(func.count()).select_from(TrialRow).where(TrialRow.run_id == run.id)
            if not tally(session, run.id, TRIALS).rows and not session.scalar(there):
                forget(session, run.id)

    def go_on(self, run: Run, *, named: str, resolved: str, study: str = "") -> Run:
        """Take a run that has not ended up again for a study that measures the same, whatever its words and name."""
        new = replace(run, named=named, resolved=resolved, study=study or run.study)
        with self._writing() as session:
            turn = next_turn(session)
            change_run(session, run.id, taken_up=turn, named=named, resolved=resolved, study=new.study)
        return new

    def take_up(self, run: Run) -> None:
        """Let the name of its study stand for a run, which is shown instead of being measured again."""
        with self._writing() as session:
            change_run(session, run.id, taken_up=next_turn(session))

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
            if session.scalar(select(RunRow.stopped).where(RunRow.id == run.id)):
                raise ended(run.id)
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
            owned = (all_of(session, MachineRow, owner, MACHINES) for owner in owners(session, run.id))
            return {row.block: row.machine for rows in owned for row in rows}

    def trials(self, run: Run | Head) -> list[Trial]:
        """All trials of a run in design order: block, position, attempt."""
        return list(self.each_trial(run))

    def each_trial(self, run: Run | Head) -> Iterator[Trial]:
        """As ``trials``, one after the other: all that was printed in a run may be more than the memory holds. That
        one is missing is known in the end (RunError).
        """
        with self._reading() as session:
            yield from each_trial(session, run.id)

    def trials_at(self, run: Run, places: Sequence[Place]) -> list[Trial]:
        """The trials of a run at these places, in their order."""
        wanted = tuple_(TrialRow.block, TrialRow.position, TrialRow.attempt).in_(places)
        with self._reading() as session:
            own = TrialRow.run_id.in_(owners(session, run.id))
            rows = session.execute(select(*WHOLE, TrialRow.run_id).where(own, wanted))
            found = {(row.block, row.position, row.attempt): whole_trial(row.run_id, row[:-1]) for row in rows}
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
            counted = all_trials(session, run.id)
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
            counted = all_trials(session, run.id)
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
            counted = all_trials(session, run.id)
            kept = session.get(DigestRow, run.id)
            if kept is None or (verified(kept).trials, kept.total) != (counted.rows, counted.total):
                return None
            return kept.digest if counted.rows == trials else None

    def keep_digest(self, run: Run, digest: str, trials: int) -> None:
        """Keep the digest of all trials of a run, if it still has so many."""
        with self._writing() as session:
            counted = all_trials(session, run.id)
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
            owned = (all_of(session, RecordedRow, owner, RECORDED) for owner in owners(session, run.id))
            rows = {row.configuration: row.document for own in owned for row in own}
        return {name: Recorded.model_validate_json(document) for name, document in rows.items()}

    def reserved(self, fingerprint: str, seed: int, what: str) -> AbstractContextManager[None]:
        """Hold this study and seed, for as long as the context lasts, against all who share the store. Raises
        RequestError if it is held elsewhere. A file is a store of one machine, where ``only_one`` is enough.
        """
        return held_on_server(self._engine, fingerprint, seed, what)

    def _following(self, base: str) -> str:
        """The id of another run of what a run has measured."""
        first = base.partition(".")[0]
        with self._reading() as session:
            taken = {head.id for head in heads(session)}
        return next(one for number in count(2) if (one := f"{first}.{number}") not in taken)

    def _reading(self) -> AbstractContextManager[Session]:
        return reading(self._engine, self.url)

    def _writing(self) -> AbstractContextManager[Session]:
        return writing(self._engine, self.url)


def _run(session: Session, run_id: str) -> Run:
    row = verified(session.get(RunRow, run_id))
    return Run(**{name: getattr(row, name) for name in Run.__dataclass_fields__})

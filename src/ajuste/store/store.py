"""The store: runs and their trials, in SQLite or PostgreSQL."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa

from ajuste.model.error import RequestError
from ajuste.store import runs as rows
from ajuste.store.engine import open_database, require_sound
from ajuste.store.head import Head, Run, run_named
from ajuste.store.location import redact_password
from ajuste.store.runs import Place, keep_document
from ajuste.store.schema import DIGEST, RECORDED, RESULTS, RUNS, SUITE, TRIALS, keep, sealed

if TYPE_CHECKING:  # What needs NumPy or models is loaded when trials are read or written; lists need neither.
    from ajuste.model.explanation import Recorded
    from ajuste.model.measurements import Measurements, TrialMeasurements
    from ajuste.model.trial import Trial

__all__ = ["Place", "Run", "Store"]


class Store:
    """A context manager. Each trial is on disk when ``add_trials`` returns; safe to use from several threads.

    Raises RequestError where the store cannot be opened or is of a newer Ajuste, RunError where writing fails.
    """

    def __init__(self, url: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.url = url
        self._now = now
        self._database = open_database(url)
        self.name = redact_password(url)

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
        run_id = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        if base:
            first = base.partition(".")[0]
            with self._database.reading() as connection:
                taken = {head.id for head in rows.heads(connection)}
            run_id = next(name for number in count(2) if (name := f"{first}.{number}") not in taken)
        run = Run(
            id=run_id,
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
        with self._database.writing() as connection:
            rows.count_runs(connection, 1)
            if connection.scalar(sa.select(RUNS.c.id).where(RUNS.c.id == run.id)):
                raise RequestError(f"run {run.id} is in the store already", hint="list runs with ajuste report")
            turn = rows.next_turn(connection)
            listed: dict[str, Any] = {name: value for name, value in vars(run).items() if name in Head._fields}
            listed |= {"kernel": kernel, "workload": workload, "begun": turn, "taken_up": turn, "tags": ""}
            listed |= dict.fromkeys(("size_bytes", "trials", "total", "recorded", "check"), 0) | {"deleted": False}
            keep(connection, RUNS, [sealed(*Head(**listed)[:-1])])
            rows.keep_study(connection, run.id, **{name: getattr(run, name) for name in rows.OF_STUDY})
        return run

    def require_sound(self) -> None:
        """Raises RunError if the file is malformed. To be called before a run is begun or gone on with."""
        with self._database.reading():
            require_sound(self._database)

    def latest_run(self, fingerprint: str, seed: int) -> Run | None:
        """Return the run of exactly this that was begun last, finished or not."""
        return next(iter(self.runs_alike(fingerprint, seed)), None)

    def runs_alike(self, fingerprint: str, seed: int) -> list[Run]:
        """Return all runs of exactly this, the one begun last first."""
        return self._chosen(lambda head: (head.fingerprint, head.seed) == (fingerprint, seed))

    def runs_named(self, study: str) -> list[Run]:
        """Return all runs of studies of that name that were measured here, the one begun last first."""
        return self._chosen(lambda head: head.study == study and not head.imported)

    def _chosen(self, wanted: Callable[[Head], bool]) -> list[Run]:
        with self._database.reading() as connection:
            return [_run(connection, head) for head in rows.heads(connection) if wanted(head) and not head.deleted]

    def count(self, run: Run) -> int:
        """Return how many trials a run has, with those of its base."""
        with self._database.reading() as connection:
            return sum(head.trials for head in rows.owners(connection, run.id))

    def find_run(self, text: str) -> Run:
        """Return the run with the id ``text``, or that of the study of that name which was last begun, gone on with or
        shown instead of being measured again. Raises RequestError.
        """
        with self._database.reading() as connection:
            head = run_named(rows.heads(connection), text)
            if head is not None:
                return _run(connection, head)
        raise RequestError(f"run {text!r} not found in the store", hint="list runs with ajuste report")

    def runs(self) -> list[Head]:
        """Return what is listed of all runs, the one begun last first."""
        with self._database.reading() as connection:
            return [head for head in rows.heads(connection) if not head.deleted]

    def stop_run(self, run: Run, stopped: str, because: str) -> None:
        """Record why a run ended: from then on it never changes."""
        with self._database.writing() as connection:
            size = rows.size_of_trials(connection, run.id)
            rows.change_run(connection, run.id, stopped=stopped, size_bytes=size)
            rows.keep_study(connection, run.id, stopped_because=because)

    def results(self, run: Run) -> str | None:
        """Return the results of a run that ended, as a document, if they are stored whole."""
        with self._database.reading() as connection:
            content = rows.document(connection, run.id, RESULTS, _known(connection, run.id))
            return None if content is None else zlib.decompress(content).decode()

    def keep_results(self, run: Run, answer: str, document: str) -> None:
        """Store the results of a run that ended, and the answer for lists."""
        with self._database.writing() as connection:
            rows.change_run(connection, run.id, answer=answer)
            content = zlib.compress(document.encode())
            keep_document(connection, run.id, RESULTS, content, _known(connection, run.id))

    def tag(self, run: Run | Head, tags: Iterable[str]) -> None:
        """Tag a run with these words, instead of those that it has."""
        with self._database.writing() as connection:
            rows.change_run(connection, run.id, tags=" ".join(sorted(set(tags))))

    def delete(self, runs: Iterable[Run | Head]) -> None:
        """Forget runs. The trials that other runs have of them stay until those are forgotten too."""
        with self._database.writing() as connection:
            for run in runs:
                rows.change_run(connection, run.id, deleted=True)
            rows.forget_deleted(connection)

    def forget_if_empty(self, run: Run) -> None:
        """Remove a run of which nothing was measured."""
        with self._database.writing() as connection:
            there = sa.select(sa.func.count()).select_from(TRIALS).where(TRIALS.c.run_id == run.id)
            if not rows.read_head(connection, run.id).trials and not connection.scalar(there):
                rows.forget(connection, run.id)

    def go_on(self, run: Run, *, named: str, resolved: str, study: str = "") -> Run:
        """Take a run that has not ended up again for a study that measures the same, whatever its words and name."""
        with self._database.writing() as connection:
            rows.change_run(connection, run.id, taken_up=rows.next_turn(connection), study=study or run.study)
            rows.keep_study(connection, run.id, named=named, resolved=resolved)
        return replace(run, named=named, resolved=resolved, study=study or run.study)

    def take_up(self, run: Run) -> None:
        """Let the name of its study stand for a run, which is shown instead of being measured again."""
        with self._database.writing() as connection:
            rows.change_run(connection, run.id, taken_up=rows.next_turn(connection))

    def set_environment(self, run: Run, environment: dict[str, Any]) -> None:
        """Record what the run was measured on, known only once its targets are ready."""
        with self._database.writing() as connection:
            rows.change_run(connection, run.id, stopped="")  # Refused for a run that has ended.
            rows.keep_study(connection, run.id, environment=environment)

    def add_trials(self, run: Run, trials: Sequence[Trial], *, machine: str = "") -> None:
        """Keep trials, all or none, and which ``machine`` has measured them, if there are several. Raises RunError if
        one of these attempts is there already: two processes on one run.
        """
        from ajuste.store.trials import keep_trials

        if trials:
            with self._database.writing() as connection:
                keep_trials(connection, run.id, trials, machine)

    def drop_trials(self, run: Run, places: Sequence[Place]) -> None:
        """Delete the trials of an untrusted worker."""
        from ajuste.store.trials import drop_trials

        with self._database.writing() as connection:
            drop_trials(connection, run.id, places)

    def machines(self, run: Run) -> dict[int, str]:
        """Return by block which of several machines has measured it. It is verified where the trials are read."""
        c = TRIALS.c
        query = sa.select(c.block, c.machine).where(c.machine != sa.text("''")).order_by(c.number)
        with self._database.reading() as connection:
            names = [head.id for head in rows.owners(connection, run.id)]
            machines: list[Any] = []
            for name in names:
                machines += connection.execute(query.where(c.run_id == name)).all()
        return dict(machines)

    def trials(self, run: Run | Head) -> list[Trial]:
        """Return all trials of a run in design order: block, position, attempt."""
        return list(self.each_trial(run))

    def each_trial(self, run: Run | Head) -> Iterator[Trial]:
        """Yield the trials of a run one after the other: all that was printed in a run may be more than the memory
        holds. That one is missing is known in the end (RunError).
        """
        from ajuste.store.trials import each_row, read_trial

        with self._database.reading() as connection:
            yield from map(read_trial, each_row(connection, run.id))

    def trials_at(self, run: Run, places: Sequence[Place]) -> list[Trial]:
        """Return the trials of a run at these places, in their order."""
        from ajuste.store.trials import trials_at

        with self._database.reading() as connection:
            return trials_at(connection, run.id, places)

    def measurements(self, run: Run) -> Measurements:
        """Return all figures of a run, without what its programs printed."""
        from ajuste.store.trials import read_measurements

        with self._database.reading() as connection:
            return read_measurements(connection, run.id)

    def each_measured(self, run: Run) -> Iterator[tuple[Place, TrialMeasurements]]:
        """Return what the digest of a run covers, trial by trial in design order."""
        from ajuste.store.trials import each_measured

        with self._database.reading() as connection:
            yield from each_measured(connection, run.id)

    def digest(self, run: Run, trials: int) -> str | None:
        """Return the digest that was kept of a run, if it is of all the trials that it has, which are so many."""
        with self._database.reading() as connection:
            known = rows.trials_key(rows.owners(connection, run.id))
            content = rows.document(connection, run.id, DIGEST, known) if known.startswith(f"{trials} ") else None
            return None if content is None else content.decode()

    def keep_digest(self, run: Run, digest: str, trials: int) -> None:
        """Keep the digest of all trials of a run, if it still has so many."""
        with self._database.writing() as connection:
            known = rows.trials_key(rows.owners(connection, run.id))
            if known.startswith(f"{trials} "):
                keep_document(connection, run.id, DIGEST, digest.encode(), known)

    def keep_recorded(self, run: Run, recorded: Recorded) -> None:
        """Keep a recorded trial, instead of an earlier one of the same configuration."""
        with self._database.writing() as connection:
            rows.read_head(connection, run.id, to_change=True)
            name, content = recorded.configuration, recorded.model_dump_json().encode()
            others = sum(row.check for row in rows.documents(connection, RECORDED, run.id) if row.name != name)
            check = keep_document(connection, run.id, RECORDED, content, name)
            rows.change_run(connection, run.id, recorded=others + check)

    def recorded(self, run: Run) -> dict[str, Recorded]:
        """Return the recorded trials of a run by configuration."""
        with self._database.reading() as connection:
            documents: dict[str, bytes] = {}
            for head in rows.owners(connection, run.id):
                documents |= rows.read_recorded(connection, head)
        if documents:
            from ajuste.model.explanation import Recorded
        return {name: Recorded.model_validate_json(content) for name, content in documents.items()}

    def keep_suite(self, suite_id: str, document: str) -> None:
        """Keep the record of a suite, instead of an earlier one with the same id."""
        with self._database.writing() as connection:
            keep_document(connection, suite_id, SUITE, document.encode())

    def suites(self) -> list[str]:
        """Return the records of all suites, as they were kept."""
        with self._database.reading() as connection:
            return [row.document.decode() for row in rows.documents(connection, SUITE)]

    def reserved(self, fingerprint: str, seed: int, what: str) -> AbstractContextManager[None]:
        """Hold this study and seed, for as long as the context lasts, against all who share the store. Raises
        RequestError if it is held elsewhere. A file is a store of one machine, where ``exclusive`` is enough.
        """
        return self._database.held(fingerprint, seed, what)


def _run(connection: sa.Connection, head: Head) -> Run:
    listed = {name: value for name, value in head._asdict().items() if name in Run.__dataclass_fields__}
    return Run(**listed, **rows.read_study(connection, head.id))


def _known(connection: sa.Connection, run_id: str) -> str:
    # Return what tells all trials and recordings of a run from all others.
    owners = rows.owners(connection, run_id)
    return f"{rows.trials_key(owners)} {sum(head.recorded for head in owners)}"

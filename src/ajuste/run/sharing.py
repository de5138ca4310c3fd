"""Sharing: runs as a bundle, and a bundle into the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ajuste.model.error import RequestError, RunError
from ajuste.model.explanation import Recorded
from ajuste.model.results import Results
from ajuste.model.trial import Trial
from ajuste.report.results import results_report
from ajuste.run.outcome import original_results
from ajuste.store.bundle import COPY_AGAIN, BundledRun, BundleReader, is_beyond, open_bundle
from ajuste.store.head import IMPORTED
from ajuste.store.record import KeptRecord
from ajuste.store.store import Run, Store
from ajuste.study.resolved import ResolvedStudy

_AT_ONCE: Final = 1_000
_AT_ONCE_CHARACTERS: Final = 16 << 20
# Values of a study that was resolved: 10,000 configurations have some 100 each.
_MOST_RESOLVED: Final = 2_000_000
_MALFORMED: Final = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class StoredRun:
    """A run that ended, for ``store.bundle``: with the trials of its base, and without tags."""

    run: Run
    store: Store

    @property
    def head(self) -> BundledRun:
        """What it is."""
        run, store = self.run, self.store
        listed = next(one for one in store.runs() if one.id == run.id)
        names = ("id", "study", "seed", "created", "ajuste", "named", "resolved", "stopped", "stopped_because")
        return BundledRun.model_validate(
            {
                **{name: getattr(run, name) for name in names},
                "fingerprint": run.fingerprint.removeprefix(IMPORTED),
                "kernel": listed.kernel,
                "workload": listed.workload,
                "environment": run.environment,
                "machines": {str(block): machine for block, machine in store.machines(run).items()},
                "trials": store.count(run),
                "recorded": len(store.recorded(run)),
                "digest": KeptRecord(run, store).digest,
            }
        )

    @property
    def trials(self) -> Iterator[Trial]:
        """One after the other."""
        return self.store.each_trial(self.run)

    @property
    def recorded(self) -> Sequence[Recorded]:
        """By the names of their configurations."""
        return [one for _, one in sorted(self.store.recorded(self.run).items())]

    @property
    def results(self) -> Results:
        """What is said of it."""
        return original_results(self.run, self.store)


def to_bundle(names: Sequence[str], store: Store) -> list[StoredRun]:
    """The runs of these names, each once. Raises RequestError for one that has not ended."""
    runs = list({run.id: run for run in map(store.find_run, names)}.values())
    for run in runs:
        if not run.stopped:
            raise RequestError(
                f"run {run.id} is not finished; a bundle has runs that ended", hint="finish it with its own command"
            )
    return [StoredRun(run, store) for run in runs]


@dataclass(frozen=True)
class Imported:
    """What became of a run of a bundle: it is ``new`` in the store, or was there already. ``said_anew``: its results
    were computed again, because those in the bundle were others.
    """

    id: str
    study: str
    trials: int
    new: bool
    said_anew: bool


def import_bundle(file: Path, store: Store) -> list[Imported]:
    """Take all runs of a bundle into ``store``, or none. Raises RequestError for a bundle that is not as it must be,
    and for another run with the same id.
    """
    with unpacked(file) as (runs, kept):
        found = []
        taken = {run.id for run in store.runs()}
        for one in runs:
            if one.run.id in taken and not _alike(one, StoredRun(store.find_run(one.run.id), store)):
                raise RequestError(
                    f"run {one.run.id} is in the store already, with other content; nothing was imported",
                    hint=f"remove that run with ajuste store delete {one.run.id}, or set AJUSTE_STORE to another store",
                )
        done: list[Run] = []
        try:
            for one in runs:
                if one.run.id not in taken:
                    done.append(one.run)
                    _put(store, one.run, one.head, one.trials, one.recorded)
                    results = one.results
                    store.keep_results(one.run, results.answer, results.model_dump_json())
                head = one.head
                found.append(Imported(head.id, head.study, head.trials, head.id not in taken, not kept[head.id]))
        except BaseException:
            here = {run.id for run in store.runs()} - taken
            store.delete([run for run in done if run.id in here])
            raise
    return found


def _alike(one: StoredRun, other: StoredRun) -> bool:
    # Whether both have the same; what was said of them may have been said by different versions.
    return one.head == other.head and [*one.recorded] == [*other.recorded]


@contextmanager
def unpacked(file: Path) -> Iterator[tuple[list[StoredRun], dict[str, bool]]]:
    """The runs of a bundle in a store of their own, and by id whether their results follow from their trials."""
    with TemporaryDirectory(prefix="ajuste-bundle-") as directory, Store(f"sqlite:///{directory}/store") as store:
        said: dict[str, str] = {}
        with open_bundle(file) as bundle:
            for _ in range(bundle.runs):
                head = _take(bundle, store, file)
                said[head.id] = _sha256(bundle.results())
            bundle.end()
        runs = [StoredRun(store.find_run(name), store) for name in said]
        kept = {}
        for one in runs:
            try:
                found = one.results
                results_report(found)
            except _MALFORMED as error:
                raise RequestError(f"{file} is malformed: run {one.run.id} cannot be shown", hint=COPY_AGAIN) from error
            kept[one.run.id] = _sha256(found) == said[one.run.id]
        yield runs, kept


def _sha256(results: Results) -> str:
    return hashlib.sha256(results.model_dump_json().encode()).hexdigest()


def _take(bundle: BundleReader, store: Store, file: Path) -> BundledRun:
    # Put the next run of a bundle into a store. Raises RequestError.
    head = bundle.run()
    if is_beyond(head.resolved.encode(), _MOST_RESOLVED):
        raise RequestError(
            f"{file} is too large: the study of run {head.id} has too many values; expected at most {_MOST_RESOLVED:,}"
        )
    try:
        resolved = ResolvedStudy.model_validate_json(head.resolved)
    except _MALFORMED as error:
        raise RequestError(f"{file} is malformed: the study of run {head.id} is not valid", hint=COPY_AGAIN) from error
    if resolved.study.name != head.study:
        raise RequestError(f"{file} is malformed: run {head.id} is of another study than it says", hint=COPY_AGAIN)
    names = Run.__dataclass_fields__.keys() & BundledRun.model_fields.keys()
    run = Run(**{name: getattr(head, name) for name in names})
    run = replace(run, fingerprint=f"{IMPORTED}{head.fingerprint}")
    try:
        _put(store, run, head, bundle.trials(head), bundle.recorded(head))
    except RunError as error:
        raise RequestError(f"{file} is malformed: run {head.id} has a trial twice", hint=COPY_AGAIN) from error
    if KeptRecord(run, store).digest != head.digest:
        raise RequestError(
            f"{file} is damaged or forged: the digest of run {head.id} is not that of its trials", hint=COPY_AGAIN
        )
    return head


def _some(trials: Iterable[Trial]) -> Iterator[list[Trial]]:
    # Trials in lists that the memory holds, whatever was printed in them.
    found: list[Trial] = []
    characters = 0
    for one in trials:
        found.append(one)
        characters += len(one.events) + len(one.console)
        if len(found) == _AT_ONCE or characters > _AT_ONCE_CHARACTERS:
            yield found
            found, characters = [], 0
    if found:
        yield found


def _put(store: Store, run: Run, head: BundledRun, trials: Iterator[Trial], recorded: Iterable[Recorded]) -> None:
    # Put a run into a store that does not have it.
    begun = store.adopt(run, kernel=head.kernel, workload=head.workload)
    for some in _some(trials):
        for machine, own in groupby(some, lambda trial: head.machines.get(str(trial.slot.block), "")):
            store.add_trials(begun, list(own), machine=machine)
    for one in recorded:
        store.keep_recorded(begun, one)
    store.stop_run(begun, head.stopped, head.stopped_because)

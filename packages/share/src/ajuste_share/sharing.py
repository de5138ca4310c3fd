"""Sharing: runs are written to a bundle, and a bundle is imported into the store."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ajuste.model.error import RequestError, RunError
from ajuste.model.explanation import Recorded
from ajuste.model.results import Results
from ajuste.model.trial import Trial
from ajuste.report.results import results_report
from ajuste.run.outcome import keep_results, original_results
from ajuste.store.head import IMPORTED
from ajuste.store.record import KeptRecord
from ajuste.store.store import Run, Store
from ajuste.study.resolved import ResolvedStudy
from ajuste_share.bundle import COPY_AGAIN, BundledRun, BundleReader, is_beyond, open_bundle

_AT_ONCE: Final = 1_000
_AT_ONCE_CHARACTERS: Final = 16 << 20
# Values of a resolved study: 10,000 configurations have about 100 each.
_MOST_RESOLVED: Final = 2_000_000
_MALFORMED: Final = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class StoredRun:
    """An ended run for ``write_bundle``, with the trials of its base and without tags."""

    run: Run
    store: Store

    @property
    def head(self) -> BundledRun:
        run, store = self.run, self.store
        listed = next(head for head in store.runs() if head.id == run.id)
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
        return self.store.each_trial(self.run)

    @property
    def recorded(self) -> Sequence[Recorded]:
        """The recordings, ordered by configuration."""
        return [recording for _, recording in sorted(self.store.recorded(self.run).items())]

    @property
    def results(self) -> Results:
        return original_results(self.run, self.store)


def to_bundle(names: Sequence[str], store: Store) -> list[StoredRun]:
    """Return the named runs, each once. Raises RequestError for an unfinished one."""
    runs = list({run.id: run for run in map(store.find_run, names)}.values())
    for run in runs:
        if not run.stopped:
            raise RequestError(
                f"run {run.id} is not finished; a bundle has runs that ended", hint="finish it with its own command"
            )
    return [StoredRun(run, store) for run in runs]


@dataclass(frozen=True)
class Imported:
    """An imported run: ``new`` in the store, or there already. ``said_anew``: its results were computed again, because
    those in the bundle are ``different`` in these parts.
    """

    id: str
    study: str
    trials: int
    new: bool
    said_anew: bool
    different: tuple[str, ...]


def import_bundle(file: Path, store: Store) -> list[Imported]:
    """Import all runs of a bundle into ``store``, or none. Raises RequestError for an invalid bundle, and for another
    run with the same id.
    """
    with unpacked(file) as (runs, different):
        imported = []
        taken = {run.id for run in store.runs()}
        for bundled in runs:
            if bundled.run.id not in taken:
                continue
            stored = StoredRun(store.find_run(bundled.run.id), store)
            # Results are not compared: different versions may have computed them.
            if stored.head != bundled.head or [*stored.recorded] != [*bundled.recorded]:
                raise RequestError(
                    f"run {bundled.run.id} is in the store already, with other content; nothing was imported",
                    hint=f"remove that run with ajuste store delete {bundled.run.id}, "
                    "or set AJUSTE_STORE to another store",
                )
        done: list[Run] = []
        try:
            for bundled in runs:
                if bundled.run.id not in taken:
                    done.append(bundled.run)
                    _put(store, bundled.run, bundled.head, bundled.trials, bundled.recorded)
                    keep_results(bundled.run, bundled.results, store)
                head, parts = bundled.head, different[bundled.run.id]
                imported.append(Imported(head.id, head.study, head.trials, head.id not in taken, bool(parts), parts))
        except BaseException:
            # Only what this import has added.
            here = {run.id for run in store.runs()} - taken
            store.delete([run for run in done if run.id in here])
            raise
    return imported


@contextmanager
def unpacked(file: Path) -> Iterator[tuple[list[StoredRun], dict[str, tuple[str, ...]]]]:
    """Yield a bundle's runs in a temporary store, and by id which parts of their results do not follow from their
    trials.
    """
    with TemporaryDirectory(prefix="ajuste-bundle-") as directory, Store(f"sqlite:///{directory}/store") as store:
        bundled: dict[str, Results] = {}
        with open_bundle(file) as bundle:
            for _ in range(bundle.runs):
                head = _take(bundle, store, file)
                bundled[head.id] = bundle.results()
            bundle.end()
        runs = [StoredRun(store.find_run(name), store) for name in bundled]
        different = {}
        for run in runs:
            try:
                results = run.results
                # A bundle is not trusted: its results must be computable and showable.
                results_report(results)
            except _MALFORMED as error:
                raise RequestError(f"{file} is malformed: run {run.run.id} cannot be shown", hint=COPY_AGAIN) from error
            different[run.run.id] = _different(bundled.pop(run.run.id), results)
        yield runs, different


# What depends on who asks, and from where: commands with or without sudo, directories.
_OF_THE_CALLER: Final = frozenset({"reproduce", "continuation"})
# Relative difference of one figure that two CPUs compute.
_ROUNDING: Final = 1e-9


def _different(bundled: Results, computed: Results) -> tuple[str, ...]:
    first, other = (results.model_dump(mode="json", exclude=set(_OF_THE_CALLER)) for results in (bundled, computed))
    return tuple(name for name in {**other, **first} if not _alike(first.get(name), other.get(name)))


def _alike(first: Any, other: Any) -> bool:
    if isinstance(first, float) and isinstance(other, float):
        return math.isclose(first, other, rel_tol=_ROUNDING)
    if isinstance(first, dict) and isinstance(other, dict):
        return first.keys() == other.keys() and all(_alike(value, other[name]) for name, value in first.items())
    if isinstance(first, list) and isinstance(other, list):
        return len(first) == len(other) and all(map(_alike, first, other))
    return bool(first == other)


def _take(bundle: BundleReader, store: Store, file: Path) -> BundledRun:
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


def _batches(trials: Iterable[Trial]) -> Iterator[list[Trial]]:
    # Batches have a limited size, whatever the trials printed.
    batch: list[Trial] = []
    characters = 0
    for trial in trials:
        batch.append(trial)
        characters += len(trial.events) + len(trial.console)
        if len(batch) == _AT_ONCE or characters > _AT_ONCE_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _put(store: Store, run: Run, head: BundledRun, trials: Iterator[Trial], recorded: Iterable[Recorded]) -> None:
    adopted = store.adopt(run, kernel=head.kernel, workload=head.workload)
    for batch in _batches(trials):
        for machine, group in groupby(batch, lambda trial: head.machines.get(str(trial.slot.block), "")):
            store.add_trials(adopted, list(group), machine=machine)
    for recording in recorded:
        store.keep_recorded(adopted, recording)
    store.stop_run(adopted, head.stopped, head.stopped_because)

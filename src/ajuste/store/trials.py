"""Trials in a store: kept, read whole, and read column by column, as the analysis takes them.

Each is verified where it is read, and in the end that none is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa
from pydantic_core import from_json

from ajuste.model.event import Written
from ajuste.model.measurements import Gathering, Measurements, TrialMeasurements
from ajuste.model.trial import Trial
from ajuste.store.checks import DamageError, canonical
from ajuste.store.runs import Place, change_run, owners
from ajuste.store.schema import OF_TRIAL, TRIALS, called, keep, sealed, verified

_OUTPUTS: Final = frozenset({"events", "console"})
# Rows that are read at a time: few enough to stay in the processor's caches.
_AT_ONCE: Final = 1_000
# The values of a write that are compared; not its time.
_KEY: Final = itemgetter("tunable", "asked", "before", "after")


def keep_trials(connection: sa.Connection, run_id: str, trials: Sequence[Trial], machine: str) -> None:
    """Keep trials, and count them."""
    rows = []
    for trial in trials:
        outputs, figures = trial.model_dump(include=set(_OUTPUTS)), trial.model_dump(exclude=set(_OUTPUTS))
        place = (trial.slot.block, trial.slot.position, trial.attempt)
        rows.append(sealed(run_id, *place, machine, canonical(figures), canonical(outputs)))
    keep(connection, TRIALS, rows)
    change_run(connection, run_id, add={"trials": len(rows), "total": sum(row[-1] for row in rows)})


def drop_trials(connection: sa.Connection, run_id: str, places: Sequence[Place]) -> None:
    """Forget the trials at these places, and count them out."""
    checks: list[int] = []
    for place in places:
        checks += connection.scalars(sa.select(TRIALS.c.check).where(*_at(run_id, place))).all()
        connection.execute(TRIALS.delete().where(*_at(run_id, place)))
    change_run(connection, run_id, add={"trials": -len(checks), "total": -sum(checks)})


def trials_at(connection: sa.Connection, run_id: str, places: Sequence[Place]) -> list[Trial]:
    """Read the trials of a run at these places, in their order. Raises DamageError."""
    c, trials = TRIALS.c, dict[Place, Trial]()
    for owner in owners(connection, run_id):
        for start in range(0, len(places), _AT_ONCE):
            some = sa.tuple_(c.block, c.position, c.attempt).in_(places[start : start + _AT_ONCE])
            for row in connection.execute(sa.select(*OF_TRIAL).where(c.run_id == owner.id, some)):
                trials[_place(row)] = read_trial(verified(TRIALS, row))
    for place in places:
        if place not in trials:
            raise DamageError(f"{called(TRIALS, (run_id, *place))} is missing")
    return [trials[place] for place in places]


def read_trial(row: Any) -> Trial:
    """Return the trial of a row."""
    return Trial.model_validate(from_json(row.figures) | from_json(row.outputs))


def each_row(connection: sa.Connection, run_id: str) -> Iterator[Any]:
    """Read all trials of a run in the order of the design. Raises DamageError, at the end where one is missing."""
    parts = (_parts(connection, owner.id, owner.trials, owner.total) for owner in owners(connection, run_id))
    yield from merge(*((row for rows in part for row in rows) for part in parts), key=_place)


def _parts(connection: sa.Connection, run_id: str, trials: int, total: int) -> Iterator[Sequence[Any]]:
    # Read what a run has measured itself, some rows at a time, in the order of the design.
    query = sa.select(*OF_TRIAL).where(TRIALS.c.run_id == run_id)
    query = query.order_by(TRIALS.c.block, TRIALS.c.position, TRIALS.c.attempt)
    counted, summed = 0, 0
    with connection.execute(query, execution_options={"yield_per": _AT_ONCE}) as result:
        for part in result.partitions():
            for row in part:
                verified(TRIALS, row)
            counted, summed = counted + len(part), summed + sum(row[-1] for row in part)
            yield part
    if counted != trials:
        raise DamageError(f"run {run_id} has {counted} of {trials} trials")
    if summed != total:
        raise DamageError(f"the trials of run {run_id} are damaged")


def each_measured(connection: sa.Connection, run_id: str) -> Iterator[tuple[Place, TrialMeasurements]]:
    """Read what the digest covers (see ``analysis.digest``), trial by trial in the order of the design."""
    for row in each_row(connection, run_id):
        figures = from_json(row.figures)
        for write in figures["written"]:
            del write["at_ns"]
        names = ("slot", "attempt", "status", "written", "metrics", "not_supported")
        yield _place(row), {**{name: figures[name] for name in names}, "events": from_json(row.outputs)["events"]}


def read_measurements(connection: sa.Connection, run_id: str) -> Measurements:
    """Read the figures of a run, column by column. Raises DamageError."""
    gathering = Gathering(read_written=_written, read_not_supported=dict)
    for owner in owners(connection, run_id):
        for rows in _parts(connection, owner.id, owner.trials, owner.total):
            figures = from_json(b"[" + b",".join([row.figures for row in rows]) + b"]")
            slots = [trial["slot"] for trial in figures]
            gathering.extend(
                block=[slot["block"] for slot in slots],
                position=[slot["position"] for slot in slots],
                attempt=[trial["attempt"] for trial in figures],
                seed=[slot["seed"] for slot in slots],
                warm_up=[slot["warm_up"] for slot in slots],
                metrics=[trial["metrics"] for trial in figures],
                configuration=[slot["configuration"] for slot in slots],
                status=[trial["status"] for trial in figures],
                reason=[trial["reason"] for trial in figures],
                written=[tuple(map(_KEY, trial["written"])) for trial in figures],
                not_supported=[tuple(trial["not_supported"].items()) for trial in figures],
            )
    return gathering.measurements()


def _written(key: tuple[tuple[str, ...], ...]) -> tuple[Written, ...]:
    return tuple(
        Written(at_ns=0, tunable=tunable, asked=asked, before=before, after=after)
        for tunable, asked, before, after in key
    )


def _place(row: Any) -> Place:
    return row.block, row.position, row.attempt


def _at(run_id: str, place: Place) -> tuple[sa.ColumnElement[bool], ...]:
    block, position, attempt = place
    return (
        *(TRIALS.c.run_id == run_id, TRIALS.c.block == block),
        *(TRIALS.c.position == position, TRIALS.c.attempt == attempt),
    )

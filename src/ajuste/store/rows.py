"""Rows of the tables, with their checksums: made of what is kept, and verified before anything is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json
from sqlalchemy import Integer, LargeBinary, Text, cast, delete, func, insert, literal, select, tuple_
from sqlalchemy.orm import Session

from ajuste.model.error import RunError
from ajuste.model.event import Written
from ajuste.model.trial import Slot, Trial
from ajuste.store.checks import UNREADABLE, DamageError, check_of, figures_checks, outputs_checks, serialised
from ajuste.store.head import HEAD, STORE_VERSION, Head, found_of, verify_head
from ajuste.store.packing import unescaped
from ajuste.store.schema import (
    SQLITE,
    ColumnRow,
    DigestRow,
    MachineRow,
    RecordedRow,
    ResultsRow,
    RunRow,
    TallyRow,
    TrialRow,
    VersionRow,
)

TRIALS: Final = "trials"
MACHINES: Final = "machines"
RECORDED: Final = "recorded"
RUNS: Final = "runs"
LAYOUT: Final = "layout"
STORE: Final = ""
"""In the place of a run: the tally is of the whole store."""

FIGURES: Final = (
    *(TrialRow.block, TrialRow.position, TrialRow.attempt),
    *(cast(TrialRow.warm_up, Integer), TrialRow.seed, TrialRow.status),
    *(cast(column, Text) for column in (TrialRow.metrics, TrialRow.not_supported, TrialRow.written)),
    *(TrialRow.configuration, TrialRow.reason),
)
"""What ``figures_checks`` takes."""
OUTPUTS: Final = (TrialRow.started, TrialRow.host_seconds, TrialRow.events, TrialRow.console)
WHOLE: Final = (*FIGURES, TrialRow.check, *OUTPUTS, TrialRow.outputs_check)
_BODY: Final = ("named", "resolved", "environment", "stopped_because")
_KEPT: Final[dict[type, tuple[str, ...]]] = {
    MachineRow: ("run_id", "block", "machine"),
    DigestRow: ("run_id", "trials", "total", "digest"),
    ResultsRow: ("run_id", "trials", "total", "recorded", "document"),
    ColumnRow: ("run_id", "place", "trials", "total", "columns", "name", "words", "numbers"),
    RecordedRow: ("run_id", "configuration", "document"),
    TallyRow: ("run_id", "kind", "rows", "total"),
}
"""By table what its one checksum is of."""
_KEPT_WORDS: Final[dict[type, str]] = {
    TallyRow: "the count",
    ColumnRow: "a packed column",
    DigestRow: "the kept digest",
    ResultsRow: "the kept report",
}
KINDS: Final[dict[type, str]] = {MachineRow: MACHINES, RecordedRow: RECORDED}
"""How the rows of a small table are counted."""


@dataclass(frozen=True)
class TrialTally:
    """How many rows there are, and the sum of their checksums."""

    rows: int = 0
    total: int = 0

    def plus(self, checks: Iterable[int], minus: Sequence[int] = ()) -> TrialTally:
        added = list(checks)
        return TrialTally(self.rows + len(added) - len(minus), self.total + sum(added) - sum(minus))


def trial_row(run_id: str, trial: Trial) -> dict[str, Any]:
    """A trial as it is kept, without its checksums; see ``checked``."""
    return {
        "run_id": run_id,
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


def checked(row: dict[str, Any]) -> dict[str, Any]:
    """``row`` of a trial with its checksums."""
    figures = (
        *(row["block"], row["position"], row["attempt"], int(row["warm_up"]), row["seed"], row["status"]),
        *(serialised(row[name]) for name in ("metrics", "not_supported", "written")),
        *(row["configuration"], row["reason"]),
    )
    (check,) = figures_checks(row["run_id"], [figures])
    (outputs,) = outputs_checks([(check, row["started"], row["host_seconds"], row["events"], row["console"])])
    return {**row, "check": check, "outputs_check": outputs}


def keep_trials(session: Session, run_id: str, rows: Sequence[dict[str, Any]]) -> None:
    """Keep rows of trials (see ``trial_row``) and count them."""
    complete = [checked(row) for row in rows]
    session.execute(insert(TrialRow), complete)
    keep_tally(
        session, run_id, TRIALS, tally(session, run_id, TRIALS, to_change=True).plus(row["check"] for row in complete)
    )


def drop_trials(session: Session, run_id: str, places: Iterable[tuple[int, int, int]]) -> None:
    """Forget the trials at these places, each a block, a position and an attempt, and count them out."""
    counted = tally(session, run_id, TRIALS, to_change=True)
    at = tuple_(TrialRow.block, TrialRow.position, TrialRow.attempt)
    these = (TrialRow.run_id == run_id, at.in_(list(places)))
    checks = list(session.scalars(select(TrialRow.check).where(*these)))
    session.execute(delete(TrialRow).where(*these))
    keep_tally(session, run_id, TRIALS, counted.plus((), minus=checks))
    for kept in (ColumnRow, DigestRow, ResultsRow):
        session.execute(delete(kept).where(kept.run_id == run_id))


def size_of_trials(session: Session, run_id: str) -> int:
    """Bytes of the texts of the trials that a run has measured itself."""
    texts = (TrialRow.events, TrialRow.console, TrialRow.reason, TrialRow.metrics, TrialRow.written)
    found = session.scalar(select(func.sum(bytes_of(session, texts))).where(TrialRow.run_id == run_id))
    return int(found or 0)


def bytes_of(session: Session, columns: Iterable[Any]) -> Any:
    """How many bytes the values of ``columns`` have together, for a query."""
    if session.connection().dialect.name == SQLITE:
        return sum((func.length(cast(column, LargeBinary)) for column in columns), start=literal(0))
    plain = (column if isinstance(column.type, LargeBinary) else cast(column, Text) for column in columns)
    return sum((func.octet_length(column) for column in plain), start=literal(0))


def place_words(run_id: str, block: Any, position: Any, attempt: Any) -> str:
    """How a trial is named to people."""
    return f"run {run_id}, block {block}, trial {position} (attempt {attempt})"


def whole_trial(run_id: str, row: Sequence[Any]) -> Trial:
    """The trial of a row of ``WHOLE``, which is of that run. Raises DamageError."""
    verify_trials(run_id, [row])
    block, position, attempt, warm_up, seed, status, metrics, not_supported, written, configuration, reason = row[:11]
    _, started, host_seconds, events, console, _ = row[11:]
    slot = Slot(block=block, position=position, configuration=configuration, seed=int(seed), warm_up=bool(warm_up))
    return Trial(
        slot=slot,
        attempt=attempt,
        status=status,
        reason=reason,
        metrics=from_json(metrics),
        not_supported=from_json(not_supported),
        written=tuple(Written.model_validate(w) for w in from_json(written)),
        events=events,
        console=console,
        started=started,
        host_seconds=host_seconds,
    )


def verify_trials(run_id: str, rows: Sequence[Sequence[Any]]) -> None:
    """Raises DamageError for the first row of ``WHOLE`` that is not as it was written."""
    verify_figures(run_id, rows)
    for row in _others(rows, lambda some: outputs_checks(row[11:16] for row in some), 16):
        raise DamageError(f"the output of {place_words(run_id, *row[:3])} is damaged: its checksum differs")


def verify_figures(run_id: str, rows: Sequence[Sequence[Any]]) -> None:
    """Raises DamageError for the first row whose values of ``FIGURES`` do not have the checksum after them."""
    for row in _others(rows, lambda some: figures_checks(run_id, (row[:11] for row in some)), 11):
        raise DamageError(f"the figures of {place_words(run_id, *row[:3])} are damaged: their checksum differs")


def _others(
    rows: Sequence[Sequence[Any]], checks: Callable[[Sequence[Sequence[Any]]], list[int]], place: int
) -> Iterator[Sequence[Any]]:
    """The rows that do not have at ``place`` what ``checks`` computes of them."""
    with suppress(*UNREADABLE):
        if checks(rows) == [row[place] for row in rows]:
            return
    for row in rows:
        if found_of(lambda row=row: checks([row])[0]) != row[place]:
            yield row


def as_written(row: Sequence[Any]) -> Sequence[Any]:
    """A row by the driver's own cursor, its texts as they were; see ``store.packing``."""
    return [unescaped(value) if isinstance(value, str) else value for value in row]


def columns_of(row: Any) -> dict[str, Any]:
    """The values of ``row``, for another one."""
    return {column.key: getattr(row, column.key) for column in type(row).__mapper__.column_attrs}


def sealed(row: Any) -> Any:
    """``row`` of a small table with its checksum."""
    if isinstance(row, RunRow):
        row.check = check_of(*(getattr(row, name) for name in HEAD))
        row.body_check = check_of(row.id, *(getattr(row, name) for name in _BODY))
    else:
        row.check = check_of(*(getattr(row, name) for name in _KEPT[type(row)]))
    return row


def verified(row: Any) -> Any:
    """``row`` of a small table. Raises DamageError, also where a row that must be there is None."""
    if row is None:
        raise DamageError("a counted run is missing")
    if isinstance(row, RunRow):
        verify_head(*(getattr(row, name) for name in HEAD), row.check)
        if found_of(lambda: check_of(row.id, *(getattr(row, name) for name in _BODY))) != row.body_check:
            raise DamageError(f"the record of run {row.id} is damaged: its checksum differs")
    elif found_of(lambda: check_of(*(getattr(row, name) for name in _KEPT[type(row)]))) != row.check:
        what = _KEPT_WORDS.get(type(row), f"an entry of the table {row.__tablename__}")
        raise DamageError(f"{what} of {_run_words(row.run_id)} is damaged: its checksum differs")
    return row


HEADS: Final = (*(getattr(RunRow, name) for name in HEAD), RunRow.check)


def heads(session: Session) -> list[Head]:
    """Of all runs, the one begun last first. Raises DamageError, also where one is missing."""
    found = session.execute(select(*HEADS)).all()
    for row in found:
        verify_head(*row)
    expect_tally(session, STORE, RUNS, TrialTally().plus(row.check for row in found))
    return sorted((Head(*row) for row in found), key=lambda head: (head.begun, head.id), reverse=True)


def owners(session: Session, run_id: str) -> tuple[str, ...]:
    """The runs whose trials a run has: those it is based on, the first one first, and itself. Raises DamageError."""
    found: list[str] = []
    while run_id:
        row = session.execute(select(*HEADS).where(RunRow.id == run_id)).one_or_none()
        if row is None or run_id in found:
            raise DamageError(f"run {run_id} is missing" if row is None else f"run {run_id} is based on itself")
        verify_head(*row)
        found.append(run_id)
        run_id = row.base
    return tuple(reversed(found))


def all_trials(session: Session, run_id: str) -> TrialTally:
    """How many trials a run has, with those of the runs that it is based on."""
    counted = [tally(session, owner, TRIALS) for owner in owners(session, run_id)]
    return TrialTally(sum(one.rows for one in counted), sum(one.total for one in counted))


def all_known(session: Session, run_id: str) -> tuple[int, int, int]:
    """What the results of a run are of: how many trials, and the sums of the checksums of them and of recordings."""
    trials = all_trials(session, run_id)
    return trials.rows, trials.total, sum(tally(session, owner, RECORDED).total for owner in owners(session, run_id))


def next_turn(session: Session) -> int:
    """The number of the run that is begun or taken up now: they are counted, because clocks go back."""
    return (session.scalar(select(func.max(RunRow.taken_up))) or 0) + 1


def tally(session: Session, run_id: str, kind: str, *, to_change: bool = False) -> TrialTally:
    """What was counted; ``to_change`` has others who want to change it wait until the end of the transaction. Raises
    DamageError if the run's trials, or the runs, were never counted.
    """
    row = session.get(TallyRow, (run_id, kind), with_for_update=to_change, populate_existing=True)
    if row is not None:
        verified(row)
        return TrialTally(row.rows, row.total)
    if kind in (TRIALS, RUNS):
        raise DamageError(f"the count of {_run_words(run_id)} is missing")
    return TrialTally()


def keep_tally(session: Session, run_id: str, kind: str, counted: TrialTally) -> None:
    """Keep how many trials of a kind a run has."""
    session.merge(sealed(TallyRow(run_id=run_id, kind=kind, rows=counted.rows, total=counted.total)))


def expect_tally(session: Session, run_id: str, kind: str, found: TrialTally) -> None:
    """Raises DamageError if other rows were found than were counted."""
    counted = tally(session, run_id, kind)
    if counted.rows != found.rows:
        raise DamageError(f"{_run_words(run_id)} has {found.rows} of {counted.rows} {kind}")
    if counted != found:
        raise DamageError(f"the {kind} of {_run_words(run_id)} are damaged")


_ALWAYS: Final = {"taken_up", "answer", "tags", "deleted"}
"""What is no part of what a run measured or said; the answer is kept once, as it was said."""


def change_run(session: Session, run_id: str, **values: Any) -> None:
    """Change values of a run, and what is counted of it. Raises RunError for what a run that ended has said."""
    row = session.get(RunRow, run_id, with_for_update=True)
    if row is None:
        raise DamageError(f"run {run_id} is missing")
    before = verified(row).check
    if row.stopped and not values.keys() <= _ALWAYS:
        raise ended(run_id)
    for name, value in values.items():
        setattr(row, name, value)
    if sealed(row).check != before:
        keep_tally(session, STORE, RUNS, tally(session, STORE, RUNS, to_change=True).plus([row.check], [before]))


def ended(run_id: str) -> RunError:
    """The error that a run has ended."""
    return RunError(f"run {run_id} has ended and cannot change", hint="run the command again to begin another run")


def keep_machine(session: Session, run_id: str, blocks: Iterable[int], machine: str) -> None:
    """Keep which machine has measured blocks of a run."""
    counted = tally(session, run_id, MACHINES, to_change=True)
    for block in blocks:
        earlier = session.get(MachineRow, (run_id, block))
        before = [earlier.check] if earlier else []
        row = session.merge(sealed(MachineRow(run_id=run_id, block=block, machine=machine)))
        counted = counted.plus([row.check], before)
    keep_tally(session, run_id, MACHINES, counted)


def all_of(session: Session, table: type[Any], run_id: str, kind: str) -> list[Any]:
    """The rows of a small table that a run has, all of them as they were written."""
    rows = [verified(row) for row in session.scalars(select(table).where(table.run_id == run_id))]
    expect_tally(session, run_id, kind, TrialTally().plus(row.check for row in rows))
    return rows


def forget(session: Session, run_id: str) -> None:
    """Remove a run and all that is kept of it."""
    head = session.get(RunRow, run_id)
    assert head is not None
    keep_tally(session, STORE, RUNS, tally(session, STORE, RUNS, to_change=True).plus((), minus=[head.check]))
    for table in (*(table for table in _KEPT), TrialRow):
        session.execute(delete(table).where(table.run_id == run_id))  # type: ignore[attr-defined]
    session.delete(head)


def forget_deleted(session: Session) -> None:
    """Remove the runs that were deleted, as far as no other run has their trials."""
    while True:
        found = heads(session)
        bases = {head.base for head in found}
        unused = [head.id for head in found if head.deleted and head.id not in bases]
        for run_id in unused:
            forget(session, run_id)
        session.flush()
        if not unused:
            return


def new_layout(session: Session) -> None:
    """Mark an empty store, or one that was migrated, as of this layout."""
    session.execute(delete(VersionRow))
    session.add(VersionRow(version=STORE_VERSION))
    keep_tally(session, STORE, LAYOUT, TrialTally(STORE_VERSION))


def _run_words(run_id: str) -> str:
    return f"run {run_id}" if run_id else "the store"

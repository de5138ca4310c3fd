"""What is kept of runs beside their trials: rows with their checksums, how many there are, and what lists need.

Nothing here loads a large library: lists of runs are shown at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ajuste.model.error import RunError
from ajuste.store.checks import DamageError, check_of
from ajuste.store.database import Database, Transaction
from ajuste.store.head import HEAD, STORE_VERSION, Head, found_of, head_of, verify_head
from ajuste.store.schema import (
    ColumnRow,
    DigestRow,
    Kept,
    MachineRow,
    RecordedRow,
    ResultsRow,
    RunRow,
    StoredRow,
    SuiteRow,
    TallyRow,
    TrialRow,
    VersionRow,
    found_rows,
    listing,
    put,
    row_at,
)

TRIALS: Final = "trials"
MACHINES: Final = "machines"
RECORDED: Final = "recorded"
RUNS: Final = "runs"
LAYOUT: Final = "layout"
STORE: Final = ""
"""In the place of a run: the tally is of the whole store."""

_BODY: Final = ("named", "resolved", "environment", "stopped_because")
_KEPT_WORDS: Final[dict[type, str]] = {
    TallyRow: "the count",
    ColumnRow: "a packed column",
    DigestRow: "the kept digest",
    ResultsRow: "the kept report",
    SuiteRow: "the record",
}
KINDS: Final[dict[type, str]] = {MachineRow: MACHINES, RecordedRow: RECORDED}
"""How the rows of a small table are counted."""
SMALL: Final = (MachineRow, RecordedRow, DigestRow, ColumnRow, ResultsRow)
"""What is kept of a run beside its trials."""


@dataclass(frozen=True)
class TrialTally:
    """How many rows there are, and the sum of their checksums."""

    rows: int = 0
    total: int = 0

    def plus(self, checks: Iterable[int], minus: Sequence[int] = ()) -> TrialTally:
        added = list(checks)
        return TrialTally(self.rows + len(added) - len(minus), self.total + sum(added) - sum(minus))


def sealed(row: Kept) -> Kept:
    """``row`` of a small table with its checksum."""
    row.check = _check(row)  # type: ignore[attr-defined]
    if isinstance(row, RunRow):
        row.body_check = _body_check(row)
    return row


def _check(row: Any) -> int:
    names = HEAD if isinstance(row, RunRow) else [name for name in row.kinds if name != "check"]
    return check_of(*(getattr(row, name) for name in names))


def _body_check(row: RunRow) -> int:
    return check_of(row.id, *(getattr(row, name) for name in _BODY))


def verified(row: Any) -> Any:
    """``row`` of a small table. Raises DamageError, also where a row that must be there is None."""
    if row is None:
        raise DamageError("a counted run is missing")
    if isinstance(row, RunRow):
        verify_head(*(getattr(row, name) for name in HEAD), row.check)
        if found_of(lambda: _body_check(row)) != row.body_check:
            raise DamageError(f"the record of run {row.id} is damaged: its checksum differs")
    elif found_of(lambda: _check(row)) != row.check:
        what = _KEPT_WORDS.get(type(row), f"an entry of the table {row.table}")
        whose = f"suite {row.id}" if isinstance(row, SuiteRow) else _run_words(row.run_id)
        raise DamageError(f"{what} of {whose} is damaged: its checksum differs")
    return row


_HEADS: Final = f"SELECT {listing((*HEAD, 'check'))} FROM runs"


def heads(transaction: Transaction) -> list[Head]:
    """Of all runs, the one begun last first. Raises DamageError, also where one is missing."""
    found = [head_of(row) for row in transaction.rows(_HEADS)]
    expect_tally(transaction, STORE, RUNS, TrialTally().plus(head.check for head in found))
    return sorted(found, key=lambda head: (head.begun, head.id), reverse=True)


def owners(transaction: Transaction, run_id: str) -> tuple[str, ...]:
    """The runs whose trials a run has: those it is based on, the first one first, and itself. Raises DamageError."""
    found: list[str] = []
    while run_id:
        row = next(iter(transaction.rows(f"{_HEADS} WHERE id = ?", run_id)), None)
        if row is None or run_id in found:
            raise DamageError(f"run {run_id} is missing" if row is None else f"run {run_id} is based on itself")
        found.append(run_id)
        run_id = head_of(row).base
    return tuple(reversed(found))


def all_trials(transaction: Transaction, run_id: str) -> TrialTally:
    """How many trials a run has, with those of the runs that it is based on."""
    counted = [tally(transaction, owner, TRIALS) for owner in owners(transaction, run_id)]
    return TrialTally(sum(one.rows for one in counted), sum(one.total for one in counted))


def all_known(transaction: Transaction, run_id: str) -> tuple[int, int, int]:
    """What the results of a run are of: how many trials, and the sums of the checksums of them and of recordings."""
    trials = all_trials(transaction, run_id)
    recorded = sum(tally(transaction, owner, RECORDED).total for owner in owners(transaction, run_id))
    return trials.rows, trials.total, recorded


def next_turn(transaction: Transaction) -> int:
    """The number of the run that is begun or taken up now: they are counted, because clocks go back."""
    return (transaction.value("SELECT MAX(taken_up) FROM runs") or 0) + 1


def tally(transaction: Transaction, run_id: str, kind: str, *, to_change: bool = False) -> TrialTally:
    """What was counted; ``to_change`` has others who want to change it wait until the end of the transaction. Raises
    DamageError if the run's trials, or the runs, were never counted.
    """
    row = row_at(transaction, TallyRow, run_id, kind, to_change=to_change)
    if row is not None:
        verified(row)
        return TrialTally(row.rows, row.total)
    if kind in (TRIALS, RUNS):
        raise DamageError(f"the count of {_run_words(run_id)} is missing")
    return TrialTally()


def keep_tally(transaction: Transaction, run_id: str, kind: str, counted: TrialTally) -> None:
    """Keep how many trials of a kind a run has."""
    put(transaction, sealed(TallyRow(run_id=run_id, kind=kind, rows=counted.rows, total=counted.total)))


def expect_tally(transaction: Transaction, run_id: str, kind: str, found: TrialTally) -> None:
    """Raises DamageError if other rows were found than were counted."""
    counted = tally(transaction, run_id, kind)
    if counted.rows != found.rows:
        raise DamageError(f"{_run_words(run_id)} has {found.rows} of {counted.rows} {kind}")
    if counted != found:
        raise DamageError(f"the {kind} of {_run_words(run_id)} are damaged")


_ALWAYS: Final = {"taken_up", "answer", "tags", "deleted"}
"""What is no part of what a run measured or said; the answer is kept once, as it was said."""


def change_run(transaction: Transaction, run_id: str, **values: Any) -> None:
    """Change values of a run, and what is counted of it. Raises RunError for what a run that ended has said."""
    row = row_at(transaction, RunRow, run_id, to_change=True)
    if row is None:
        raise DamageError(f"run {run_id} is missing")
    before = verified(row).check
    if row.stopped and not values.keys() <= _ALWAYS:
        raise ended(run_id)
    for name, value in values.items():
        setattr(row, name, value)
    put(transaction, sealed(row))
    if row.check != before:
        keep_tally(
            transaction, STORE, RUNS, tally(transaction, STORE, RUNS, to_change=True).plus([row.check], [before])
        )


def ended(run_id: str) -> RunError:
    """The error that a run has ended."""
    return RunError(f"run {run_id} has ended and cannot change", hint="run the command again to begin another run")


def keep_machine(transaction: Transaction, run_id: str, blocks: Iterable[int], machine: str) -> None:
    """Keep which machine has measured blocks of a run."""
    counted = tally(transaction, run_id, MACHINES, to_change=True)
    for block in blocks:
        earlier = row_at(transaction, MachineRow, run_id, block)
        row = sealed(MachineRow(run_id=run_id, block=block, machine=machine))
        put(transaction, row)
        counted = counted.plus([row.check], [earlier.check] if earlier else [])
    keep_tally(transaction, run_id, MACHINES, counted)


def all_of(transaction: Transaction, table: type[Any], run_id: str, kind: str) -> list[Any]:
    """The rows of a small table that a run has, all of them as they were written."""
    rows = [verified(row) for row in found_rows(transaction, table, "run_id = ?", run_id)]
    expect_tally(transaction, run_id, kind, TrialTally().plus(row.check for row in rows))
    return rows


def keep_suite(transaction: Transaction, suite_id: str, document: str) -> None:
    """Keep the record of a suite."""
    put(transaction, sealed(SuiteRow(id=suite_id, document=document)))


def all_suites(transaction: Transaction) -> list[str]:
    """The records of all suites. Raises DamageError."""
    return [verified(row).document for row in found_rows(transaction, SuiteRow, "1 = 1")]


def size_of_trials(transaction: Transaction, run_id: str) -> int:
    """Bytes of the texts of the trials that a run has measured itself."""
    texts = bytes_of(transaction.database, TrialRow, ("events", "console", "reason", "metrics", "written"))
    return int(transaction.value(f"SELECT SUM({texts}) FROM trials WHERE run_id = ?", run_id) or 0)


def bytes_of(database: Database, table: type[StoredRow], names: Iterable[str]) -> str:
    """How many bytes the values of these columns have together, for a query."""
    return " + ".join(database.octets(name, table.kinds[name]) for name in names)


def forget(transaction: Transaction, run_id: str) -> None:
    """Remove a run and all that is kept of it."""
    check = transaction.value('SELECT "check" FROM runs WHERE id = ?', run_id)
    counted = tally(transaction, STORE, RUNS, to_change=True)
    keep_tally(transaction, STORE, RUNS, counted.plus((), minus=[check]))
    for table in (*SMALL, TallyRow, TrialRow):
        transaction.run(f"DELETE FROM {table.table} WHERE run_id = ?", run_id)
    transaction.run("DELETE FROM runs WHERE id = ?", run_id)


def forget_deleted(transaction: Transaction) -> None:
    """Remove the runs that were deleted, as far as no other run has their trials."""
    while True:
        found = heads(transaction)
        bases = {head.base for head in found}
        unused = [head.id for head in found if head.deleted and head.id not in bases]
        for run_id in unused:
            forget(transaction, run_id)
        if not unused:
            return


def new_layout(transaction: Transaction) -> None:
    """Mark an empty store, or one that was migrated, as of this layout."""
    transaction.run(f"DELETE FROM {VersionRow.table}")
    transaction.run(VersionRow.inserted, STORE_VERSION)
    keep_tally(transaction, STORE, LAYOUT, TrialTally(STORE_VERSION))


def _run_words(run_id: str) -> str:
    return f"run {run_id}" if run_id else "the store"

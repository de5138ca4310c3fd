"""Rows of trials, with their checksums: made of what is kept, and verified before anything is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from pydantic_core import from_json

from ajuste.model.event import Written
from ajuste.model.trial import Slot, Trial
from ajuste.store.checks import UNREADABLE, DamageError, figures_checks, outputs_checks, serialised
from ajuste.store.database import Transaction
from ajuste.store.head import found_of
from ajuste.store.schema import ColumnRow, DigestRow, ResultsRow, TrialRow
from ajuste.store.tallies import TRIALS, keep_tally, tally

DOCUMENTS: Final = ("metrics", "not_supported", "written")
FIGURES: Final = (
    *("block", "position", "attempt", "CAST(warm_up AS INTEGER)", "seed", "status"),
    *(f"CAST({name} AS TEXT)" for name in DOCUMENTS),
    *("configuration", "reason"),
)
"""What ``figures_checks`` takes."""
CHECKED: Final = ", ".join((*FIGURES, '"check"'))
WHOLE: Final = f"{CHECKED}, started, host_seconds, events, console, outputs_check"
PLACE: Final = "block, position, attempt"
_AT: Final = "run_id = ? AND block = ? AND position = ? AND attempt = ?"


def trial_row(run_id: str, trial: Trial) -> dict[str, Any]:
    """A trial as it is kept, its documents as JSON, without its checksums; see ``checked``."""
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
        "metrics": serialised(trial.metrics),
        "not_supported": serialised(trial.not_supported),
        "written": serialised([w.model_dump() for w in trial.written]),
        "events": trial.events,
        "console": trial.console,
        "started": trial.started,
        "host_seconds": trial.host_seconds,
    }


def checked(row: dict[str, Any]) -> dict[str, Any]:
    """``row`` of a trial with its checksums."""
    figures = (
        *(row["block"], row["position"], row["attempt"], int(row["warm_up"]), row["seed"], row["status"]),
        *(row[name] for name in DOCUMENTS),
        *(row["configuration"], row["reason"]),
    )
    (check,) = figures_checks(row["run_id"], [figures])
    (outputs,) = outputs_checks([(check, row["started"], row["host_seconds"], row["events"], row["console"])])
    return {**row, "check": check, "outputs_check": outputs}


def keep_trials(transaction: Transaction, run_id: str, rows: Sequence[dict[str, Any]]) -> None:
    """Keep rows of trials (see ``trial_row``) and count them."""
    complete = [checked(row) for row in rows]
    names = [name for name in TrialRow.kinds if name != "number"]
    transaction.run_each(TrialRow.inserted, [[row[name] for name in names] for row in complete])
    counted = tally(transaction, run_id, TRIALS, to_change=True)
    keep_tally(transaction, run_id, TRIALS, counted.plus(row["check"] for row in complete))


def drop_trials(transaction: Transaction, run_id: str, places: Iterable[tuple[int, int, int]]) -> None:
    """Forget the trials at these places, each a block, a position and an attempt, and count them out."""
    counted = tally(transaction, run_id, TRIALS, to_change=True)
    checks = []
    for place in places:
        checks += [check for (check,) in transaction.rows(f'SELECT "check" FROM trials WHERE {_AT}', run_id, *place)]
        transaction.run(f"DELETE FROM trials WHERE {_AT}", run_id, *place)
    keep_tally(transaction, run_id, TRIALS, counted.plus((), minus=checks))
    for kept in (ColumnRow, DigestRow, ResultsRow):
        transaction.run(f"DELETE FROM {kept.table} WHERE run_id = ?", run_id)


def trial_at(transaction: Transaction, owners: Iterable[str], place: tuple[int, int, int]) -> Trial | None:
    """The trial that one of these runs has measured there. Raises DamageError."""
    for owner in owners:
        for row in transaction.rows(f"SELECT {WHOLE} FROM trials WHERE {_AT}", owner, *place):
            return whole_trial(owner, row)
    return None


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

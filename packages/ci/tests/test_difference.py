"""The additional iterations of a long run."""

from __future__ import annotations

import pytest

from ajuste.analysis.pairs import Clean, clean_trials
from ajuste.model.error import RunError
from ajuste.model.measurements import Gathering
from ajuste_ci.difference import subtract

NAMES = ("base", "head", "base-short", "head-short")


def trials(rows: list[tuple[int, str, float]]) -> Clean:
    gathering = Gathering(read_written=tuple, read_not_supported=dict)
    count = len(rows)
    gathering.extend(
        block=[block for block, _, _ in rows],
        position=list(range(count)),
        attempt=[0] * count,
        seed=[0] * count,
        warm_up=[False] * count,
        metrics=[{"instructions": value} for _, _, value in rows],
        configuration=[name for _, name, _ in rows],
        status=["ok"] * count,
        reason=[""] * count,
        written=[()] * count,
        not_supported=[()] * count,
    )
    return clean_trials(gathering.measurements())


def test_what_both_runs_do_once_is_gone_and_only_whole_blocks_count() -> None:
    rows = [(block, name, 0.0) for block in range(3) for name in NAMES]
    starts = {"base": 5_000_000, "head": 7_000_000}
    work = {"base": 100, "head": 150, "base-short": 50, "head-short": 75}
    rows = [(block, name, starts[name[:4]] + 1000 * block + work[name]) for block, name, _ in rows]
    clean = subtract(trials(rows[:-1]), ("base", "head"), ("instructions",))
    column = clean.measured.metrics["instructions"]
    assert list(column[clean.of("base")]) == [50, 50, 50]
    assert list(column[clean.of("head")]) == [75, 75], "block 3 lacks the short run of the head"


def test_iterations_that_do_nothing_are_an_error() -> None:
    rows = [(0, name, 7.0) for name in NAMES]
    with pytest.raises(RunError, match="more iterations have no more instructions"):
        subtract(trials(rows), ("base", "head"), ("instructions",))

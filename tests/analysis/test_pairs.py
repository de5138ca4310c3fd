"""Clean trials and pairs, against the same said in plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ajuste.analysis.pairs import clean_trials, pairs
from ajuste.model.measurements import measurements
from ajuste.model.trial import Slot, Trial

NAMES = ("a", "b", "c")


def trial(block: int, name: str, attempt: int, status: str, warm_up: bool, metrics: dict[str, float]) -> Trial:
    slot = Slot(block=block, position=NAMES.index(name), configuration=name, seed=1, warm_up=warm_up)
    return Trial.model_validate({"slot": slot, "attempt": attempt, "status": status, "metrics": metrics})


kept = st.lists(
    st.builds(
        trial,
        st.integers(0, 6),
        st.sampled_from(NAMES),
        st.integers(0, 2),
        st.sampled_from(["ok", "ok", "ok", "flagged", "failed"]),
        st.sampled_from([False, False, False, True]),
        st.dictionaries(st.sampled_from(["time", "rate"]), st.floats(-9, 9)),
    ),
    max_size=40,
    unique_by=lambda one: (one.slot.block, one.slot.position, one.attempt),
)


def by_cell(trials: list[Trial]) -> dict[tuple[int, str], Trial]:
    found: dict[tuple[int, str], Trial] = {}
    for one in sorted(trials, key=lambda t: t.attempt):
        if one.status == "ok" and not one.slot.warm_up:
            found.setdefault((one.slot.block, one.slot.configuration), one)
    return found


@given(kept)
def test_of_each_cell_the_first_clean_attempt_counts(trials: list[Trial]) -> None:
    clean = clean_trials(trials)
    cells = by_cell(trials)
    assert len(clean) == len(cells)
    for name in NAMES:
        own = [one for (_, configuration), one in sorted(cells.items()) if configuration == name]
        rows = clean.of(name)
        assert [int(clean.measured.block[row]) for row in rows] == [one.slot.block for one in own]
        assert [clean.measured.figures(int(row)) for row in rows] == [one.metrics for one in own]
        values = [one.metrics["time"] for one in own if "time" in one.metrics]
        assert clean.values(name, "time").tolist() == values


@given(kept)
def test_pairs_are_the_blocks_that_have_both_figures(trials: list[Trial]) -> None:
    cells = by_cell(trials)
    blocks = sorted({block for block, _ in cells})
    wanted = [
        (first.metrics["rate"], second.metrics["rate"])
        for block in blocks
        if (first := cells.get((block, "a"))) and (second := cells.get((block, "c")))
        if "rate" in first.metrics and "rate" in second.metrics
    ]
    found = pairs(clean_trials(trials), "a", "c", "rate")
    assert list(zip(found.baseline.tolist(), found.other.tolist(), strict=True)) == wanted


def test_what_was_made_ready_once_is_not_made_again(trials: Any) -> None:
    columns = measurements(trials({"a": [1.0, 2.0], "b": [3.0, 4.0]}))
    clean = clean_trials(columns)
    assert clean_trials(clean) is clean
    assert clean.measured is columns
    assert np.array_equal(pairs(clean, "b", "a", "elapsed").other, [1.0, 2.0])
    assert len(pairs(clean, "a", "nothing", "elapsed")) == 0
    assert len(pairs(clean, "a", "b", "nothing")) == 0

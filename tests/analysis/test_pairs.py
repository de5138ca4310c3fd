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


trial_lists = st.lists(
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
    unique_by=lambda drawn: (drawn.slot.block, drawn.slot.position, drawn.attempt),
)


def by_cell(trials: list[Trial]) -> dict[tuple[int, str], Trial]:
    first_clean: dict[tuple[int, str], Trial] = {}
    for candidate in sorted(trials, key=lambda t: t.attempt):
        if candidate.status == "ok" and not candidate.slot.warm_up:
            first_clean.setdefault((candidate.slot.block, candidate.slot.configuration), candidate)
    return first_clean


@given(trial_lists)
def test_of_each_cell_the_first_clean_attempt_counts(trials: list[Trial]) -> None:
    clean = clean_trials(trials)
    cells = by_cell(trials)
    assert len(clean) == len(cells)
    for name in NAMES:
        expected = [trial for (_, configuration), trial in sorted(cells.items()) if configuration == name]
        rows = clean.of(name)
        assert [int(clean.measured.block[row]) for row in rows] == [trial.slot.block for trial in expected]
        assert [clean.measured.figures(int(row)) for row in rows] == [trial.metrics for trial in expected]
        values = [trial.metrics["time"] for trial in expected if "time" in trial.metrics]
        assert clean.values(name, "time").tolist() == values


@given(trial_lists)
def test_pairs_are_the_blocks_that_have_both_figures(trials: list[Trial]) -> None:
    cells = by_cell(trials)
    blocks = sorted({block for block, _ in cells})
    wanted = [
        (first.metrics["rate"], second.metrics["rate"])
        for block in blocks
        if (first := cells.get((block, "a"))) and (second := cells.get((block, "c")))
        if "rate" in first.metrics and "rate" in second.metrics
    ]
    paired = pairs(clean_trials(trials), "a", "c", "rate")
    assert list(zip(paired.baseline.tolist(), paired.other.tolist(), strict=True)) == wanted


def test_what_was_made_ready_once_is_not_made_again(trials: Any) -> None:
    columns = measurements(trials({"a": [1.0, 2.0], "b": [3.0, 4.0]}))
    clean = clean_trials(columns)
    assert clean_trials(clean) is clean
    assert clean.measured is columns
    assert np.array_equal(pairs(clean, "b", "a", "elapsed").other, [1.0, 2.0])
    assert len(pairs(clean, "a", "nothing", "elapsed")) == 0
    assert len(pairs(clean, "a", "b", "nothing")) == 0

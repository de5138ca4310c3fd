"""Blocks of an ablation, and what they hold."""

from __future__ import annotations

from ajuste.design.combinations import subset_name
from ajuste_stats.subsets import subsets


def test_what_is_tried_is_called_by_what_there_is_of_it_or_by_what_is_missing() -> None:
    names = ["a", "b", "c", "d"]
    subset_names = {subset_name(subset, names) for subset in subsets(4)}
    assert len(subset_names) == 16
    assert {"nothing of it", "the whole", "only a", "only a, b", "all but d"} <= subset_names

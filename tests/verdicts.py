"""Verdicts as tests of what follows from them need them."""

from __future__ import annotations

from typing import Any

from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste_stats.terms import Word


def verdict(name: str = "knob=2", word: Word = "undecided", **more: Any) -> Verdict:
    """Return the verdict of ``name`` on the elapsed time, from five blocks; ``more`` replaces fields."""
    fields: dict[str, Any] = dict(
        metric="elapsed",
        unit="s",
        direction="lower",
        scale="ratio",
        estimate=1.0,
        low=0.9,
        high=1.1,
        level=0.95,
        blocks=5,
        reason="",
    )
    return Verdict(configuration=name, verdict=word, **(fields | more))


def decided(**more: Any) -> Results:
    """A run that is decided, with little in it; ``more`` replaces fields."""
    fields: dict[str, Any] = dict(
        study="s",
        title="",
        question="",
        answer="",
        run="R",
        seed=1,
        clock="wall",
        digest="",
        stopped="decided",
        stopped_because="",
        level=0.95,
        smallest_effect=0.05,
        correction="",
        blocks=5,
        verdicts=(),
        configurations=(),
        factors=(),
        metrics=(),
        trials=(),
    )
    return Results(**(fields | more))

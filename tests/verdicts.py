"""Verdicts as tests of what follows from them need them."""

from __future__ import annotations

from typing import Any

from ajuste.model.verdict import Verdict, Word


def verdict(name: str = "knob=2", word: Word = "undecided", **more: Any) -> Verdict:
    """Of ``name`` on the elapsed time, from five blocks; ``more`` replaces fields."""
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

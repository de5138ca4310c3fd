"""The words of a verdict and how they look: a sign, a colour role, and what they mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ajuste.model.verdict import Finding, Word
from ajuste.report.format import number


@dataclass(frozen=True)
class Look:
    """``sign`` tells the words apart without colour; ``style`` is for the terminal, ``meaning`` for the legend."""

    sign: str
    style: str
    meaning: str


LOOKS: Final[dict[Word, Look]] = {
    "improves": Look("▲", "bold green", "better than the baseline by an interval that excludes no effect"),
    "worsens": Look("▼", "bold red", "worse than the baseline by an interval that excludes no effect"),
    "differs": Look("≠", "bold blue", "differs from the baseline; the metric has no better or worse"),
    "equivalent": Look("≈", "cyan", "so close to the baseline that the difference does not matter"),
    "undecided": Look("?", "yellow", "what was measured does not tell"),
}
ORDER: Final[tuple[Word, ...]] = ("improves", "worsens", "differs", "equivalent", "undecided")


def verdict_text(verdict: Finding, smallest_effect: float) -> str:
    """``improves``, ``equivalent within ±5 %``, ``undecided, about 12 more blocks``."""
    if verdict.verdict == "equivalent":
        return f"equivalent within {effect_band(smallest_effect)}"
    if verdict.depends_on_machine:
        return "depends on the machine"
    if verdict.verdict == "undecided" and verdict.more_blocks is not None:
        noun = "block" if verdict.more_blocks == 1 else "blocks"
        return f"undecided, about {verdict.more_blocks:,} more {noun}"
    return verdict.verdict


def effect_band(smallest_effect: float) -> str:
    """``±5 %``; ``±0.5 %``."""
    percent = 100 * smallest_effect
    decimals = next((d for d in range(3) if abs(round(percent, d) - percent) < 1e-9), 2)
    return f"±{number(percent, decimals)} %"


def tally(verdicts: Iterable[Finding]) -> list[tuple[Word, int]]:
    """How often each word was said, in the order of ``ORDER``; words that were not said are left out."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    return [(word, counts[word]) for word in ORDER if counts[word]]

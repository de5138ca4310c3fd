"""Winners of a live experiment that may stay."""

from __future__ import annotations

import pytest

from ajuste.model.verdict import Verdict
from ajuste_live.adoption import NotProvedError, proved_winner
from ajuste_stats.terms import Word


def verdict(configuration: str, metric: str, word: Word) -> Verdict:
    return Verdict(
        configuration=configuration,
        metric=metric,
        unit="s",
        direction="lower",
        scale="ratio",
        verdict=word,
        estimate=0.8,
        low=0.7,
        high=0.9,
        level=0.95,
        blocks=9,
        reason="",
    )


def test_the_one_that_improves_and_is_otherwise_the_same_may_stay() -> None:
    verdicts = [verdict("new", "took", "improves"), verdict("new", "cpu", "equivalent")]
    others = [verdict("worse", "took", "worsens"), verdict("worse", "cpu", "undecided")]
    assert proved_winner([*others, *verdicts], {"worse": "guard took < 1s"}) == "new"


def test_a_cost_that_comes_later_is_the_reason_why_nothing_stays() -> None:
    later = verdict("new", "took", "undecided").model_copy(update={"reverses": True, "reason": "a cost comes later"})
    with pytest.raises(NotProvedError, match="new: a cost comes later"):
        proved_winner([later], {})


@pytest.mark.parametrize(
    ("words", "broken", "why"),
    [
        ({"new": ("equivalent", "undecided")}, {}, "no configuration is proved"),
        ({"new": ("improves", "undecided")}, {}, "cpu undecided"),
        ({"new": ("improves", "worsens")}, {}, "cpu worsens"),
        ({"new": ("improves", "equivalent"), "other": ("improves", "equivalent")}, {}, "new and other improve"),
        ({"new": ("improves", "equivalent")}, {"new": "guard took < 1s"}, "broke a guard"),
    ],
)
def test_nothing_stays_that_is_not_proved(
    words: dict[str, tuple[Word, Word]], broken: dict[str, str], why: str
) -> None:
    verdicts = [verdict(name, m, w) for name, both in words.items() for m, w in zip(("took", "cpu"), both, strict=True)]
    with pytest.raises(NotProvedError, match=why):
        proved_winner(verdicts, broken)

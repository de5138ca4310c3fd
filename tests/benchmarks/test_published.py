"""Published results asked again: what agrees, what misses, and the table of both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from benchmarks.published import CLAIMS, Answer, table

HZ = next(claim for claim in CLAIMS if claim.name == "published-hz")


def answer(low: float | None, high: float | None, mechanism: str = "688 | 68 interrupts", **more: Any) -> Answer:
    fields = {"scale": "ratio", "unit": "s", "estimate": 1.004, "low": low, "high": high, "verdict": "undecided"}
    return Answer(HZ, "s", {"a": 1.0, "b": 1.004}, fields | more, mechanism)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(1.003, 1.005, "agrees"), (1.003, None, "agrees"), (0.99, 1.005, "misses: undecided")],
)
def test_a_result_agrees_where_the_interval_has_the_published_sign_alone(
    low: float | None, high: float | None, outcome: str
) -> None:
    assert answer(low, high).outcome == outcome


def test_a_miss_is_called_one_with_its_reason() -> None:
    assert answer(0.9, 0.95).outcome == "misses: the other sign"
    assert "does not name the mechanism" in answer(1.003, 1.005, "").outcome
    difference = replace(answer(1.0, 2.0), verdict={**answer(1.0, 2.0).verdict, "scale": "difference"})
    assert difference.sign == 1


def test_the_table_has_claim_source_effect_and_mechanism() -> None:
    text = table([answer(1.003, 1.005), answer(0.99, 1.005)])
    assert "1 of 2 agree" in text
    first, second = (line for line in text.splitlines() if HZ.link in line)
    assert "| higher | +0.4 % (+0.3 % to +0.5 %) |" in first
    assert "688 / 68 interrupts" in first
    assert "misses: undecided" in second
    assert "ajuste compare --kernel build:debian:6.1+HZ_100=y,build:debian:6.1+HZ_1000=y" in text
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS) == 6

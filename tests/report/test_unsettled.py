"""Verdicts that are not settled, in a report."""

from __future__ import annotations

from typing import Any

import pytest

from ajuste.model.continuation import Continuation
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results, Summary
from ajuste.model.trial import Factor
from ajuste.report.document import CommandBlock, Fact, Facts
from ajuste.report.format import result_labels
from ajuste.report.headline import unsettled_sections
from verdicts import decided, verdict

SUMMARY = Summary(n=6, mean=10.0, median=10.0, sd=1.0, sem=0.4, minimum=9.0, maximum=11.0)
COMMAND = "ajuste compare --blocks 5..40 -- a -- b"


def results(*verdicts: Any, **more: Any) -> Results:
    names = ["knob=1", *dict.fromkeys(verdict.configuration for verdict in verdicts)]
    fields: dict[str, Any] = dict(
        stopped="budget",
        verdicts=tuple(verdicts),
        metrics=(Metric(name="elapsed", title="elapsed time", unit="s", direction="lower"),),
        factors=(Factor(name="knob", levels=tuple(name[5:] for name in names), baseline="1"),),
        configurations=tuple(
            Measured(name=name, levels={"knob": name[5:]}, baseline=name == "knob=1", metrics={"elapsed": SUMMARY})
            for name in names
        ),
        continuation=Continuation(command=COMMAND, seconds_per_block=30.0),
    )
    return decided(**(fields | more))


def facts(unsettled: Results) -> dict[str, Fact]:
    (section,) = unsettled_sections(unsettled, result_labels(unsettled))
    (block,) = (block for block in section.blocks if isinstance(block, Facts))
    return {fact.name: fact for fact in block.facts}


def test_it_says_what_is_excluded_how_long_it_takes_and_how_to_go_on() -> None:
    unsettled = results(verdict(low=0.8, high=1.153, more_blocks=10))
    texts = facts(unsettled)
    assert "−20.0 % to +15.3 %" in texts["Excluded"].text
    assert texts["Still needed"].text.startswith("about 10 more blocks, 5 min ")
    assert "--min-effect 26%" in texts["Decided now"].text  # 1/0.8 is 25 %, which must lie inside.
    (section,) = unsettled_sections(unsettled, result_labels(unsettled))
    assert [block.lines for block in section.blocks if isinstance(block, CommandBlock)] == [(COMMAND,)]


def test_several_share_the_longest_way() -> None:
    many = [verdict(f"knob={level}", low=0.9, high=1.1, more_blocks=level) for level in range(2, 9)]
    texts = facts(results(*many))
    assert len(texts["Excluded"].items) == 4
    assert "8 more blocks" in texts["Still needed"].text


def test_differences_are_shares_of_the_baseline() -> None:
    unsettled = results(verdict(scale="difference", estimate=0.1, low=-0.5, high=1.04, more_blocks=10))
    assert "--min-effect 11%" in facts(unsettled)["Decided now"].text


def test_where_nothing_is_known_nothing_is_promised() -> None:
    texts = facts(results(verdict(estimate=None, low=None, high=None), continuation=None))
    assert texts["Excluded"].text == "nothing yet"
    assert texts["Still needed"].text.startswith("unknown")
    assert "Decided now" not in texts


@pytest.mark.parametrize(
    "more", [{"stopped": "irrelevant"}, {"stopped": "failed", "blocks": 0}, {"verdicts": (verdict(word="equivalent"),)}]
)
def test_there_is_none_where_all_is_settled(more: dict[str, Any]) -> None:
    unsettled = results(verdict(), **more)
    assert unsettled_sections(unsettled, result_labels(unsettled)) == ()


WITHHELD = [{"low": 0.98, "high": 1.02}, {"low": 0.8, "high": 0.9}]
"""Intervals that would decide by themselves."""


@pytest.mark.parametrize("more", [{"unseen": 0.31}, {"too_coarse": True}, {"few_trials": True}, *WITHHELD])
def test_no_effect_is_promised_that_more_trials_or_digits_must_show(more: dict[str, Any]) -> None:
    unsettled = results(verdict(**({"low": 0.9, "high": 1.1} | more)))
    assert "Decided now" not in str(unsettled_sections(unsettled, result_labels(unsettled)))


@pytest.mark.parametrize(
    "more",
    [
        *({"too_coarse": True}, {"few_trials": True}, {"low": None, "high": None}, {"old": 0.0}, {"typical": 0.95}),
        *WITHHELD,
    ],
)
def test_it_says_what_is_lacking_besides_blocks(more: dict[str, Any]) -> None:
    assert facts(results(verdict(reason="the figures lack digits", **more)))["Why"].text.endswith("lack digits")
    assert "Why" not in facts(results(verdict(reason="the interval is wide")))

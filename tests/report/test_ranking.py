"""The ranking in the terminal, in Markdown, on the page and in the document."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from ajuste.analysis.pairs import clean_trials
from ajuste.analysis.ranking import rankings
from ajuste.analysis.summary import measured
from ajuste.analysis.verdict import family, judge
from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.trial import Configuration, Factor, Slot, Trial
from ajuste.model.verdict import RANKINGS
from ajuste.report.html import write_report
from ajuste.report.markdown import markdown
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from verdicts import decided

ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower")
SPEED = Metric(name="speed", title="Speed", unit="MiB/s", direction="higher")


def ranked(means: dict[str, float], metric: Metric = ELAPSED, blocks: int = 20, *, of_seeds: bool = False) -> Results:
    generator = np.random.default_rng(5)
    made = [Configuration(name=n, levels={"command": n}, baseline=not place) for place, n in enumerate(means)]
    trials = [
        Trial(
            slot=Slot(block=block, position=(place + block) % len(made), configuration=name, seed=block),
            status="ok",
            metrics={metric.name: mean * float(np.exp(generator.normal(0, 0.01)))},
        )
        for block in range(blocks)
        for place, (name, mean) in enumerate(means.items())
    ]
    clean = clean_trials(trials)
    return decided(
        study="compare",
        title="commands",
        question="Which is best?",
        smallest_effect=0.02,
        blocks=blocks,
        verdicts=judge(made, clean, [metric]),
        rankings=rankings(
            made, clean, [metric], family(made, [metric], 0.95), smallest_effect=0.02, order_matters=not of_seeds
        ),
        configurations=measured(made, clean),
        factors=(Factor(name="command", levels=tuple(means), baseline=next(iter(means))),),
        metrics=(metric,),
        trials=(),
    )


def printed(results: Results, *, verbose: bool = False, width: int = 100) -> str:
    out = io.StringIO()
    print_report(results_report(results), Console(file=out, width=width), verbose=verbose)
    return " ".join(out.getvalue().split())


def test_the_terminal_names_the_winner_and_the_ratios_as_people_say_them() -> None:
    output = printed(ranked({"slow": 0.2, "fast": 0.1, "slower": 0.231}))
    assert "Ranking By elapsed time, fast is best: both others are worse for certain." in output
    assert "Elapsed time: slow takes 1.990 times as long as fast (95 % interval 1.9" in output
    assert "); slower takes 2.302 times as long (2.2" in output
    assert output.count("times as long as fast") == 1


def test_what_is_worse_for_certain_is_not_shown_as_what_may_be_as_good() -> None:
    """A difference that does not matter is *undecided* while too few seeds have shown it."""
    results = ranked({"slow": 0.2, "fast": 0.1, "near": 0.103}, of_seeds=True)
    (ranking,) = RANKINGS.of(results)
    assert ranking.contenders == ("fast",)
    seen = markdown(results_report(results.model_copy(update={"smallest_effect": 0.05})))
    assert "may be as good" not in seen
    assert seen.count("slightly worse") == 1


def test_what_can_be_better_by_less_than_matters_leaves_nothing_open() -> None:
    """Nine seeds are too few for *equivalent*, and yet no figure reaches beyond the band."""
    results = ranked({"plain": 0.2, "pinned": 0.1, "isolated": 0.1002}, blocks=9, of_seeds=True)
    (ranking,) = RANKINGS.of(results)
    assert set(ranking.contenders) == {"pinned", "isolated"}
    results = results.model_copy(update={"smallest_effect": 0.05})
    assert results_report(results).headline.startswith(f"{ranking.winner} cuts elapsed time")


def test_what_cannot_be_told_from_the_winner_is_named() -> None:
    output = printed(ranked({"a": 0.1, "b": 0.1001, "c": 0.2}))
    assert "has the best mean" in output
    assert "cannot be distinguished from it." in output


def test_more_than_four_are_a_table() -> None:
    output = printed(ranked({f"c{place}": 0.1 + place / 100 for place in range(6)}))
    assert "Times the best" in output
    assert "c0 (baseline)" in output
    assert "1.496" in output


def test_higher_is_said_as_much() -> None:
    output = printed(ranked({"a": 100.0, "b": 50.0, "c": 25.0}, SPEED))
    assert "By speed, a is best" in output
    assert "b has 0.50" in output
    assert "times as much as a" in output


def test_too_few_blocks_claim_nothing() -> None:
    output = printed(ranked({"a": 0.1, "b": 0.2, "c": 0.3}, blocks=2))
    assert "a has the best mean so far; there are too few blocks for intervals" in output
    assert "no interval yet" in output


def test_markdown_page_and_document_have_it(tmp_path: Any) -> None:
    results = ranked({"slow": 0.2, "fast": 0.1, "slower": 0.231})
    text = markdown(results_report(results))
    assert "By elapsed time, fast is best" in text
    assert "| Times the best | Interval |" in text
    write_report(results_report(results), tmp_path / "page.html", "x")
    page = (tmp_path / "page.html").read_text()
    assert "By elapsed time, fast is best" in page
    again = Results.model_validate_json(results.model_dump_json())
    assert RANKINGS.of(again)[0].winner == "fast"
    assert [other.configuration for other in RANKINGS.of(again)[0].others] == ["slow", "slower"]


@pytest.mark.parametrize("width", [30, 40, 80])
def test_nothing_is_cut_off(width: int) -> None:
    output = printed(ranked({f"c{place}": 0.1 + place / 100 for place in range(6)}), verbose=True, width=width)
    assert all(f"c{place}" in output for place in range(6))
    assert "1.496" in output


def test_two_have_none() -> None:
    results = ranked({"a": 0.1, "b": 0.2})
    assert RANKINGS.of(results) == ()
    assert results_report(results).section("ranking") is None

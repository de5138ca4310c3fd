"""The line of a metric: all means, and the effects that they give."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from ajuste.analysis.pairs import clean_trials
from ajuste.analysis.summary import measured
from ajuste.analysis.verdict import judge
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Factor, Slot, Trial
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from verdicts import decided

ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower")
BLOCKS = 12


def test_an_effect_over_fewer_blocks_is_beside_the_baseline_that_gives_it() -> None:
    """The machine is slow from block 6 on, when b was decided: c stands beside a slower baseline than b."""
    values = {"a": 1.0, "b": 0.5, "c": 0.8}
    made = [Configuration(name=name, levels={"kind": name}, baseline=name == "a") for name in values]
    trials = [
        Trial(
            slot=Slot(block=block, position=(place + block) % 3, configuration=name, seed=block),
            status="ok",
            metrics={"elapsed": value * (1 if block < 6 else 1.5) * (1 + 0.001 * (block % 2))},
        )
        for block in range(BLOCKS)
        for place, (name, value) in enumerate(values.items())
        if name != "b" or block < 6
    ]
    clean = clean_trials(trials)
    results = decided(
        title="T",
        blocks=BLOCKS,
        verdicts=judge(made, clean, (ELAPSED,)),
        configurations=measured(made, clean),
        factors=(Factor(name="kind", levels=tuple(values), baseline="a"),),
        metrics=(ELAPSED,),
    )
    out = io.StringIO()
    print_report(results_report(results), Console(file=out, width=300))
    text = " ".join(out.getvalue().split())
    line = text[text.index("Elapsed time: ") :]
    baseline, b, c = (float(figure) for figure in re.findall(r"([\d.]+) s with", line)[:3])
    assert b / baseline == pytest.approx(0.5, abs=0.01)
    (old,) = re.findall(r"with c \(−20\.00 % from ([\d.]+) s", line)
    assert c / float(old) == pytest.approx(0.8, abs=0.01)
    assert float(old) > 1.1 * baseline

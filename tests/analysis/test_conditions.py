"""Settings are judged at each level of what is no choice: against the baseline there, in blocks that hold both."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from ajuste.analysis.pairs import clean_trials
from ajuste.analysis.ranking import rankings
from ajuste.analysis.verdict import family, judge
from ajuste.design.blocks import members
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Trial
from ajuste_analyse.three_sigma import three_sigma
from verdicts import verdict

Build = Callable[..., list[Trial]]
TIMES = {"0": {"alone": 1.0, "beside": 4.0}, "10": {"alone": 1.0, "beside": 8.0}, "19": {"alone": 1.0, "beside": 2.0}}


@pytest.fixture
def made() -> list[Configuration]:
    return [
        Configuration(
            name=f"nice={nice} load={load}",
            levels={"nice": nice, "load": load},
            baseline=(nice, load) == ("0", "alone"),
            against="nice=0 load=beside" if load == "beside" and nice != "0" else "",
        )
        for nice, load in product(TIMES, ("alone", "beside"))
    ]


@pytest.fixture
def clean(made: list[Configuration], trials: Build) -> list[Trial]:
    return trials(
        {
            c.name: [TIMES[c.levels["nice"]][c.levels["load"]] * (1 + (block * 7 % 5) / 1000) for block in range(30)]
            for c in made
        }
    )


def test_each_is_compared_with_the_baseline_of_its_condition(
    made: list[Configuration], clean: list[Trial], elapsed: Metric
) -> None:
    verdicts = judge(made, clean, [elapsed])
    assert {v.configuration: (v.against, v.verdict) for v in verdicts} == {
        "nice=10 load=alone": ("", "equivalent"),
        "nice=10 load=beside": ("nice=0 load=beside", "worsens"),
        "nice=19 load=alone": ("", "equivalent"),
        "nice=19 load=beside": ("nice=0 load=beside", "improves"),
    }
    assert [v.estimate for v in verdicts if v.against] == pytest.approx([2.0, 0.5])
    assert family(made, [elapsed], 0.95).comparisons == 4


def test_each_level_of_a_condition_has_its_ranking(
    made: list[Configuration], clean: list[Trial], elapsed: Metric
) -> None:
    ranked = rankings(made, clean_trials(clean), [elapsed], family(made, [elapsed], 0.95), smallest_effect=0.05)
    by_reference = {ranking.reference: ranking for ranking in ranked}
    assert list(by_reference) == ["nice=0 load=alone", "nice=0 load=beside"]
    assert by_reference["nice=0 load=beside"].contenders == ("nice=19 load=beside",)
    assert len(by_reference["nice=0 load=alone"].contenders) == 3


def test_the_rule_of_three_sigma_compares_within_a_condition_too(
    made: list[Configuration], clean: list[Trial], elapsed: Metric
) -> None:
    rows = three_sigma(made, clean, [elapsed], judge(made, clean, [elapsed]), 0.95)
    differ = {row.configuration: row.means_differ for row in rows}
    assert differ["nice=0 load=beside"] is None
    assert differ["nice=10 load=alone"] is False
    assert differ["nice=10 load=beside"] is True


def test_blocks_keep_what_an_open_configuration_is_compared_with(made: list[Configuration]) -> None:
    names = [configuration.name for configuration in made]
    findings = [
        verdict("nice=10 load=alone", "equivalent"),
        verdict("nice=10 load=beside", "undecided", against="nice=0 load=beside"),
    ]
    assert members(names, "nice=0 load=alone", findings) == (
        "nice=0 load=alone",
        "nice=0 load=beside",
        "nice=10 load=beside",
    )

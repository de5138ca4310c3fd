"""A study's design: what suits its factors, and what is said where it does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ajuste.model.error import RequestError
from ajuste.study.schema import Study

Read = Callable[..., Study]

SCREENING = """\
schema = 1
name = "example"
factor = [
  { name = "sched_min_granularity_ns", levels = [750000, 7500000] },
  { name = "nice", levels = [0, 10] },
  { name = "policy", levels = ["other", "batch"] },
  { name = "workload.size", levels = [100, 200] },
  { name = "workload.repetitions", levels = [1, 2] },
]
workload = { kind = "matrix" }
target = { kernel = "debian:5.10" }
analysis = { metrics = ["elapsed"] }
design = { combine = "screening" }
"""


def test_screening_takes_five_factors_of_two_levels(read: Read) -> None:
    study = read(SCREENING)
    assert study.design.combine == "screening"
    assert study.allocation == "all"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("levels = [0, 10]", "levels = [0, 5, 10, 15]"), r"toml:5: factor\[2\]\.levels: nice has 4 levels; screening"),
        (("levels = [0, 10]", "levels = [0, 5, 10]"), r"toml:5: factor\[2\]\.levels: nice has 3 levels"),
        (
            ("levels = [0, 10]", "levels = [0]"),
            r"toml:13: design\.combine: screening is for 5 factors or more.* of "
            "these 4, all combinations are only 16 configurations",
        ),
        (
            ('["elapsed"]', '["elapsed@p95"]'),
            r"toml:12: analysis\.metrics\[1\]: screening does not support quantiles such as elapsed@p95",
        ),
        (
            ('"screening" }', '"screening", allocation = "undecided" }'),
            r"toml:13: design\.allocation: screening requires",
        ),
    ],
)
def test_what_cannot_be_screened_is_refused_with_its_place(read: Read, change: tuple[str, str], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read(SCREENING.replace(*change))


def test_three_levels_are_screened_with_the_baseline_in_the_middle(read: Read) -> None:
    three = SCREENING.replace('["other", "batch"]', '["other", "batch", "idle"], baseline = "batch"')
    for old, new in (
        ("[750000, 7500000]", "[750000, 1500000, 7500000], baseline = 1500000"),
        ("[0, 10]", "[0, 5, 10], baseline = 5"),
        ("[100, 200]", "[100, 150, 200], baseline = 150"),
        ("[1, 2]", "[1, 2, 3], baseline = 2"),
    ):
        three = three.replace(old, new)
    assert read(three).factors[1].baseline_level == "5"
    with pytest.raises(RequestError, match=r"factor\[2\]\.baseline: the baseline of nice is 0; screening requires"):
        read(three.replace("baseline = 5", "baseline = 0"))


@pytest.mark.parametrize(
    ("change", "allocation"),
    [
        (('"screening"', '"all"'), "all"),
        (('"screening"', '"one-at-a-time"'), "undecided"),
        (('"screening"', '"all", allocation = "undecided"'), "undecided"),
        (('"screening"', '"one-at-a-time", allocation = "all"'), "all"),
    ],
)
def test_blocks_stay_complete_where_effects_of_factors_are_computed_from_them(
    read: Read, change: tuple[str, str], allocation: str
) -> None:
    assert read(SCREENING.replace(*change)).allocation == allocation


def test_one_factor_of_several_levels_is_narrowed_down(read: Read) -> None:
    assert read().allocation == "undecided"

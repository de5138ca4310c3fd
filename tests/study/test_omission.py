"""The same study without some levels, as chosen on a command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ajuste.model.error import RequestError
from ajuste.study.overrides import without_levels
from ajuste.study.schema import Study

Read = Callable[..., Study]

LEVELS = "levels = [750000, 7500000]"


def test_a_level_is_left_out_and_the_others_stay(read: Read) -> None:
    study = read((LEVELS, "levels = [750000, 7500000, 75000000]"))
    assert without_levels(study, ["sched_min_granularity_ns=7500000"]).factors[0].levels == ("750000", "75000000")
    assert study.factors[0].levels == ("750000", "7500000", "75000000")


def test_a_level_with_settings_goes_with_what_it_sets(read: Read) -> None:
    settings = '[factor.settings]\n"plain" = {}\n"a, b" = { nice = -20 }\n"c" = { nice = 5 }'
    study = read((f'"sched_min_granularity_ns"\n{LEVELS}', f'"ladder"\n{settings}'))
    factor = without_levels(study, ["ladder = a, b"]).factors[0]
    assert factor.levels == ("plain", "c")
    assert factor.settings == {"plain": {}, "c": {"nice": "5"}}


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("sched_min_granularity_ns", "expected FACTOR=LEVEL"),
        ("=7500000", "expected FACTOR=LEVEL"),
        ("sched_min_granularty_ns=7500000", "did you mean"),
        ("sched_min_granularity_ns=5", "no level '5'; expected one of 750000; 7500000"),
        ("sched_min_granularity_ns=750000", "cannot leave out the baseline"),
    ],
)
def test_what_cannot_be_left_out_names_the_option(read: Read, option: str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        without_levels(read(), [option])
    assert str(caught.value.place) == f"--without {option}"

"""The same study with other levels of a factor, as chosen on a command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.study.overrides import with_factor_levels
from ajuste.study.schema import Study

Read = Callable[..., Study]

LEVELS = "levels = [750000, 7500000]"
SETTINGS = '[factor.settings]\n"plain" = {}\n"a, b" = { nice = -20 }\n"c" = { nice = 5 }'
NAME = "sched_min_granularity_ns"


def changed(study: Study, *options: str) -> Study:
    return with_factor_levels(study, options, catalogue(), str)


@pytest.mark.parametrize(
    ("option", "levels"),
    [
        (f"{NAME}=3ms,30ms", ("3ms", "30ms")),
        (f"{NAME}=1ms..3ms:3", ("1000000", "2000000", "3000000")),
        (f"{NAME} = 7500000", ("7500000",)),
    ],
)
def test_levels_are_replaced(read: Read, option: str, levels: tuple[str, ...]) -> None:
    assert changed(read(), option).factors[0].levels == levels


def test_the_baseline_stays_where_it_is_still_a_level(read: Read) -> None:
    study = read((LEVELS, f"{LEVELS}\nbaseline = 7500000"))
    assert changed(study, f"{NAME}=750000,7500000,75000000").factors[0].baseline_level == "7500000"
    assert changed(study, f"{NAME}=3000000,30000000").factors[0].baseline_level == "3000000"


def test_named_settings_are_chosen_by_their_names(read: Read) -> None:
    study = read((f'"{NAME}"\n{LEVELS}', f'"ladder"\n{SETTINGS}'))
    assert changed(study, "ladder=c,plain").factors[0].levels == ("c", "plain")
    assert changed(study, "ladder=a, b").factors[0].levels == ("a, b",)
    assert changed(study, "ladder=plain; a, b").factors[0].settings == {"plain": {}, "a, b": {"nice": "-20"}}
    with pytest.raises(RequestError, match="no level 'd'; expected some of plain; a, b; c"):
        changed(study, "ladder=d")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (NAME, "expected FACTOR=LEVEL"),
        ("=1,2", "expected FACTOR=LEVEL"),
        ("sched_min_granularty_ns=1ms,2ms", f"did you mean {NAME}"),
        ("nice=0,10", f"has no factor 'nice'; expected one of {NAME}"),
        (f"{NAME}=1ms,abc", "'abc'"),
        (f"{NAME}=1ms,", "empty"),
        (f"{NAME}=1ms..3ms:x", "after a range"),
    ],
)
def test_what_is_wrong_names_the_option(read: Read, option: str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        changed(read(), option)
    assert str(caught.value.place) == f"--set {option}"

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.wording import amount, block_name, change, listed, number, percent, signed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (134.2, "134"),
        (999.4, "999"),
        (999.9, "1,000"),
        (228510, "228,510"),
        (-0.01234, "−0.0123"),
        (-1234.5, "−1,234"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(-1e9, 1e9).filter(lambda v: v == 0 or abs(v) > 1e-3))
def test_numbers_say_what_they_are_to_half_a_percent(value: float) -> None:
    rounded = float(number(value).replace("−", "-").replace(",", ""))
    assert rounded == pytest.approx(value, rel=0.005)
    assert "e" not in number(value)


def test_effects_are_said_as_people_do() -> None:
    assert change(0.877, "ratio", "s") == "−12.3 %"
    assert change(1.0000001, "ratio", "s") == "0.00 %"
    assert change(0.000932, "difference", "s") == change(0.932, "difference", "ms") == "+932 µs"
    assert change(-17_067, "difference", "B") == "−16.7 KiB"
    assert change(-134, "difference", "") == "−134"
    assert change(None, "ratio", "s") == "?"
    assert signed(0) == "0"
    assert percent(0.05) == "5 %"
    assert percent(1 - 0.05 / 3) == "98.33 %"


def test_a_ratio_is_a_factor_where_percentages_say_little() -> None:
    assert [change(ratio, "ratio", "s") for ratio in (5.11, 0.0021, 1.87)] == ["×5.11", "×0.00210", "+87 %"]
    assert change(3.0, "ratio", "s", like=1.5) == "+200 %"


def test_an_amount_has_the_unit_that_suits_it() -> None:
    amounts = [amount(value, unit) for value, unit in ((119_727_718, "B"), (900, "B"), (0.0129, "s"), (19_208, "1/s"))]
    assert amounts == ["114 MiB", "900 B", "12.9 ms", "19,208/s"]


def test_blocks_are_counted_from_the_first_that_counts() -> None:
    assert [block_name(block, 1) for block in range(3)] == ["warm-up", "block 1", "block 2"]


def test_lists_read_like_lists() -> None:
    assert [listed(list("abc"[:n])) for n in range(4)] == ["", "a", "a and b", "a, b and c"]

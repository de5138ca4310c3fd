"""Numbers and units as people read them."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ajuste.report.format import (
    common_format,
    decimals_for,
    duration,
    level_text,
    number,
    signed,
    significant,
    spread_percent,
)

figures = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False)


def read_back(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-").replace("+", ""))


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (228510.4, 0, "228,510"),
        (-0.0004, 2, "0.00"),
        (-12.345, 1, "−12.3"),
        (math.inf, 1, "∞"),
        (math.nan, 1, "not a number"),
    ],
)
def test_a_number_has_thousands_a_real_minus_and_no_negative_zero(value: float, decimals: int, text: str) -> None:
    assert number(value, decimals) == text


@given(figures, st.integers(min_value=0, max_value=9))
def test_a_number_is_exact_to_half_its_last_decimal(value: float, decimals: int) -> None:
    assert math.isclose(read_back(number(value, decimals)), value, rel_tol=1e-12, abs_tol=0.51 * 10**-decimals)


def test_a_signed_zero_has_no_sign() -> None:
    assert [signed(0.0, 1), signed(0.04, 1), signed(0.06, 1), signed(-0.06, 1)] == ["0.0", "0.0", "+0.1", "−0.1"]


@given(st.floats(min_value=1e-9, max_value=1e9), st.integers(min_value=1, max_value=6))
@example(3.717553378804124e-09, 5)
def test_significant_keeps_so_many_digits(value: float, digits: int) -> None:
    assert math.isclose(read_back(significant(value, digits)), value, rel_tol=10.0 ** (1 - digits))


@pytest.mark.parametrize(
    ("values", "unit", "texts"),
    [
        ([0.0021, 0.0019], "s", ["2.100 ms", "1.900 ms"]),
        ([1840.25, 912.0], "ms", ["1.840 s", "0.912 s"]),
        ([750_000.0, 900_000_000.0], "ns", ["0.75 ms", "900.00 ms"]),
        ([2_097_152.0, 1_048_576.0], "bytes", ["2 MiB", "1 MiB"]),
        ([3_456_789_012.0], "", ["3.457 billion"]),
        ([135.0, 1.0], "", ["135", "1"]),
        ([0.0, 0.0], "s", ["0 s", "0 s"]),
        ([512.5], "KFLOPS", ["512.5 KFLOPS"]),
    ],
)
def test_figures_of_a_row_share_the_unit_that_suits_the_largest(
    values: list[float], unit: str, texts: list[str]
) -> None:
    style = common_format(values, unit)
    assert [style.with_unit(value) for value in values] == texts


@given(st.lists(st.floats(min_value=1e-7, max_value=1e6), min_size=1, max_size=6), st.sampled_from(["ns", "ms", "s"]))
def test_scaling_never_changes_the_quantity(values: list[float], unit: str) -> None:
    seconds = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
    style = common_format(values, unit)
    for value in values:
        assert math.isclose(style.scaled(value) * seconds[style.unit], value * seconds[unit], rel_tol=1e-9)


@pytest.mark.parametrize(
    ("values", "sd", "texts"),
    [([0.00326, 0.00232], 0.013, ["3.26", "2.32"]), ([0.1719, 0.0341], 0.001, ["171.9", "34.1"])],
)
def test_figures_beside_a_percentage_have_the_digits_that_give_it(
    values: list[float], sd: float, texts: list[str]
) -> None:
    fmt = common_format(values, "s", [sd]).at_least(3, values)
    assert [fmt.text(value) for value in values] == texts


def test_the_spread_decides_how_many_decimals_mean_something() -> None:
    assert decimals_for([2.0, 1.875], [1.07, 0.99]) == 2
    assert decimals_for([2.5201, 2.5203], [0.0001]) == 4
    assert decimals_for([123.456789], [12.0]) == 0
    assert decimals_for([135.0, 68.0], []) == 0


@pytest.mark.parametrize(
    ("sd", "mean", "text"),
    [
        (0.0, 2.5, "± 0 %"),
        (1e-16, 2.5, "± 0 %"),
        (0.009, 2.5, "± 0.36 %"),
        (0.05, 2.5, "± 2.0 %"),
        (1.0, 2.5, "± 40 %"),
        (1e-5, 2.5, "± <0.01 %"),
        (1.0, 0.0, "–"),
    ],
)
def test_a_spread_is_a_percentage_of_the_mean(sd: float, mean: float, text: str) -> None:
    assert spread_percent(sd, mean) == text


@pytest.mark.parametrize(
    ("level", "unit", "text"),
    [
        ("750000", "ns", "750 µs"),
        ("7500000", "ns", "7.5 ms"),
        ("3000000000", "ns", "3 s"),
        ("1234567", "ns", "1,234,567 ns"),
        ("-1", "us", "−1 us"),
        ("0", "ns", "0 ns"),
        ("3000", "centisecs", "30 s"),
        ("0", "centisecs", "0 centisecs"),
        ("65536", "bytes", "64 KiB"),
        ("-15", "", "−15"),
        ("fifo", "ns", "fifo"),
        ("4", "", "4"),
    ],
)
def test_a_level_is_said_shortly_but_exactly(level: str, unit: str, text: str) -> None:
    assert level_text(level, unit) == text


@given(st.integers(min_value=1, max_value=10**12))
@example(999_999_999_999)
@example(999_999_999)
def test_a_level_in_nanoseconds_can_be_read_back(level: int) -> None:
    match = re.fullmatch(r"([\d,.]+) (ns|µs|ms|s)", level_text(str(level), "ns"))
    assert match
    factor = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9}[match[2]]
    assert round(read_back(match[1]) * factor) == level


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (-3, "0 s")]
)
def test_a_duration_is_said_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text

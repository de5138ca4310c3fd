"""Numbers with the units that people use, exactly or not at all."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.catalogue.level import WrongStep, check_level, whole_number
from ajuste.model.error import RequestError
from entries import entry, place

SECONDS = {"ns": Fraction(1, 10**9), "µs": Fraction(1, 10**6), "ms": Fraction(1, 1000), "centisecs": Fraction(1, 100)}
TIMES = SECONDS | {"s": Fraction(1), "us": SECONDS["µs"]}


def number(name: str = "vm.x", unit: str = "", kind: str = "integer", **fields: Any) -> Any:
    properties = dict(unit=unit, type=kind, minimum=0, maximum=2**63 - 1) | fields
    return entry(name, where=place("sysctl", "/proc/sys/vm/x"), **properties)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("64MiB", "bytes", 64 * 2**20),
        ("64M", "bytes", 64 * 2**20),
        ("64MB", "bytes", 64_000_000),
        ("1.5 GiB", "MiB", 1536),
        ("1GiB", "KiB", 2**20),
        ("20%", "%", 20),
        ("1.5ms", "µs", 1500),
        ("30s", "centisecs", 3000),
        ("0.5 s", "ms", 500),
        ("2min", "s", 120),
        ("2.4GHz", "kHz", 2_400_000),
        ("100MiB/s", "MiB/s", 100),
        ("7", "pages", 7),
        ("7 pages", "pages", 7),
        ("-5", "", -5),
        ("64MiB", "ms", None),
        ("20%", "", None),
        ("20ms", "", None),
        ("0.5", "ms", None),
        ("ms", "ms", None),
        ("1e3", "ms", None),
        ("", "ms", None),
        ("1 2", "ms", None),
        ("٣", "ms", None),
    ],
)
def test_a_quantity_in_the_unit_of_the_tunable(text: str, unit: str, value: Any) -> None:
    assert whole_number(text, unit) == value


def test_a_quantity_between_two_steps_says_the_step() -> None:
    with pytest.raises(WrongStep):
        whole_number("1500us", "centisecs")
    with pytest.raises(RequestError, match="steps of 10 ms"):
        check_level(number(unit="centisecs"), "1500us")
    with pytest.raises(RequestError, match="steps of 1 MiB"):
        check_level(number(unit="MiB"), "512KiB")


@given(st.integers(0, 10**6), st.sampled_from(sorted(TIMES)), st.sampled_from(sorted(TIMES)))
def test_a_time_is_either_exact_or_refused(count: int, given_unit: str, unit: str) -> None:
    exact = count * TIMES[given_unit] / TIMES[unit]
    if exact.denominator == 1:
        assert check_level(number(unit=unit), f"{count}{given_unit}") == str(exact)
    else:
        with pytest.raises(RequestError, match="steps of"):
            check_level(number(unit=unit), f"{count}{given_unit}")


@given(st.lists(st.integers(0, 2**31 - 1), min_size=3, max_size=3))
def test_several_integers_are_one_value_however_they_are_spaced(numbers: list[int]) -> None:
    tunable = number(kind="integers", count=3)
    text = " ".join(map(str, numbers))
    assert check_level(tunable, "\t ".join(map(str, numbers))) == text
    assert check_level(tunable, text) == text


@pytest.mark.parametrize("text", ["4096 131072", "1 2 3 4", "1,2,3", "", "1 2 x", "1 2 -3"])
def test_the_wrong_number_of_integers_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match=r"vm\.x"):
        check_level(number(kind="integers", count=3), text)


def test_several_integers_have_units_and_special_words() -> None:
    tunable = number(kind="integers", count=2, unit="bytes", special={"max": "no limit"})
    assert check_level(tunable, "4KiB max") == "4096 max"
    assert check_level(number(unit="bytes", special={"max": "no limit"}), "max") == "max"


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("0", "00000001"),
        ("3", "00000008"),
        ("0-3,8", "0000010f"),
        ("0xF", "0000000f"),
        ("0000000f", "0000000f"),
        ("32", "00000001,00000000"),
        ("00000001,00000000", "00000001,00000000"),
    ],
)
def test_a_mask_is_given_as_a_list_of_cpus_or_in_hexadecimal(text: str, mask: Any) -> None:
    tunable = entry("vm.x", type="cpu-mask", where=place("sysfs", "/sys/x"))
    assert check_level(tunable, text) == mask


@given(st.sets(st.integers(0, 1023), min_size=1))
def test_a_mask_has_a_bit_for_each_cpu_and_is_read_again(cpus: list[int]) -> None:
    tunable = entry("vm.x", type="cpu-mask", where=place("sysfs", "/sys/x"))
    mask = check_level(tunable, ",".join(map(str, cpus)))
    assert int(mask.replace(",", ""), 16) == sum(2**cpu for cpu in cpus)
    assert check_level(tunable, mask) == mask

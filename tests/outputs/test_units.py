"""Amounts with changing units, against figures worked out by hand, and by properties that hold for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.error import Place, RequestError
from ajuste.model.wording import amount as said
from ajuste.outputs.base import ParseError, amount
from ajuste.outputs.pattern import Pattern, Pointer, pointed, search
from ajuste_analyse.comma_separated import number

SECONDS = {
    "ns": 1e-9,
    "nsec": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "usec": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "min": 60.0,
}
BYTES = {"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "Mi": 2**20, "M": 2**20}
VALUES = st.decimals(0, 100_000, places=3, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("12.3ms", "ms", 12.3),
        ("1.2s", "ms", 1200.0),
        ("840us", "ms", 0.84),
        ("840 µs", "s", 0.00084),
        ("2 min", "s", 120.0),
        ("2m", "s", 120.0),
        ("1m30.5s", "s", 90.5),
        ("0m1.234s", "ms", 1234.0),
        ("1h 2 min 3 s", "s", 3723.0),
        ("1.5K", "", 1500.0),
        ("1.5k", "ops/s", 1500.0),
        ("1.5Kops/s", "ops/s", 1500.0),
        ("1.5K ops/s", "ops/s", 1500.0),
        ("30 ops/min", "ops/s", 0.5),
        ("2M", "1/s", 2e6),
        ("2M/s", "1/s", 2e6),
        ("1.5Ki", "", 1536.0),
        ("3MiB/s", "MiB/s", 3.0),
        ("3MiB/s", "KiB/s", 3072.0),
        ("3MB/s", "MiB/s", 3e6 / 2**20),
        ("512KiB/s", "MiB/s", 0.5),
        ("1.5K", "B", 1536.0),
        ("1.5kB", "B", 1500.0),
        ("12.5M", "MiB/s", None),
        ("8 Mbit/s", "MB/s", 1.0),
        ("8 Mbits/sec", "MB/s", 1.0),
        ("941 Mbps", "Mbit/s", 941.0),
        ("1 GBps", "MB/s", 1000.0),
        ("12.3 ns/op", "ns/op", 12.3),
        ("1.2 µs/op", "ns/op", 1200.0),
        ("1.2 µs", "ns/op", 1200.0),
        ("97.5%", "%", 97.5),
        ("97.5", "%", 97.5),
        ("-3ms", "s", -0.003),
        ("1e3us", "ms", 1.0),
        ("7 apples", "apples", 7.0),
        ("2K apples", "apples", 2000.0),
    ],
)
def test_amounts_are_converted_to_the_unit_of_the_metric(text: str, unit: str, value: float | None) -> None:
    if value is None:
        with pytest.raises(ParseError):
            amount(text, unit, "it")
    else:
        assert amount(text, unit, "it") == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("3 MiB", "s"),
        ("3 s", "MiB"),
        ("3 MiB", "MiB/s"),
        ("3 MiB/s", "MiB"),
        ("3 ns/op", "ns/iter"),
        ("3 apples", "pears"),
        ("3 apples", ""),
        ("30s1m", "s"),
        ("1m2m", "s"),
        ("1.2.3s", "s"),
        ("ms", "ms"),
        ("", "s"),
        ("nan", "s"),
        ("1e999s", "ms"),
        ("9" * 200 + "s", "s"),
    ],
)
def test_what_is_no_such_amount_is_refused(text: str, unit: str) -> None:
    with pytest.raises(ParseError, match='for "took"'):
        amount(text, unit, '"took"')


def test_the_error_names_what_was_found_what_is_wanted_and_what_to_do() -> None:
    with pytest.raises(ParseError, match='"3 MiB" is not an amount in s for "took"'):
        amount("3 MiB", "s", '"took"')
    with pytest.raises(ParseError, match='is not a number for "took"; name the metric\'s unit, such as ms'):
        amount("3ms", "", '"took"')


@given(VALUES, st.sampled_from(sorted(SECONDS)), st.sampled_from(sorted(SECONDS)), st.sampled_from(["", " "]))
def test_times_of_any_unit_are_the_same_time(value: object, printed: str, unit: str, space: str) -> None:
    converted = amount(f"{value}{space}{printed}", unit, "it")
    assert converted == pytest.approx(float(str(value)) * SECONDS[printed] / SECONDS[unit], rel=1e-12)


@given(VALUES, st.sampled_from(sorted(BYTES)), st.sampled_from(["B", "KB", "MiB", "GB"]), st.sampled_from(["", "/s"]))
def test_data_of_any_unit_are_the_same_data(value: object, printed: str, unit: str, per: str) -> None:
    converted = amount(f"{value} {printed}{per}", f"{unit}{per}", "it")
    assert converted == pytest.approx(float(str(value)) * BYTES[printed] / BYTES[unit], rel=1e-12)


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["", "s", "MiB/s", "ops/s", "%"]))
def test_a_number_without_a_unit_stays_as_it_is(value: float, unit: str) -> None:
    assert amount(repr(value), unit, "it") == value


@given(st.floats(1e-9, 0.999))
def test_what_ajuste_says_of_a_time_is_read_back_as_it_was_said(seconds: float) -> None:
    text = said(seconds, "s")
    assert amount(text.replace(",", ""), "s", "it") == pytest.approx(seconds, rel=0.006)


@given(st.text(max_size=150), st.sampled_from(["", "s", "MiB/s", "ns/op"]))
def test_any_text_is_a_number_or_an_error(text: str, unit: str) -> None:
    try:
        value = amount(text, unit, "it")
    except ParseError:
        return
    assert value == value  # noqa: PLR0124 - it is not NaN


def test_lines_with_other_units_are_one_metric() -> None:
    pattern = Pattern(metric="latency", pattern=r"avg=(\S+)", unit="ms")
    for text, value in (("avg=12.3ms", 12.3), ("avg=1.2s", 1200.0), ("avg=840us", 0.84), ("avg=5", 5.0)):
        assert search([pattern], {"stdout": f"{text}\n"}) == {"latency": pytest.approx(value)}


def test_texts_in_documents_are_amounts_too() -> None:
    pointer = Pointer(metric="latency", pointer="/avg", unit="ms")
    assert pointed([pointer], {"stdout": '{"avg": "1.2s"}'}) == {"latency": pytest.approx(1200.0)}
    assert pointed([pointer], {"stdout": '{"avg": 1.2}'}) == {"latency": 1.2}
    with pytest.raises(ParseError, match='"3 MiB" is not an amount in ms'):
        pointed([pointer], {"stdout": '{"avg": "3 MiB"}'})


@pytest.mark.parametrize("text", ["900us", "1.1 ms", "12,5 %"])
def test_a_number_with_a_unit_in_a_table_is_told_from_a_name(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        number(text, "time", ";", Place(Path("a.csv"), 2), "name the column configuration")
    assert "same unit" in str(refused.value.hint)

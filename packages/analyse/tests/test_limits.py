"""Limits of files: what no measurement can be, and more than anybody compares, is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste_analyse.files import read_files
from mutation import bounded

CSV = "configuration,{column}\na,1\nb,2\na,{value}\nb,2\n"


def refused(tmp_path: Path, text: str, name: str = "f.csv") -> str:
    path = tmp_path / name
    path.write_text(text)
    with bounded(), pytest.raises(RequestError) as error:
        read_files([path])
    return str(error.value)


@pytest.mark.parametrize("column", ["time [s]", "time [ms]", "elapsed", "rate (1/s)", "size [bytes]", "waited [µs]"])
def test_a_negative_time_or_count_is_refused_with_line_and_value(tmp_path: Path, column: str) -> None:
    message = refused(tmp_path, CSV.format(column=column, value="-3.5"))
    assert f"f.csv:4: {column.split()[0]}: {column.split()[0]} is -3.5" in message
    assert "expected at least 0" in message


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
def test_what_is_not_finite_is_refused(tmp_path: Path, value: str) -> None:
    assert "f.csv:4" in refused(tmp_path, CSV.format(column="x", value=value))


def test_a_difference_may_be_negative(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(CSV.format(column="change", value="-3.5"))
    assert read_files([path]).metrics[0].name == "change"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("perf.json", '{"counter-value" : "-5", "unit" : "", "event" : "cycles"}\n'),
        ("hyperfine.json", '{"results": [{"command": "x", "times": [1.0, -2.0]}]}'),
        ("google.json", '{"benchmarks": [{"name": "a", "real_time": -1.0, "time_unit": "ns"}]}'),
        ("pyperf.json", '{"benchmarks": [{"metadata": {"name": "a"}, "runs": [{"values": [0.5, -0.5]}]}]}'),
    ],
)
def test_it_is_refused_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    assert "expected at least 0" in refused(tmp_path, text, name)


def test_8000_columns_are_refused_at_once(tmp_path: Path) -> None:
    head = ",".join(f"m{number}" for number in range(8000))
    assert "8001 columns; expected at most 502" in refused(
        tmp_path, f"configuration,{head}\na,{','.join('1' * 8000)}\nb,{','.join('1' * 8000)}\n"
    )


def test_thousands_of_configurations_are_refused_at_once(tmp_path: Path) -> None:
    rows = "".join(f"c{number},1\n" for number in range(12_000))
    assert "more than 500 configurations" in refused(tmp_path, f"configuration,a\n{rows}")


def test_a_name_of_a_thousand_characters_is_refused(tmp_path: Path) -> None:
    assert "has 1000 characters; expected at most 200" in refused(tmp_path, f"configuration,a\n{'x' * 1000},1\n")

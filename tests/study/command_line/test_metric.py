from __future__ import annotations

import pytest

from ajuste.model.error import RequestError
from ajuste.study.command_line.job import read_metric


def test_a_name_alone_is_a_known_metric() -> None:
    assert read_metric("voluntary-switches") == "voluntary-switches"


def test_everything_after_the_colon_is_the_pattern() -> None:
    assert read_metric("copy-time,s,lower,stderr,step=0.001=regex:copied, ([0-9.]+) s, a=b,lower") == {
        "name": "copy-time",
        "unit": "s",
        "direction": "lower",
        "stream": "stderr",
        "resolution": 0.001,
        "pattern": "copied, ([0-9.]+) s, a=b,lower",
    }


def test_a_pointer_is_told_from_a_pattern() -> None:
    assert read_metric("change,none,difference=json:/a=b/0") == {
        "name": "change",
        "direction": "none",
        "scale": "difference",
        "pointer": "/a=b/0",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("time=regex:(.)", "a direction before the =: time,lower or time,higher or time,none"),
        ("time,lower,higher=regex:(.)", 'one direction; found "lower" and "higher"'),
        ("time,lower,s,ms=json:/a", 'one unit; found "s" and "ms"'),
        ("time,lower,,s=json:/a", "a word after each comma"),
        ("time,lower,step=x=json:/a", "a number as in step=0.001"),
        ("time,lower", "NAME of a known metric, NAME,…=regex:PATTERN or NAME,…=json:/POINTER"),
        ("time=xpath:/a", "NAME of a known metric"),
    ],
)
def test_what_is_not_understood_is_said_with_an_example(text: str, expected: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_metric(text)
    assert expected in caught.value.message
    assert str(caught.value).startswith(f"--metric {text}: ")
    assert "for example --metric" in (caught.value.hint or "")

"""Values too large for a study are refused at once, in one short message with their line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ajuste.cli.edge import exit_code
from ajuste.model.error import RequestError
from ajuste.study.problem import MOST_LISTED
from ajuste.study.read import read_study
from mutation import LARGE, bounded
from shell import SMALL

LEVELS = "[750000, 75000000]"
CASES = {
    "5,000 digits": ("schema = 1\nx = " + "9" * 5000, r"study.toml:2: found a number with too many digits"),
    "many bits": ("x = 0x" + "f" * LARGE, r"study.toml:1: x: is a number of 400000 bits; expected at most 64"),
    "a deep key": ("schema = 1\n" + "a." * (LARGE // 2) + "a = 1", r"study.toml:2: found a key of more than 16 parts"),
    "a deep quoted key": ('"a".' * (LARGE // 4) + "a = 1", r"study.toml:1: found a key of more than 16 parts"),
    "a deep table": ("[" + "a . " * (LARGE // 4) + "a]", r"study.toml:1: found a key of more than 16 parts"),
    "a deep list": ("x = " + "[" * 50 + "]" * 50, r"study.toml:1: .*nested in more than 16 tables and lists"),
    "many tables": ("[[factor]]\n" * (LARGE // 11), r"study.toml:1: factor: has 9090 elements; expected at most 1000"),
    "many keys": ("\n".join(f"k{n} = 1" for n in range(9000)), r"study.toml: has 9000 elements"),
    "many levels": (
        SMALL.replace(LEVELS, f"[{'1,' * 33_000}]"),
        r"study.toml:7: factor.*has 33000 elements",
    ),
    "a range of many levels": (
        SMALL.replace(LEVELS, '"100000..1000000000"\nstep = 1'),
        r"study.toml:8: factor.*makes 999900001 levels",
    ),
    "many values": (
        "\n".join(f"[t{n}]\na = [1,2,3,4,5,6,7,8,9]" for n in range(900)),
        r"study.toml: has more than 5000 values",
    ),
    "a long key": ("x" * 5000 + " = 1", r"study.toml: has a name of 5000 characters; expected at most 200"),
    "a long text": (f'name = "{"x" * 20_000}"', r"study.toml:1: name: is a text of 20000 characters"),
}


@pytest.mark.parametrize(("text", "message"), CASES.values(), ids=CASES)
def test_what_is_too_large_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text)
    with bounded(), pytest.raises(RequestError) as refused:
        read_study(path)
    assert re.search(message, str(refused.value)), str(refused.value)[:500]
    assert len(str(refused.value)) < 1000


def test_of_very_many_problems_some_are_told_and_the_others_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.toml"
    path.write_text("\n".join(f"unknown{n}{'x' * 80} = '{'y' * 90}'" for n in range(900)))
    assert exit_code(lambda: read_study(path)) == 2
    messages = capsys.readouterr().err
    assert messages.count(": unknown field") <= MOST_LISTED
    assert re.search(r"and (at least )?\d+ more problems", messages)
    assert len(messages) < 20_000
    assert "Traceback" not in messages


def test_levels_that_are_all_wrong_are_soon_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(SMALL.replace('"sched_min_granularity_ns"', '"' + "s" * 9000 + '"'))
    with bounded(), pytest.raises(RequestError, match="not found"):
        read_study(path)
    cpus = "0-9999," * 1300 + "0"
    path.write_text(SMALL.replace('"sched_min_granularity_ns"', '"affinity"').replace(LEVELS, f'["{cpus}", "0"]'))
    with bounded(), pytest.raises(RequestError, match="found CPU 1 in"):
        read_study(path)


def test_a_value_with_a_line_feed_stays_in_its_line(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(SMALL.replace('["elapsed"]', r'["a\nb: forged", "c\nd"]'))
    with pytest.raises(RequestError) as refused:
        read_study(path)
    assert len(str(refused.value).splitlines()) == 2

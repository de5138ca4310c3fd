"""The project file: what it may hold, and the errors where it is wrong."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_study_spec
from ajuste.model.error import RequestError
from ajuste_ci.project import Trees, missing, parse_limit, read_project

WHOLE = """\
[[benchmark]]
name = "copy"
build = "make -C 'my dir'"
command = ["./copy", "a b"]
metric = ["time,ms,lower=regex:took ([0-9.]+)", "elapsed"]
limit = "2.5%"
files = ["data.txt", "more/data.txt"]
timeout = "90s"
max_time = "2m"

[[benchmark]]
name = "count"
command = "./count 'a b'"
metric = "instructions"
limit = "1%"
"""


def written(directory: Path, text: str) -> Path:
    file = directory / "ajuste.toml"
    file.write_text(text)
    return file


def complaint(directory: Path, text: str) -> str:
    """Return the error of a wrong project file, from reading it to the studies it comes to."""
    with pytest.raises(RequestError) as caught:
        read_all(written(directory, text))
    assert caught.value.exit_code == 2
    return str(caught.value).replace(f"{directory}/", "")


def read_all(file: Path) -> None:
    project = read_project(file)
    for benchmark in project.benchmarks:
        project.study(benchmark, catalogue(), parse_study_spec)


def changed(old: str, new: str) -> str:
    assert old in WHOLE
    return WHOLE.replace(old, new, 1)


def test_a_benchmark_becomes_a_study_of_both_revisions(tmp_path: Path) -> None:
    project = read_project(written(tmp_path, WHOLE))
    copy, count = project.benchmarks
    assert (copy.build, copy.command, count.command) == (
        ("make", "-C", "my dir"),
        ("./copy", "a b"),
        ("./count", "a b"),
    )
    assert (copy.in_guest, count.in_guest) == (False, True)
    study = project.study(copy, catalogue(), parse_study_spec)
    assert [(variant.name, variant.command, variant.directory) for variant in study.workload.variants] == [
        ("base", ("base/copy", "a b"), "base"),
        ("head", ("head/copy", "a b"), "head"),
    ]
    assert study.workload.files == ("base/data.txt", "head/data.txt", "base/more/data.txt", "head/more/data.txt")
    assert (study.analysis.metrics, study.analysis.smallest_effect) == (("time", "elapsed"), 0.025)
    assert (study.analysis.decide, study.workload.timeout_s, study.budget.max_minutes) == ("limit", 90, 2)
    assert (study.target.kind, project.study(count, catalogue(), parse_study_spec).target.kind) == ("host", "vm")


def test_programs_of_the_machine_stay_as_they_are(tmp_path: Path) -> None:
    project = read_project(written(tmp_path, changed('["./copy", "a b"]', '"sh bench.sh"')))
    study = project.study(project.benchmarks[0], catalogue(), parse_study_spec)
    assert [variant.command for variant in study.workload.variants] == [("sh", "bench.sh")] * 2


def test_a_project_below_the_top_has_its_place_in_both_revisions(tmp_path: Path) -> None:
    project = read_project(written(tmp_path, WHOLE))
    for side in ("base", "head"):
        (tmp_path / side / "sub" / "more").mkdir(parents=True)
        for name in ("copy", "data.txt", "more/data.txt"):
            (tmp_path / side / "sub" / name).touch()
    trees = Trees(tmp_path, PurePosixPath("sub"), {"base": "old", "head": "new"})
    study = project.study(project.benchmarks[0], catalogue(), parse_study_spec, trees)
    assert [variant.directory for variant in study.workload.variants] == ["base/sub", "head/sub"]
    assert missing(project.benchmarks[0], trees, "base") == ""
    (tmp_path / "base" / "sub" / "copy").unlink()
    assert missing(project.benchmarks[0], trees, "base") == "./copy not found in old after its build"


def test_benchmarks_are_chosen_by_name(tmp_path: Path) -> None:
    project = read_project(written(tmp_path, WHOLE))
    assert [benchmark.name for benchmark in project.chosen(())] == ["copy", "count"]
    assert [benchmark.name for benchmark in project.chosen(("count",))] == ["count"]
    with pytest.raises(RequestError, match=r'benchmark "cout" not found in .*; did you mean count'):
        project.chosen(("cout",))


@given(st.decimals(min_value="0.000001", max_value="99.999999", places=6))
def test_every_percentage_between_none_and_all_is_a_limit(percent: Decimal) -> None:
    assert parse_limit(f"{percent}%") == parse_limit(f" {percent} % ") == float(percent) / 100


@given(
    st.one_of(
        st.text(max_size=20).filter(lambda text: not text.strip().endswith("%")),
        st.floats(),
        st.integers(),
        st.booleans(),
        st.none(),
        st.sampled_from(
            ("0%", "0.0%", "100%", "999%", "-1%", "+1%", "1%%", "1e1%", ".5%", "1.%", "%", "1 2%", "٣%", "1%\n2%")
        ),
        st.lists(st.just("1%"), max_size=2),
    )
)
def test_anything_else_is_none(value: Any) -> None:
    with pytest.raises(ValueError, match="expected a percentage above 0% and below 100%"):
        parse_limit(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed('limit = "2.5%"', "limit = 0.025"), "6: benchmark[1].limit: found 0.025; expected a perce"),
        (changed('limit = "2.5%"', 'limit = "250%"'), '6: benchmark[1].limit: found "250%"; expected a per'),
        (changed('limit = "1%"', 'limmit = "1%"'), "15: benchmark[2].limmit: unknown field; did you mean l"),
        (changed('limit = "1%"\n', ""), "11: benchmark[2].limit: is required"),
        (changed('"copy"', '"Copy that"'), '2: benchmark[1].name: found "Copy that"; expected text that m'),
        (changed('"count"', '"copy"'), '12: benchmark[2].name: the benchmark "copy" is given twice'),
        (changed("'my dir'", "'my dir"), "3: benchmark[1].build: found \"make -C 'my dir\"; expected b"),
        (changed("\"./count 'a b'\"", '""'), '13: benchmark[2].command: found ""; expected a program'),
        (changed('"90s"', '"90 parsecs"'), '8: benchmark[1].timeout: found "90 parsecs"; expected a dura'),
        (changed('"2m"', "120"), '9: benchmark[1].max_time: found 120; expected a duration such as "90s"'),
        (changed('"elapsed"', '"elapsd"'), '5: benchmark[1].metric[2]: metric "elapsd" not found; did you'),
        (changed('"elapsed"', '"x,=y"'), '5: benchmark[1].metric[2]: found "x,=y"; expected NAME of a kno'),
        (changed("([0-9.]+)", "[0-9.]+"), "5: benchmark[1].metric[1]: "),
        (changed("ms,lower", "ms,none"), '5: benchmark[1].metric[1]: metric "time" has no better direction'),
        (WHOLE + 'kernel = "debian"\n', "16: benchmark[2].kernel: "),
        (WHOLE + 'kernel = "build:debian:6.1+NUMA=n"\n', '16: benchmark[2].kernel: "build:debian:6.1+NUMA='),
        (changed('timeout = "90s"', "layouts = 8"), "1: benchmark[1]: layouts requires {layout} in build"),
        (changed("my dir", "{layout}").replace('"elapsed"]', '"instructions"]\nlayouts = 8'), "layouts applies only"),
        ('[[benchmark]]\nharness = "criterium"\n', '2: benchmark[1].harness: found "criterium"; expected'),
        ('[[benchmark]]\nharness = "go"\ncommand = "x"\n', "1: benchmark[1]: harness and command are mutually exclu"),
        ('[[benchmark]]\nharness = "hyperfine"\n', '1: benchmark[1]: harness = "hyperfine" requires commands'),
        ('[[benchmark]]\nharness = "go"\ncommands = "x"\n', "1: benchmark[1]: commands applies only to harness"),
        ('[[benchmark]]\nharness = "go"\nmetric = "elapsed"\n', "1: benchmark[1]: a harness has the metrics inst"),
        ("", "has nothing to measure"),
        ("benchmark = []", "has nothing to measure"),
        ("[[benchmark]\n", "1: not valid TOML"),
        ("a = " + "[" * 40 + "]" * 40, "is nested in more than 16 tables"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_file_line_field_and_what_is_right(tmp_path: Path, text: str, message: str) -> None:
    problem = complaint(tmp_path, text)
    assert problem.startswith("ajuste.toml:")
    assert message in problem


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    problems = complaint(tmp_path, WHOLE.replace("%", "").replace('name = "copy"\n', ""))
    assert [line.partition(": ")[0] for line in problems.splitlines()] == [
        "ajuste.toml:1",
        "ajuste.toml:5",
        "ajuste.toml:14",
    ]

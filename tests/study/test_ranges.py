"""A range becomes levels in the tunable's unit, or says what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import Span
from ajuste.study.read import parse_study, read_study
from ajuste.study.resolve import resolve

LEVELS = "levels = [750000, 7500000]"
KERNELS = {"debian:5.10": KernelVersion(major=5, minor=10)}


def ranged(text: str) -> tuple[str, str]:
    return LEVELS, f"levels = {text}"


def test_a_range_becomes_six_levels_in_the_unit_of_the_tunable(read: Any) -> None:
    study = read(ranged('"1ms..30ms"'))
    assert study.factors[0].levels == ("1000000", "6800000", "12600000", "18400000", "24200000", "30000000")


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ('"1..16ms"\npoints = 5\nscale = "log"', [1, 2, 4, 8, 16]),
        ('" 1000us .. 0.007 s "\nstep = "2ms"', [1, 3, 5, 7]),
        ('"1000000..2000000"\npoints = 2', [1, 2]),
    ],
)
def test_points_steps_and_scales(read: Any, text: str, levels: list[int]) -> None:
    assert read(ranged(text)).factors[0].levels == tuple(str(level * 1_000_000) for level in levels)


def test_process_attributes_and_parameters_have_ranges_too(read: Any) -> None:
    nice = read(('"sched_min_granularity_ns"', '"nice"'), ranged('"-20..19"\npoints = 4'))
    assert nice.factors[0].levels == ("-20", "-7", "6", "19")
    size = read(('"sched_min_granularity_ns"', '"workload.size"'), ranged('"1k..2k"\nstep = 500'))
    assert size.factors[0].levels == ("1000", "1500", "2000")


def test_the_range_stays_with_the_factor(read: Any, catalogue: Catalogue) -> None:
    def factor(*parts: Any) -> Any:
        return resolve(read(*parts), catalogue, KERNELS, lambda name: f"/bin/{name}").factors[0]

    made = factor(ranged('"1ms..16ms"\npoints = 5\nscale = "log"\nbaseline = "4ms"'))
    assert made.span == Span(low=1_000_000, high=16_000_000, scale="log", points=5)
    assert made.baseline == "4000000"
    beside = factor(ranged('["1ms", "2ms"]\nrange = "1ms..30ms"'))
    assert beside.levels == ("1000000", "2000000")
    assert beside.span == Span(low=1_000_000, high=30_000_000)
    assert factor().span is None


def test_a_study_with_a_range_reads_its_own_document(read: Any) -> None:
    study = read(ranged('"1ms..30ms"\npoints = 3'))
    assert parse_study(study.model_dump(mode="json", by_alias=True)).factors == study.factors


WRONG = [
    ('"30ms..1ms"', "levels", "1ms..30ms"),
    ('"1ms..1000us"', "levels", "a range with equal ends"),
    ('"1ms.."', "levels", 'a range such as "1ms..30ms"'),
    ('"1ms..2ms..3ms"', "levels", 'a range such as "1ms..30ms"'),
    ('"1ms"', "levels", 'a range such as "1ms..30ms"'),
    ('"1ms..30"', "levels", '"1ms..30ms"'),
    ('"1ms..30MiB"', "levels", "MiB is the wrong unit"),
    ('"1MiB..30MiB"', "levels", "MiB is the wrong unit; expected between 100000 and 1000000000 ns"),
    ('"1ns..30ms"', "levels", "out of range; expected between 100000 and 1000000000 ns"),
    ('"fast..30ms"', "levels", "not a whole number"),
    ('"1ms..30ms"\npoints = 1', "points", "found 1"),
    ('"1ms..30ms"\nstep = "0ms"', "step", "expected between 1 and the whole range, 29000000"),
    ('"1ms..30ms"\nstep = "30ms"', "step", "expected between 1 and the whole range, 29000000"),
    ('"1ms..30ms"\nstep = "1us"', "step", "makes 29001 levels"),
    ('"1ms..30ms"\nstep = "2ms"\nscale = "log"', "step", 'step conflicts with scale = "log"'),
    ('"1ms..30ms"\nscale = "square"', "scale", "'linear' or 'log'"),
    ('["1ms", "2ms"]\nrange = "2ms..1ms"', "range", "a reversed range"),
    ('"1ms..30ms"\nbaseline = "2ms"', "baseline", "which is not a level"),
]


@pytest.mark.parametrize(("text", "field", "words"), WRONG)
def test_a_wrong_range_is_said_with_line_and_field(
    write: Any, catalogue: Catalogue, text: str, field: str, words: str
) -> None:
    path: Path = write(ranged(text))
    with pytest.raises(RequestError) as caught:
        read_study(path, catalogue)
    place = caught.value.place
    assert place is not None
    assert place.field == f"factor[1].{field}"
    lines = path.read_text().splitlines()
    assert lines[(place.line or 0) - 1].startswith(field)
    assert words in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{LEVELS}\npoints = 3", "require a range"),
        ('levels = "1ms..30ms"\npoints = 3\nstep = "1ms"', "mutually exclusive"),
        ('levels = "1ms..30ms"\nrange = "1ms..30ms"', "range requires a list of levels"),
        ('levels = "1ms..30ms"\n[factor.settings.a]\nnice = 1', "settings"),
    ],
)
def test_fields_that_do_not_go_together(write: Any, catalogue: Catalogue, text: str, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        read_study(write((LEVELS, text)), catalogue)


@pytest.mark.parametrize("name", ["policy", "affinity", "sched_feat_hrtick", "kernel", "workload.mode"])
def test_what_has_no_whole_numbers_has_no_range(write: Any, catalogue: Catalogue, name: str) -> None:
    kind = ('kind = "matrix"', 'kind = "hackbench"')
    path = write(('"sched_min_granularity_ns"', f'"{name}"'), ranged('"1..5"'), kind)
    with pytest.raises(RequestError, match="no numeric levels"):
        read_study(path, catalogue)


def test_everything_else_is_said_with_a_wrong_range(write: Any, catalogue: Catalogue) -> None:
    with pytest.raises(RequestError) as caught:
        read_study(write(ranged('"30ms..1ms"'), ('"elapsed"', '"elapsde"')), catalogue)
    assert "a reversed range" in caught.value.message
    assert "elapsde" in caught.value.message

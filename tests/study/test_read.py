from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.catalogue.loader import Catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.study.read import parse_study, read_study
from ajuste.study.schema import Study

Read = Callable[..., Study]


def test_a_minimal_study_has_sensible_defaults(read: Read) -> None:
    study = read()
    assert (study.name, study.target.kernel, study.target.clock) == ("example", "debian:5.10", "virtual")
    assert study.factors[0].levels == ("750000", "7500000")
    assert study.factors[0].baseline_level == "750000"
    assert (study.budget.min_blocks, study.budget.max_blocks) == (3, 30)
    assert study.analysis.smallest_effect == 0.05


FULL = """\
schema = 1
name = "full-1"
title = "T"
question = "Q?"
[[factor]]
name = "nice"
levels = [0, 4, -15]
baseline = 4
[[factor]]
name = "workload.size"
levels = [10, 20]
[workload]
kind = "matrix"
timeout_s = 1.5
settle_s = 1
parameters = { repetitions = 40 }
attributes = { policy = "batch", affinity = [0, 1], cgroup_weight = 50 }
programs = ["dd"]
[[workload.background]]
kind = "spin"
count = 2
attributes.nice = 19
[[workload.background]]
command = ["/usr/bin/yes", "n o"]
[target]
kind = "vm"
kernel = "debian:5.10"
clock = "wall"
cpus = 2
memory_mib = 512
modules = ["null_blk"]
kernel_arguments = ["mitigations=off"]
[analysis]
metrics = ["elapsed"]
describe = ["task-clock"]
confidence = 0.9
smallest_effect = 0.1
[design]
seed = 7
warm_up = 1
[budget]
min_blocks = 2
max_blocks = 4
max_minutes = 1
"""


def test_every_field_can_be_given_and_survives_being_stored(read: Read) -> None:
    study = read(FULL)
    assert study.factors[0].baseline_level == "4"
    assert study.workload.attributes.affinity == "0,1"
    assert study.workload.background[1].command == ("/usr/bin/yes", "n o")
    assert study.workload.timeout_s == 1.5
    again = parse_study(study.model_dump(mode="json", by_alias=True))
    assert again.model_dump() == study.model_dump()


def test_choices_of_the_command_line_replace_kernel_and_seed(read: Read) -> None:
    study = read().with_choices(kernel="debian:6.12", seed=9)
    for seed in (-1, 2**63):
        with pytest.raises(RequestError, match="expected between 0 and 9223372036854775807"):
            study.with_choices(seed=seed)
    assert (study.kernels, study.design.seed) == (("debian:6.12",), 9)
    assert study.place("target", "kernel") is not None


WRONG: list[tuple[list[Any], int | None, str, str]] = [
    # replacements, line, field, words of the message
    ([('kind = "matrix"', 'kind = "matrix"\ntimeout = 3')], 10, "workload.timeout", "did you mean timeout_s"),
    (
        [('kind = "matrix"', 'kind = "matriks"')],
        9,
        "workload.kind",
        'workload "matriks" not found; did you mean matrix',
    ),
    ([('kind = "matrix"', 'kind = "spin"')], 9, "workload.kind", "never ends; use it only as a background load"),
    ([('kind = "matrix"', "")], 8, "workload", "kind and command are mutually exclusive"),
    ([("[750000, 7500000]", "[750000,\n 'fast']")], 7, "factor[1].levels[2]", "not a whole number"),
    (
        [("[750000, 7500000]", "[750000,\n 1]")],
        7,
        "factor[1].levels[2]",
        "out of range; expected between 100000 and 1000000000 ns",
    ),
    ([("[750000, 7500000]", "[750000, 7.5]")], 6, "factor[1].levels[2]", "not a whole number"),
    ([("[750000, 7500000]", "[750000, [1]]")], 6, "factor[1].levels[2]", "expected a number, a text, true or false"),
    ([("[750000, 7500000]", "[750000, '+750000']")], 6, "factor[1].levels[2]", "is given twice"),
    ([("[750000, 7500000]", "[]")], 6, "factor[1].levels", "at least one"),
    ([("[750000, 7500000]", "750000")], 6, "factor[1].levels", "found 750000; expected a list"),
    ([("7500000]", "7500000]\nbaseline = 1000000")], 7, "factor[1].baseline", "expected one of 750000, 7500000"),
    ([("7500000]", "7500000]\nsuccessor = 1")], 7, "factor[1].successor", "expected true or false"),
    ([("sched_min_", "sched_mni_")], 5, "factor[1].name", "sched_mni_granularity_ns"),
    ([("sched_min_granularity_ns", "workload.sise")], 5, "factor[1].name", "did you mean size"),
    (
        [('[[factor]]\nname = "sched_min_granularity_ns"\nlevels = [750000, 7500000]\n', "")],
        None,
        "factor",
        "is required",
    ),
    ([("[[factor]]", "[factor]")], 4, "factor", "expected a list"),
    ([('"elapsed"', '"elapsde"')], 15, "analysis.metrics[1]", "did you mean elapsed"),
    ([('"elapsed"', '"elapsed", "elapsed"')], 15, "analysis.metrics[2]", "given twice"),
    ([('"elapsed"', '"elapsed@p50", "elapsed@p50.0"')], 15, "analysis.metrics[2]", "given twice"),
    ([('"elapsed"', '"elapsde@p95"')], 15, "analysis.metrics[1]", "not found"),
    ([('"elapsed"', '"elapsed@p100"')], 15, "analysis.metrics[1]", "did you mean elapsed"),
    (
        [('"elapsed"', '"kernel-instructions"'), ('kernel = "debian:5.10"', 'kernel = "debian:5.10"\nclock = "wall"')],
        16,
        "analysis.metrics[1]",
        "requires a guest with the virtual clock",
    ),
    ([('kernel = "debian:5.10"', "cpus = 1")], 11, "target.kernel", "debian:5.10"),
    ([('kernel = "debian:5.10"', 'kernel = "debian:5,10"')], 12, "target.kernel", "debian:5,10"),
    ([("[target]", '[target]\nkind = "host"')], 13, "target.kernel", "applies only to guests"),
    ([("[target]", '[target]\nkind = "host"\nclock = "virtual"')], 11, "target", "the virtual clock is not supported"),
    (
        [
            ('kernel = "debian:5.10"', 'kind = "host"'),
            ("sched_min_granularity_ns", "kernel"),
            ("750000, 7500000", "'debian:5.10'"),
        ],
        5,
        "factor[1].name",
        "not supported on the host",
    ),
    ([("[target]", '[target]\nkind = "moon"')], 12, "target.kind", "'vm' or 'host'"),
    ([("schema = 1", "schema = 2")], 1, "schema", "expected 1"),
    ([('"example"', '"An Example"')], 2, "name", "An Example"),
    (
        [("[analysis]", "[budget]\nmin_blocks = 9\nmax_blocks = 3\n[analysis]")],
        14,
        "budget",
        "expected at most max_blocks",
    ),
    ([("[analysis]", "[budget]\nmin_blocks = true\n[analysis]")], 15, "budget.min_blocks", "found true"),
    ([("[analysis]", "[budget]\nmax_minutes = nan\n[analysis]")], 15, "budget.max_minutes", "finite"),
    ([("[analysis]", "[design]\nseed = -1\n[analysis]")], 15, "design.seed", "found -1"),
    ([("[target]", "parameters.sice = 3\n[target]")], 11, "workload.parameters.sice", "did you mean size"),
    ([("[target]", "parameters = { size = 0 }\n[target]")], 11, "workload.parameters.size", "out of range"),
    (
        [("[target]", "attributes.affinity = 1\n[target]")],
        11,
        "workload.attributes.affinity",
        "expected CPUs between 0 and 0",
    ),
    ([("[target]", 'attributes.affinity = "3-1"\n[target]')], 11, "workload.attributes.affinity", "runs backwards"),
    ([("[target]", "attributes.nice = 20\n[target]")], 11, "workload.attributes.nice", "found 20"),
    ([("[target]", "attributes.priority = 20\n[target]")], 11, "workload.attributes.priority", "fifo"),
    ([("[target]", "files = ['../x']\n[target]")], 11, "workload.files[1]", "is outside the directory of the study"),
    ([("[target]", "files = ['nothere']\n[target]")], 11, "workload.files[1]", "not found"),
    ([('kind = "matrix"', "command = ['./nojob']")], 9, "workload.command[1]", "not found"),
    ([('kind = "matrix"', "command = []")], 9, "workload.command", "at least one"),
    (
        [('kind = "matrix"', "command = ['x']\n[[workload.metric]]\nname='r'\ndirection='lower'\npattern = '([0-9+'")],
        13,
        "workload.metric[1].pattern",
        "not a regular expression",
    ),
    (
        [('kind = "matrix"', "command = ['x']\n[[workload.metric]]\nname='r'\ndirection='lower'\npattern = 'r: .*'")],
        13,
        "workload.metric[1].pattern",
        "no group",
    ),
    (
        [('kind = "matrix"', "command = ['x']\n[[workload.metric]]\nname='ipc'\ndirection='lower'\npattern = '(.)'")],
        11,
        "workload.metric[1].name",
        "already",
    ),
    ([("[target]", "[target]\n[[x]")], 12, "", "not valid TOML"),
    ([("[target]", "[workload]")], 11, "", "not valid TOML"),
]


@pytest.mark.parametrize(("parts", "line", "field", "words"), WRONG, ids=lambda v: v if isinstance(v, str) else "")
def test_what_is_wrong_is_said_with_file_line_field_and_what_would_be_right(
    write: Any, catalogue: Catalogue, parts: list[Any], line: int | None, field: str, words: str
) -> None:
    path = write(*parts)
    with pytest.raises(RequestError) as caught:
        read_study(path, catalogue, parse_kernel=parse_spec)
    error = caught.value
    assert error.exit_code == 2
    assert error.place is not None
    assert error.place.line == line
    assert (error.place.field or "") == field
    assert words in error.message + (error.hint or "")
    assert str(error).startswith(f"{path}:{line}:" if line else f"{path}: ")
    assert "\n" not in error.message


def test_a_wrong_tunable_names_the_nearest(write: Any, catalogue: Catalogue) -> None:
    with pytest.raises(RequestError) as caught:
        read_study(write(("sched_min_", "sched_mni_")), catalogue)
    assert caught.value.hint is not None
    assert "did you mean sched_min_granularity_ns" in caught.value.hint


def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_the_file(write: Any, catalogue: Catalogue) -> None:
    path = write(
        ("[750000, 7500000]", "[750000, 750000, 1]\nbaseline = 5"),
        ('kind = "matrix"', 'kind = "matrix"\nparameters = { x = 1 }'),
        ('"elapsed"', '"nothing"'),
    )
    with pytest.raises(RequestError) as caught:
        read_study(path, catalogue)
    lines = str(caught.value).split("\n")
    assert [line.split(": ")[0] for line in lines] == [f"{path}:{n}" for n in (6, 6, 7, 11, 17)]
    assert [line.split(": ")[1] for line in lines] == [
        "factor[1].levels[2]",
        "factor[1].levels[3]",
        "factor[1].baseline",
        "workload.parameters.x",
        "analysis.metrics[1]",
    ]


def test_each_of_several_problems_has_its_hint(write: Any, catalogue: Catalogue) -> None:
    with pytest.raises(RequestError) as caught:
        read_study(write(("sched_min_", "sched_mni_"), ('"elapsed"', '"nothing"')), catalogue)
    first, second = str(caught.value).split("\n")
    assert first.endswith("(did you mean sched_min_granularity_ns?)")
    assert "expected some of elapsed" in second


def test_a_kernel_as_factor_and_as_target_is_refused(write: Any, catalogue: Catalogue) -> None:
    kernel = '[[factor]]\nname = "kernel"\nlevels = ["debian:5.10", "debian:6.1"]\n\n[workload]'
    with pytest.raises(RequestError, match="conflicts with the factor kernel"):
        read_study(write(("[workload]", kernel)), catalogue)
    study = read_study(write(("[workload]", kernel), ('kernel = "debian:5.10"', "")), catalogue)
    assert study.kernels == ("debian:5.10", "debian:6.1")
    with pytest.raises(RequestError, match="conflicts with the factor kernel"):
        study.with_choices(kernel="debian:6.12")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"name = '\xff'", "UTF-8"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"#" * (2 << 20), "a study file has at most"),
        (b"", "is required"),
        (b"\x00", "not valid TOML"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, catalogue: Catalogue, data: bytes, words: str) -> None:
    path = tmp_path / "hostile.toml"
    path.write_bytes(data)
    with pytest.raises(RequestError, match=words):
        read_study(path, catalogue)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, catalogue: Catalogue) -> None:
    for path in (tmp_path, tmp_path / "missing.toml"):
        with pytest.raises(RequestError, match=f"cannot read study file {path}"):
            read_study(path, catalogue)


def test_a_file_that_leads_out_of_the_directory_is_refused(write: Any, catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to("/etc/passwd")
    with pytest.raises(RequestError, match="leads out"):
        read_study(write(("[target]", "files = ['data']\n[target]")), catalogue)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KNOWN = ["schema", "name", "factor", "workload", "target", "analysis", "design", "budget", "question"]


@given(st.dictionaries(st.sampled_from(KNOWN), JUNK | st.lists(JUNK, max_size=2)))
def test_any_document_is_a_study_or_one_clear_error(document: dict[str, Any]) -> None:
    with contextlib.suppress(RequestError):
        assert parse_study(document).factors

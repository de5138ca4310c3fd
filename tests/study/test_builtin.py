from __future__ import annotations

from operator import attrgetter
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.study.builtin import BuiltinStudy, builtin_studies, find_study
from ajuste.study.read import read_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from looped import each

ALL = builtin_studies()
KNOB = {
    "debian:5.10": ("sched_min_granularity_ns", "/proc/sys/kernel/sched_min_granularity_ns"),
    "debian:6.1": ("sched_min_granularity_ns", "/sys/kernel/debug/sched/min_granularity_ns"),
    "debian:6.12": ("base_slice_ns", "/sys/kernel/debug/sched/base_slice_ns"),
}


@each(ALL, name=attrgetter("name"))
def test_every_built_in_study_is_right_and_can_be_resolved(study: BuiltinStudy) -> None:
    read = read_study(study.path, catalogue(), parse_kernel=parse_spec)
    assert read.name == study.name == study.path.stem
    assert read.question.endswith("?")
    assert read.title
    built = {"mine:ext": "6.12"}
    kernels = {spec: KernelVersion.parse(built.get(spec, spec.partition(":")[2])) for spec in read.kernels}
    kernels = kernels or {HOST_KERNEL: KernelVersion.parse("6.1")}
    resolved = resolve(read, catalogue(), kernels, lambda name: f"/usr/bin/{name}")
    assert sum(c.configuration.baseline for c in resolved.configurations) == 1
    assert resolved.explained


@pytest.mark.parametrize("kernel", list(KNOB))
def test_granularity_varies_the_knob_that_each_kernel_has(kernel: str) -> None:
    study = read_study(find_study("granularity"), catalogue()).with_choices(kernel=kernel)
    version = KernelVersion.parse(kernel.partition(":")[2])
    resolved = resolve(study, catalogue(), {kernel: version}, lambda name: None)
    name, path = KNOB[kernel]
    assert resolved.names == tuple(f"{name}={level}" for level in (750000, 7500000, 75000000, 750000000))
    for configuration in resolved.configurations:
        assert [(write.tunable, write.location.path) for write in configuration.writes] == [(name, path)]  # type: ignore[union-attr]
    assert bool(resolved.notes) == (name == "base_slice_ns")
    assert [load.endless for c in resolved.configurations for load in c.loads] == [True] * 4


def test_names_come_before_files_and_files_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "granularity").write_text("")
    (tmp_path / "mine.toml").write_text("")
    assert find_study("granularity").name == "granularity.toml"
    assert find_study("mine.toml") == Path("mine.toml")
    assert find_study("./granularity") == Path("granularity")


@pytest.mark.parametrize(
    ("name", "words"),
    [("granularty", "did you mean granularity"), ("zzz", "expected one of"), ("x/y", "study file x/y not found")],
)
def test_unknown_studies_name_the_nearest(name: str, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        find_study(name)
